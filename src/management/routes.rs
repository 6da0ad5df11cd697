//! Exchanges and bindings alone, for whoever looks often.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::management::Management;
use crate::management::observe::observed_binding;
use crate::management::wire::{WireBinding, WireExchange};
use crate::topology::{Binding, ExchangeName, VhostName};

/// A binding with the broker's own name for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedBinding {
    /// The binding; its arguments have the types that JSON keeps apart.
    pub binding: Binding,
    /// Routing key and a hash of the arguments with their exact types: equal
    /// for two bindings only if the broker takes their arguments for the same.
    pub properties_key: String,
}

/// Every exchange and binding of a vhost. No statistics: always current.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routes {
    /// The names of all exchanges.
    pub exchanges: BTreeSet<ExchangeName>,
    /// All bindings but those of the default exchange.
    pub bindings: Vec<NamedBinding>,
}

impl Management {
    /// Reads the exchanges and bindings of a vhost.
    ///
    /// # Errors
    /// When the vhost cannot be read.
    pub async fn routes(&self, vhost: &VhostName) -> Result<Routes> {
        let doing = format!("read the bindings of vhost '{vhost}'");
        let vhost = vhost.as_str();
        let exchanges: Vec<WireExchange> = self.get(&["exchanges", vhost], &doing).await?;
        let bindings: Vec<WireBinding> = self.get(&["bindings", vhost], &doing).await?;
        let exchanges = exchanges
            .into_iter()
            .map(|exchange| ExchangeName::new(exchange.name))
            .collect::<Result<_>>()?;
        let bindings = bindings
            .into_iter()
            .filter(|binding| !binding.source.is_empty())
            .map(|wire| {
                let properties_key = wire.properties_key.clone();
                let binding = observed_binding(wire)?;
                Ok(NamedBinding {
                    binding,
                    properties_key,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Routes {
            exchanges,
            bindings,
        })
    }
}
