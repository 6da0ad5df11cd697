//! A topology under other names: throw-away copies that do not meet each other.

use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldValue;
use crate::topology::user::prefixed_user;
use crate::topology::{
    Binding, DeadLetterKey, Destination, ExchangeName, Name, QueueName, RoutingKey, Topology,
};

impl Topology {
    /// The same topology with `prefix` before the name of every object it
    /// declares, and in every mention of one. Routing keys stay as they are,
    /// except where the default exchange makes a queue's name the key. Settings
    /// of the vhost are left out: they are not the copy's.
    ///
    /// # Errors
    /// When a name becomes longer than 255 bytes.
    pub fn prefixed(self, prefix: &str) -> Result<Self> {
        let rename = Renaming {
            prefix,
            topology: &self,
        };
        let mut renamed = Self {
            vhost: self.vhost.clone(),
            elsewhere: self.elsewhere.clone(),
            ..Self::default()
        };
        for (name, exchange) in &self.exchanges {
            let mut exchange = exchange.clone();
            exchange.alternate = exchange
                .alternate
                .map(|name| rename.exchange(&name))
                .transpose()?;
            renamed.exchanges.insert(rename.exchange(name)?, exchange);
        }
        for (name, queue) in &self.queues {
            let mut queue = queue.clone();
            if let Some(dead_lettering) = &mut queue.dead_lettering {
                if let DeadLetterKey::Replaced(key) = &dead_lettering.key {
                    dead_lettering.key =
                        DeadLetterKey::Replaced(rename.key(&dead_lettering.exchange, key)?);
                }
                dead_lettering.exchange = rename.exchange(&dead_lettering.exchange)?;
            }
            if let Some(retry) = &mut queue.retry {
                retry.dead_letter_queue = retry
                    .dead_letter_queue
                    .as_ref()
                    .map(|name| rename.queue(name))
                    .transpose()?;
            }
            renamed.queues.insert(rename.queue(name)?, queue);
        }
        for ((kind, name), policy) in &self.policies {
            let name = Name::new(format!("{prefix}{name}"))?;
            let mut policy = policy.prefixed(prefix)?;
            for setting in ["dead-letter-exchange", "alternate-exchange"] {
                if let Some(value) = policy.definition.get_mut(setting)
                    && let Some(exchange) = value.as_text()
                {
                    let exchange = rename.exchange(&ExchangeName::new(exchange)?)?;
                    *value = FieldValue::text(exchange.as_str());
                }
            }
            renamed.policies.insert((*kind, name), policy);
        }
        for (name, user) in &self.users {
            let name = Name::new(format!("{prefix}{name}"))?;
            renamed.users.insert(name, user.clone());
        }
        for (name, permissions) in &self.permissions {
            let copy = prefixed_user(name, self.users.contains_key(name), prefix)?;
            let permissions = permissions.prefixed(name, prefix)?;
            renamed.permissions.insert(copy, permissions);
        }
        for ((name, exchange), permission) in &self.topic_permissions {
            let copy = prefixed_user(name, self.users.contains_key(name), prefix)?;
            let exchange = rename.exchange(exchange)?;
            renamed
                .topic_permissions
                .insert((copy, exchange), permission.clone());
        }
        for pattern in &self.owns {
            let copy = pattern.prefixed(prefix).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("the pattern '{pattern}' under `owns` does not begin with ^, so a copy with a prefix would own names of others"),
                )
                .hint("anchor it with ^, or leave --prefix away")
            })?;
            renamed.owns.push(copy);
        }
        for binding in &self.bindings {
            renamed.bindings.push(Binding {
                source: rename.exchange(&binding.source)?,
                destination: match &binding.destination {
                    Destination::Queue(name) => Destination::Queue(rename.queue(name)?),
                    Destination::Exchange(name) => Destination::Exchange(rename.exchange(name)?),
                },
                key: binding.key.clone(),
                arguments: binding.arguments.clone(),
            });
        }
        for test in &self.tests {
            renamed.tests.push(test.renamed(
                |name| rename.exchange(name),
                |name| rename.queue(name),
                |exchange, key| rename.key(exchange, key),
            )?);
        }
        Ok(renamed)
    }
}

struct Renaming<'t> {
    prefix: &'t str,
    topology: &'t Topology,
}

impl Renaming<'_> {
    /// Only what the file declares is renamed: amq.topic is everybody's.
    fn exchange(&self, name: &ExchangeName) -> Result<ExchangeName> {
        if self.topology.exchanges.contains_key(name) {
            Name::new(format!("{}{name}", self.prefix))
        } else {
            Ok(name.clone())
        }
    }

    fn queue(&self, name: &QueueName) -> Result<QueueName> {
        Name::new(format!("{}{name}", self.prefix))
    }

    fn key(&self, exchange: &ExchangeName, key: &RoutingKey) -> Result<RoutingKey> {
        let names_a_queue = exchange.is_empty()
            && self
                .topology
                .queues
                .keys()
                .any(|queue| queue.as_str() == key.as_str());
        if names_a_queue {
            Name::new(format!("{}{key}", self.prefix))
        } else {
            Ok(key.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Source;
    use crate::retry;
    use crate::topology::QueueName;

    #[test]
    fn a_prefixed_topology_works_the_same_under_other_names() {
        let source = Source {
            name: "orders.yaml".to_owned(),
            text: include_str!("../../topologies/orders.yaml").to_owned(),
        };
        let topology = crate::topologyfile::parse(&[source], &|_| None).expect("topology");
        let prefixed = topology.clone().prefixed("ci-7.").expect("prefixed");
        let names: Vec<&str> = prefixed.queues.keys().map(QueueName::as_str).collect();
        assert_eq!(
            names,
            ["ci-7.orders.dlq", "ci-7.orders.queue", "ci-7.orders.retry"]
        );
        let work = QueueName::new("ci-7.orders.queue").expect("name");
        let policy = prefixed.queues[&work].retry.clone().expect("retry");
        let path =
            retry::path(&crate::routing::Router::new(&prefixed), &work, &policy).expect("path");
        assert_eq!(path.strategy, retry::Strategy::Dlx);
        assert_eq!(path.exchange.as_str(), "ci-7.dlx.exchange");
        assert!(topology.prefixed(&"x".repeat(250)).is_err());
    }
}
