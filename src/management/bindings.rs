//! Deleting a binding by what the broker itself calls it.

use crate::error::Result;
use crate::management::Management;
use crate::management::observe::observed_binding;
use crate::management::wire::WireBinding;
use crate::topology::{Binding, Destination, VhostName};

impl Management {
    /// Deletes a binding, whatever types its arguments have: AMQP would need
    /// them exactly, and the management API has forgotten them. One that is not
    /// there is no error.
    ///
    /// # Errors
    /// When it may not be deleted.
    pub async fn unbind(&self, vhost: &VhostName, binding: &Binding) -> Result<()> {
        let doing = format!("unbind {binding}");
        let (kind, destination) = match &binding.destination {
            Destination::Queue(name) => ("q", name.as_str()),
            Destination::Exchange(name) => ("e", name.as_str()),
        };
        let ends = [
            "bindings",
            vhost.as_str(),
            "e",
            binding.source.as_str(),
            kind,
            destination,
        ];
        let found: Vec<WireBinding> = self.get(&ends, &doing).await?;
        for wire in found {
            let properties_key = wire.properties_key.clone();
            if observed_binding(wire)?.identity() == binding.identity() {
                let mut path = ends.to_vec();
                path.push(&properties_key);
                self.delete(&path, &doing).await?;
            }
        }
        Ok(())
    }
}
