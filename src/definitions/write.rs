//! A topology as a definitions file.

use serde_json::{Map, Value as Json, json};

use crate::broker::BrokerFacts;
use crate::field::table_to_json;
use crate::topology::{
    Binding, Destination, Password, Policy, PolicyKind, Topology, UserName, VhostLimit, VhostName,
    VhostSettings,
};

/// Definitions, and what of the topology they cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The definitions: of one vhost without its name, for `POST
    /// /api/definitions/VHOST`, or with it.
    pub json: Json,
    /// One sentence for each thing that had to be left out.
    pub left_out: Vec<String>,
}

/// Writes definitions for brokers like `facts`. Without a vhost they are those
/// of a single one, which cannot hold users.
#[must_use]
pub fn write(topology: &Topology, vhost: Option<&VhostName>, facts: &BrokerFacts) -> Written {
    let writer = Writer { topology, vhost };
    let mut left_out = Vec::new();
    let mut file = Map::new();
    let mut put = |name: &str, items: Vec<Json>| {
        file.insert(name.to_owned(), Json::Array(items));
    };
    if vhost.is_some() {
        put("users", writer.users(&mut left_out));
        put("vhosts", writer.vhosts());
        put("permissions", writer.permissions());
        put("topic_permissions", writer.topic_permissions());
    } else {
        let parts = [
            (!topology.users.is_empty(), "users"),
            (
                !topology.permissions.is_empty() || !topology.topic_permissions.is_empty(),
                "permissions",
            ),
            (topology.vhost_settings.is_some(), "settings of the vhost"),
        ];
        for (_, what) in parts.into_iter().filter(|(is_there, _)| *is_there) {
            left_out.push(format!(
                "{what}: the definitions of a vhost without a name cannot hold them; give --vhost"
            ));
        }
    }
    put("parameters", writer.parameters());
    put("policies", writer.policies());
    put("queues", writer.queues(facts));
    put("exchanges", writer.exchanges());
    put("bindings", writer.bindings());
    Written {
        json: Json::Object(file),
        left_out,
    }
}

struct Writer<'t> {
    topology: &'t Topology,
    vhost: Option<&'t VhostName>,
}

impl Writer<'_> {
    /// An object of the vhost.
    fn of_vhost(&self, mut object: Json) -> Json {
        if let (Some(vhost), Json::Object(fields)) = (self.vhost, &mut object) {
            fields.insert("vhost".to_owned(), json!(vhost.as_str()));
        }
        object
    }

    fn users(&self, left_out: &mut Vec<String>) -> Vec<Json> {
        let mut users = Vec::new();
        for (name, user) in &self.topology.users {
            let Some(Password::Hash(hash)) = &user.password else {
                left_out.push(format!(
                    "user '{name}' and its permissions: definitions hold the hash of a password, which the file does not"
                ));
                continue;
            };
            users.push(json!({
                "name": name.as_str(),
                "password_hash": hash.hash,
                "hashing_algorithm": hash.algorithm,
                "tags": user.tags,
            }));
        }
        users
    }

    /// Whether a user is in the definitions, or not declared in the file at all:
    /// a broker refuses permissions of a user that is not there.
    fn is_written(&self, user: &UserName) -> bool {
        self.topology
            .users
            .get(user)
            .is_none_or(|user| matches!(user.password, Some(Password::Hash(_))))
    }

    fn vhosts(&self) -> Vec<Json> {
        let Some(vhost) = self.vhost else {
            return Vec::new();
        };
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(vhost.as_str()));
        let mut metadata = Map::new();
        if let Some(settings) = &self.topology.vhost_settings {
            if let Some(description) = &settings.description {
                metadata.insert("description".to_owned(), json!(description));
            }
            if let Some(tags) = &settings.tags {
                metadata.insert("tags".to_owned(), json!(tags));
            }
            if let Some(kind) = &settings.default_queue_type {
                metadata.insert("default_queue_type".to_owned(), json!(kind.to_string()));
            }
        }
        if !metadata.is_empty() {
            object.insert("metadata".to_owned(), Json::Object(metadata));
        }
        vec![Json::Object(object)]
    }

    fn permissions(&self) -> Vec<Json> {
        let permissions = self.topology.permissions.iter();
        permissions
            .filter(|(user, _)| self.is_written(user))
            .map(|(user, allowed)| {
                self.of_vhost(json!({
                    "user": user.as_str(),
                    "configure": allowed.configure.as_str(),
                    "write": allowed.write.as_str(),
                    "read": allowed.read.as_str(),
                }))
            })
            .collect()
    }

    fn topic_permissions(&self) -> Vec<Json> {
        let permissions = self.topology.topic_permissions.iter();
        permissions
            .filter(|((user, _), _)| self.is_written(user))
            .map(|((user, exchange), allowed)| {
                self.of_vhost(json!({
                    "user": user.as_str(),
                    "exchange": exchange.as_str(),
                    "write": allowed.write.as_str(),
                    "read": allowed.read.as_str(),
                }))
            })
            .collect()
    }

    fn parameters(&self) -> Vec<Json> {
        let operator = self.of_kind(PolicyKind::Operator);
        let mut parameters: Vec<Json> = operator
            .map(|(name, policy)| {
                self.of_vhost(json!({
                    "component": "operator_policy",
                    "name": name,
                    "value": policy_json(policy),
                }))
            })
            .collect();
        let limits = self.topology.vhost_settings.as_ref().map(limits);
        if let Some(limits) = limits.filter(|limits| !limits.is_empty()) {
            parameters.push(self.of_vhost(json!({
                "component": "vhost-limits",
                "name": "limits",
                "value": limits,
            })));
        }
        parameters
    }

    fn policies(&self) -> Vec<Json> {
        self.of_kind(PolicyKind::User)
            .map(|(name, policy)| {
                let mut object = policy_json(policy);
                object.insert("name".to_owned(), json!(name));
                self.of_vhost(Json::Object(object))
            })
            .collect()
    }

    fn of_kind(&self, kind: PolicyKind) -> impl Iterator<Item = (&str, &Policy)> {
        self.topology
            .policies
            .iter()
            .filter(move |((its_kind, _), _)| *its_kind == kind)
            .map(|((_, name), policy)| (name.as_str(), policy))
    }

    fn queues(&self, facts: &BrokerFacts) -> Vec<Json> {
        let queues = self.topology.queues.iter();
        queues
            .map(|(name, queue)| {
                self.of_vhost(json!({
                    "name": name.as_str(),
                    "durable": queue.durable,
                    "auto_delete": queue.auto_delete,
                    "arguments": table_to_json(&queue.declared_arguments(facts)),
                }))
            })
            .collect()
    }

    fn exchanges(&self) -> Vec<Json> {
        let exchanges = self.topology.exchanges.iter();
        exchanges
            .map(|(name, exchange)| {
                self.of_vhost(json!({
                    "name": name.as_str(),
                    "type": exchange.kind.to_string(),
                    "durable": exchange.durable,
                    "auto_delete": exchange.auto_delete,
                    "internal": exchange.internal,
                    "arguments": table_to_json(&exchange.declared_arguments()),
                }))
            })
            .collect()
    }

    fn bindings(&self) -> Vec<Json> {
        let bindings = self.topology.bindings.iter();
        bindings
            .map(|binding| self.of_vhost(binding_json(binding)))
            .collect()
    }
}

fn policy_json(policy: &Policy) -> Map<String, Json> {
    [
        ("pattern".to_owned(), json!(policy.pattern.as_str())),
        ("apply-to".to_owned(), json!(policy.apply_to.to_string())),
        ("priority".to_owned(), json!(policy.priority)),
        ("definition".to_owned(), table_to_json(&policy.definition)),
    ]
    .into_iter()
    .collect()
}

fn limits(settings: &VhostSettings) -> Map<String, Json> {
    let mut limits = Map::new();
    for (name, limit) in [
        ("max-connections", settings.max_connections),
        ("max-queues", settings.max_queues),
    ] {
        match limit {
            None => {}
            // Below zero means none (vhosts.md).
            Some(VhostLimit::Unlimited) => {
                limits.insert(name.to_owned(), json!(-1));
            }
            Some(VhostLimit::AtMost(number)) => {
                limits.insert(name.to_owned(), json!(number));
            }
        }
    }
    limits
}

fn binding_json(binding: &Binding) -> Json {
    let (kind, destination) = match &binding.destination {
        Destination::Queue(name) => ("queue", name.as_str()),
        Destination::Exchange(name) => ("exchange", name.as_str()),
    };
    json!({
        "source": binding.source.as_str(),
        "destination": destination,
        "destination_type": kind,
        "routing_key": binding.key.as_str(),
        "arguments": table_to_json(&binding.arguments),
    })
}
