//! Deleting a binding by what the broker itself calls it.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::error::Result;
use crate::management::Management;
use crate::topology::{Binding, Destination, VhostName};

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireKey {
    routing_key: String,
    arguments: Json,
    properties_key: String,
}

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
        let found: Vec<WireKey> = self.get(&ends, &doing).await?;
        let wanted = crate::field::table_to_json(&binding.arguments);
        for key in found {
            let arguments = match key.arguments {
                Json::Object(arguments) => {
                    crate::field::table_to_json(&crate::field::table_from_json(&arguments))
                }
                _ => Json::Object(serde_json::Map::new()),
            };
            if key.routing_key == binding.key.as_str() && arguments == wanted {
                let mut path = ends.to_vec();
                path.push(&key.properties_key);
                self.delete(&path, &doing).await?;
            }
        }
        Ok(())
    }
}
