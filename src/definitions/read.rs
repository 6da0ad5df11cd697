//! A definitions file as a topology.

use serde_json::Value as Json;

use super::choose::choose;
use super::item::Item;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};
use crate::secret::{PasswordHash, SHA_256};
use crate::topology::{
    ApplyTo, Binding, Destination, Exchange, ExchangeName, ExchangeType, Password, Pattern,
    Permissions, Policy, PolicyKind, PolicyName, Queue, QueueName, QueueType, RoutingKey,
    TopicPermission, Topology, User, UserName, VhostLimit, VhostName, VhostSettings,
};

/// A definitions file, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Queues and exchanges hold the raw arguments, as those of a broker do.
    pub topology: Topology,
    /// One sentence for each thing that a topology cannot say.
    pub left_out: Vec<String>,
    /// The vhosts of the file that were not asked for.
    pub other_vhosts: Vec<String>,
}

/// What the exporting broker says of itself: nothing to set.
const ABOUT_THE_EXPORT: [&str; 8] = [
    "rabbit_version",
    "rabbitmq_version",
    "product_name",
    "product_version",
    "rabbitmq_definition_format",
    "original_cluster_name",
    "original_vhost_name",
    "explanation",
];

/// Reads the definitions of one vhost: the one asked for, or the only one that
/// holds anything.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is no definitions file, or holds several
/// vhosts and none was asked for, or not the one that was.
pub fn read(json: &Json, vhost: Option<&VhostName>) -> Result<Read> {
    let mut file = Item::new(json, "the file")?;
    file.skip(&ABOUT_THE_EXPORT);
    let chosen = choose(json, vhost)?;
    let mut reader = Reader {
        vhost: chosen.vhost,
        topology: Topology::default(),
        left_out: Vec::new(),
    };
    if let Some(name) = &reader.vhost {
        reader.topology.vhost = Some(VhostName::new(name.clone())?);
    } else {
        // The export of a single vhost carries its settings at the top.
        reader.topology.vhost = vhost.cloned();
        reader.vhost_settings(&mut file)?;
    }
    reader.each(&mut file, "vhosts", Reader::vhost)?;
    reader.each(&mut file, "users", Reader::user)?;
    reader.each(&mut file, "permissions", Reader::permissions)?;
    reader.each(&mut file, "topic_permissions", Reader::topic_permission)?;
    reader.each(&mut file, "parameters", Reader::parameter)?;
    reader.each(&mut file, "global_parameters", Reader::global_parameter)?;
    reader.each(&mut file, "policies", |reader, item| {
        reader.policy(PolicyKind::User, item)
    })?;
    reader.each(&mut file, "exchanges", Reader::exchange)?;
    reader.each(&mut file, "queues", Reader::queue)?;
    reader.each(&mut file, "bindings", Reader::binding)?;
    let mut left_out = reader.left_out;
    left_out.extend(file.unread());
    Ok(Read {
        topology: reader.topology,
        left_out,
        other_vhosts: chosen.others,
    })
}

/// The same object twice, and perhaps otherwise: which one is meant?
fn once<T>(what: &str, before: Option<&T>) -> Result<()> {
    match before {
        None => Ok(()),
        Some(_) => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{what} is in the file twice"),
        )
        .hint("keep one of the two")),
    }
}

fn wrong_number(what: &str, field: &str, found: &Json) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!("{what}: `{field}` should be a whole number of 32 bits, not {found}"),
    )
    .hint("correct it in the definitions")
}

struct Reader {
    vhost: Option<String>,
    topology: Topology,
    left_out: Vec<String>,
}

impl Reader {
    /// Reads every object of a list that belongs to the vhost.
    fn each(
        &mut self,
        file: &mut Item<'_>,
        list: &str,
        read: impl Fn(&mut Self, &mut Item<'_>) -> Result<()>,
    ) -> Result<()> {
        for (at, json) in file.list(list)?.iter().enumerate() {
            let mut item = Item::new(json, format!("{list}[{at}]"))?;
            let vhost = item.text("vhost")?.map(str::to_owned);
            if vhost.is_some() && vhost != self.vhost {
                continue;
            }
            read(self, &mut item)?;
            self.left_out.extend(item.unread());
        }
        Ok(())
    }

    fn vhost(&mut self, item: &mut Item<'_>) -> Result<()> {
        let name = item.required("name")?;
        if self.vhost.as_deref() == Some(name) {
            item.what = format!("vhost '{name}'");
            return self.vhost_settings(item);
        }
        // Another vhost, told as a whole.
        item.skip(&[
            "description",
            "tags",
            "metadata",
            "default_queue_type",
            "limits",
        ]);
        Ok(())
    }

    fn vhost_settings(&mut self, item: &mut Item<'_>) -> Result<()> {
        let mut settings = self.topology.vhost_settings.clone().unwrap_or_default();
        let metadata = item
            .get("metadata")
            .cloned()
            .unwrap_or_else(|| Json::Object(serde_json::Map::new()));
        let mut metadata = Item::new(&metadata, format!("the metadata of {}", item.what))?;
        // Said twice by 4.0, in either place by others.
        let (outer, inner) = (item.text("description")?, metadata.text("description")?);
        let description = outer.or(inner).filter(|text| !text.is_empty());
        settings.description = description.map(str::to_owned);
        let (outer, inner) = (item.tags("tags")?, metadata.tags("tags")?);
        let tags = if outer.is_empty() { inner } else { outer };
        settings.tags = Some(tags).filter(|tags| !tags.is_empty());
        let (outer, inner) = (
            item.text("default_queue_type")?,
            metadata.text("default_queue_type")?,
        );
        settings.default_queue_type = outer
            .or(inner)
            .filter(|kind| *kind != "undefined")
            .map(QueueType::from_name);
        let left: Vec<String> = metadata.unread().collect();
        self.left_out.extend(left);
        let limits = item.table("limits")?;
        self.limits(&mut settings, &limits, &item.what);
        self.topology.vhost_settings =
            Some(settings).filter(|settings| *settings != VhostSettings::default());
        Ok(())
    }

    fn limits(&mut self, settings: &mut VhostSettings, limits: &FieldTable, what: &str) {
        for (name, value) in limits {
            let limit = match value.as_integer().map(u64::try_from) {
                Some(Ok(number)) => VhostLimit::AtMost(number),
                Some(Err(_)) => VhostLimit::Unlimited,
                None => {
                    self.left_out.push(format!("{what}: the limit {name}"));
                    continue;
                }
            };
            match name.as_str() {
                "max-connections" => settings.max_connections = Some(limit),
                "max-queues" => settings.max_queues = Some(limit),
                _ => self.left_out.push(format!("{what}: the limit {name}")),
            }
        }
    }

    fn user(&mut self, item: &mut Item<'_>) -> Result<()> {
        let name = UserName::new(item.required("name")?)?;
        item.what = format!("user '{name}'");
        let hash = item.text("password_hash")?.map(str::to_owned);
        let algorithm = item
            .text("hashing_algorithm")?
            .unwrap_or(SHA_256)
            .to_owned();
        let user = User {
            description: None,
            password: hash.map(|hash| Password::Hash(PasswordHash { hash, algorithm })),
            tags: item.tags("tags")?.into_iter().collect(),
        };
        if item.get("password").is_some() {
            self.left_out.push(format!(
                "{}: its plain password; give it with `password: {{ env: NAME }}`",
                item.what
            ));
        }
        let limits = item.table("limits")?;
        if !limits.is_empty() {
            let names: Vec<&str> = limits.keys().map(String::as_str).collect();
            self.left_out
                .push(format!("{}: its limits {}", item.what, names.join(", ")));
        }
        once(&item.what, self.topology.users.insert(name, user).as_ref())?;
        Ok(())
    }

    fn permissions(&mut self, item: &mut Item<'_>) -> Result<()> {
        let user = UserName::new(item.required("user")?)?;
        let permissions = Permissions {
            configure: Pattern::new(item.required("configure")?)?,
            write: Pattern::new(item.required("write")?)?,
            read: Pattern::new(item.required("read")?)?,
        };
        once(
            &item.what,
            self.topology.permissions.insert(user, permissions).as_ref(),
        )?;
        Ok(())
    }

    fn topic_permission(&mut self, item: &mut Item<'_>) -> Result<()> {
        let user = UserName::new(item.required("user")?)?;
        let exchange = ExchangeName::new(item.required("exchange")?)?;
        let permission = TopicPermission {
            write: Pattern::new(item.required("write")?)?,
            read: Pattern::new(item.required("read")?)?,
        };
        self.topology
            .topic_permissions
            .insert((user, exchange), permission);
        Ok(())
    }

    fn parameter(&mut self, item: &mut Item<'_>) -> Result<()> {
        let component = item.required("component")?;
        let name = item.text("name")?.unwrap_or_default();
        item.what = format!("parameter '{name}' of {component}");
        let Some(value) = item.get("value") else {
            self.left_out
                .push(format!("{}: it has no value", item.what));
            return Ok(());
        };
        match component {
            "operator_policy" => {
                let mut policy = Item::new(value, format!("operator policy '{name}'"))?;
                self.policy_named(PolicyKind::Operator, name, &mut policy)?;
                self.left_out.extend(policy.unread());
            }
            "vhost-limits" => {
                let mut settings = self.topology.vhost_settings.take().unwrap_or_default();
                let limits =
                    Json::Object([("value".to_owned(), value.clone())].into_iter().collect());
                let limits = Item::new(&limits, item.what.as_str())?.table("value")?;
                self.limits(&mut settings, &limits, &item.what);
                self.topology.vhost_settings = Some(settings);
            }
            _ => self.left_out.push(item.what.clone()),
        }
        Ok(())
    }

    fn global_parameter(&mut self, item: &mut Item<'_>) -> Result<()> {
        let name = item.required("name")?;
        let value = item.get("value");
        // The identity of the cluster that was exported is no setting to carry over.
        let is_identity = name == "internal_cluster_id"
            || (name == "cluster_tags"
                && value.and_then(Json::as_array).is_some_and(Vec::is_empty));
        if !is_identity {
            self.left_out.push(format!("global parameter '{name}'"));
        }
        Ok(())
    }

    fn policy(&mut self, kind: PolicyKind, item: &mut Item<'_>) -> Result<()> {
        let name = item.required("name")?;
        item.what = format!("{} '{name}'", kind.word());
        self.policy_named(kind, name, item)
    }

    fn policy_named(&mut self, kind: PolicyKind, name: &str, item: &mut Item<'_>) -> Result<()> {
        let apply_to = item.text("apply-to")?.unwrap_or("all");
        let Some((_, apply_to)) = ApplyTo::ALL.iter().find(|(word, _)| *word == apply_to) else {
            self.left_out
                .push(format!("{}: it applies to '{apply_to}'", item.what));
            item.skip(&["pattern", "priority", "definition"]);
            return Ok(());
        };
        let priority = match item.get("priority") {
            None | Some(Json::Null) => 0,
            Some(number) => match number.as_i64().map(i32::try_from) {
                Some(Ok(priority)) => priority,
                _ => return Err(wrong_number(&item.what, "priority", number)),
            },
        };
        let policy = Policy {
            description: None,
            pattern: Pattern::new(item.required("pattern")?)?,
            apply_to: *apply_to,
            priority,
            definition: item.table("definition")?,
        };
        let name = PolicyName::new(name)?;
        once(
            &item.what,
            self.topology.policies.insert((kind, name), policy).as_ref(),
        )?;
        Ok(())
    }

    fn exchange(&mut self, item: &mut Item<'_>) -> Result<()> {
        let name = ExchangeName::new(item.required("name")?)?;
        item.what = format!("exchange '{name}'");
        let exchange = Exchange {
            kind: ExchangeType::from_name(item.required("type")?),
            durable: item.flag("durable", true)?,
            auto_delete: item.flag("auto_delete", false)?,
            internal: item.flag("internal", false)?,
            alternate: None,
            arguments: item.table("arguments")?,
        };
        if name.is_reserved() {
            self.left_out
                .push(format!("{}: it belongs to the broker", item.what));
        } else if !name.is_empty() {
            once(
                &item.what,
                self.topology.exchanges.insert(name, exchange).as_ref(),
            )?;
        }
        Ok(())
    }

    fn queue(&mut self, item: &mut Item<'_>) -> Result<()> {
        let name = QueueName::new(item.required("name")?)?;
        item.what = format!("queue '{name}'");
        let mut arguments = item.table("arguments")?;
        // 4.x says the type a second time; older exports and hand-written ones may
        // say it only here.
        if let Some(kind) = item.text("type")? {
            arguments
                .entry("x-queue-type".to_owned())
                .or_insert_with(|| FieldValue::text(kind));
        }
        let queue = Queue {
            durable: item.flag("durable", true)?,
            auto_delete: item.flag("auto_delete", false)?,
            arguments,
            ..Queue::default()
        };
        if name.is_reserved() {
            self.left_out
                .push(format!("{}: the broker made its name", item.what));
        } else {
            once(
                &item.what,
                self.topology.queues.insert(name, queue).as_ref(),
            )?;
        }
        Ok(())
    }

    fn binding(&mut self, item: &mut Item<'_>) -> Result<()> {
        let source = ExchangeName::new(item.required("source")?)?;
        let destination = item.required("destination")?;
        item.what = format!("binding '{source}' to '{destination}'");
        let binding = Binding {
            source,
            destination: match item.required("destination_type")? {
                "queue" => Destination::Queue(QueueName::new(destination)?),
                "exchange" => Destination::Exchange(ExchangeName::new(destination)?),
                other => {
                    self.left_out
                        .push(format!("{}: it leads to a '{other}'", item.what));
                    item.skip(&["routing_key", "arguments", "properties_key"]);
                    return Ok(());
                }
            },
            key: RoutingKey::new(item.text("routing_key")?.unwrap_or_default())?,
            arguments: item.table("arguments")?,
        };
        item.skip(&["properties_key"]);
        let to_nobody = match &binding.destination {
            Destination::Queue(name) => !self.topology.queues.contains_key(name),
            Destination::Exchange(name) => self.topology.exchange(name).is_none(),
        };
        if to_nobody {
            self.left_out
                .push(format!("{}: the file does not hold that", item.what));
        } else if !binding.source.is_empty() {
            self.topology.bindings.push(binding);
        }
        Ok(())
    }
}
