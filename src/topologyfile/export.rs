//! A topology read from a broker, written as a file that plans empty against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::export_users;
use crate::field::{FieldTable, FieldValue, table_to_json};
use crate::topology::{
    ApplyTo, Binding, Destination, Exchange, ExchangeName, Overflow, Policy, PolicyKind, Queue,
    QueueName, Topology,
};

/// A file, and what of the broker it cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// YAML.
    pub text: String,
    /// One sentence for each thing that had to be left out.
    pub left_out: Vec<String>,
}

/// Writes an observed topology, whose queues and exchanges hold the raw
/// arguments they were declared with. Names that belong to the broker
/// (`amq.…`) are left to it.
///
/// # Errors
/// The YAML library's words, should it refuse a value.
pub fn export(topology: &Topology) -> Result<Exported, String> {
    let mut left_out = Vec::new();
    let mut file = Map::new();
    file.insert("version".to_owned(), json!(1));
    if let Some(vhost) = export_users::vhost_json(topology) {
        file.insert("vhost".to_owned(), vhost);
    }
    let exchanges: Map<String, Json> = topology
        .exchanges
        .iter()
        .filter(|(name, _)| !name.is_reserved())
        .map(|(name, exchange)| (name.to_string(), exchange_json(exchange)))
        .collect();
    insert(&mut file, "exchanges", Json::Object(exchanges));
    let mut bound: BTreeMap<&QueueName, Vec<Json>> = BTreeMap::new();
    for binding in &topology.bindings {
        if let Destination::Queue(queue) = &binding.destination {
            bound.entry(queue).or_default().push(queue_binding(binding));
        }
    }
    let queues: Map<String, Json> = topology
        .queues
        .iter()
        .filter(|(name, _)| !name.is_reserved())
        .map(|(name, queue)| {
            let bind = bound.remove(name).unwrap_or_default();
            let json = queue_json(bind, name, queue, &mut left_out);
            (name.to_string(), json)
        })
        .collect();
    insert(&mut file, "queues", Json::Object(queues));
    let bindings: Vec<Json> = topology
        .bindings
        .iter()
        .filter_map(between_exchanges)
        .collect();
    insert(&mut file, "bindings", Json::Array(bindings));
    for (key, kind) in PolicyKind::ALL {
        let policies: Map<String, Json> = topology
            .policies
            .iter()
            .filter(|((its_kind, _), _)| *its_kind == kind)
            .map(|((_, name), policy)| (name.to_string(), policy_json(policy)))
            .collect();
        insert(&mut file, key, Json::Object(policies));
    }
    insert(&mut file, "users", export_users::users_json(topology));
    insert(
        &mut file,
        "permissions",
        export_users::permissions_json(topology),
    );
    let missing = dangling(topology);
    if !missing.is_empty() {
        file.insert("elsewhere".to_owned(), json!({ "exchanges": missing }));
    }
    let text =
        serde_yaml::to_string(&escaped(Json::Object(file))).map_err(|error| error.to_string())?;
    Ok(Exported { text, left_out })
}

/// Exchanges that are named and not there: brokers allow that.
fn dangling(topology: &Topology) -> BTreeSet<String> {
    let argument =
        |arguments: &FieldTable, name: &str| Some(arguments.get(name)?.as_text()?.to_owned());
    let queues = topology.queues.values();
    let mut named: Vec<String> = queues
        .filter_map(|queue| argument(&queue.arguments, "x-dead-letter-exchange"))
        .collect();
    let exchanges = topology.exchanges.values();
    named.extend(
        exchanges.filter_map(|exchange| argument(&exchange.arguments, "alternate-exchange")),
    );
    for policy in topology.policies.values() {
        for setting in ["dead-letter-exchange", "alternate-exchange"] {
            named.extend(argument(&policy.definition, setting));
        }
    }
    named.extend(
        topology
            .topic_permissions
            .keys()
            .map(|(_, exchange)| exchange.to_string()),
    );
    named.extend(
        topology
            .bindings
            .iter()
            .map(|binding| binding.source.to_string()),
    );
    named
        .into_iter()
        .filter(|name| {
            ExchangeName::new(name.as_str())
                .is_ok_and(|exchange| topology.exchange(&exchange).is_none())
        })
        .collect()
}

/// A plain `${` would be read as a variable.
fn escaped(json: Json) -> Json {
    let escape = |text: String| text.replace("${", "$${");
    match json {
        Json::String(text) => Json::String(escape(text)),
        Json::Array(items) => items.into_iter().map(escaped).collect(),
        Json::Object(object) => Json::Object(
            object
                .into_iter()
                .map(|(name, value)| (escape(name), escaped(value)))
                .collect(),
        ),
        json @ (Json::Null | Json::Bool(_) | Json::Number(_)) => json,
    }
}

pub(super) fn insert(file: &mut Map<String, Json>, name: &str, value: Json) {
    let empty = match &value {
        Json::Object(object) => object.is_empty(),
        Json::Array(array) => array.is_empty(),
        _ => false,
    };
    if !empty {
        file.insert(name.to_owned(), value);
    }
}

fn exchange_json(exchange: &Exchange) -> Json {
    let mut json = Map::new();
    json.insert("type".to_owned(), json!(exchange.kind.to_string()));
    flag(&mut json, "durable", exchange.durable, true);
    flag(&mut json, "auto_delete", exchange.auto_delete, false);
    flag(&mut json, "internal", exchange.internal, false);
    let mut arguments = exchange.arguments.clone();
    // Only what was declared: an alternate that a policy sets is the policy's.
    if let Some(alternate) = take_text(&mut arguments, "alternate-exchange") {
        json.insert("alternate".to_owned(), json!(alternate));
    }
    insert(&mut json, "arguments", table_to_json(&arguments));
    Json::Object(json)
}

fn flag(json: &mut Map<String, Json>, name: &str, value: bool, default: bool) {
    if value != default {
        json.insert(name.to_owned(), json!(value));
    }
}

fn queue_json(
    bind: Vec<Json>,
    name: &QueueName,
    queue: &Queue,
    left_out: &mut Vec<String>,
) -> Json {
    let mut json = Map::new();
    let mut arguments = queue.arguments.clone();
    if let Some(kind) = take_text(&mut arguments, "x-queue-type") {
        json.insert("type".to_owned(), json!(kind));
    }
    flag(&mut json, "durable", queue.durable, true);
    flag(&mut json, "auto_delete", queue.auto_delete, false);
    insert(&mut json, "bind", Json::Array(bind));
    typed(&mut json, &mut arguments);
    // What is left under a name that has a typed key has a value the key cannot say.
    arguments.retain(|argument, value| {
        let unsaid = super::queues::typed_key(argument).is_some();
        if unsaid {
            left_out.push(format!(
                "queue '{name}': {argument} is {}, which the file format cannot say",
                value.to_json()
            ));
        }
        !unsaid
    });
    insert(&mut json, "arguments", table_to_json(&arguments));
    Json::Object(json)
}

/// Moves arguments into the keys that are made for them.
fn typed(json: &mut Map<String, Json>, arguments: &mut FieldTable) {
    if let Some(exchange) = take_text(arguments, "x-dead-letter-exchange") {
        let mut dead_letter = Map::new();
        dead_letter.insert("exchange".to_owned(), json!(exchange));
        if let Some(key) = take_text(arguments, "x-dead-letter-routing-key") {
            dead_letter.insert("key".to_owned(), json!(key));
        }
        json.insert("dead_letter".to_owned(), Json::Object(dead_letter));
    }
    let limit = take(arguments, "x-delivery-limit", |value| {
        match value.as_integer()? {
            limit if limit < 0 => Some(json!("unlimited")),
            limit => u32::try_from(limit).ok().map(|limit| json!(limit)),
        }
    });
    let duration = |value: &FieldValue| {
        let milliseconds = u64::try_from(value.as_integer()?).ok()?;
        let text = humantime::format_duration(Duration::from_millis(milliseconds)).to_string();
        // Only what reads back as the same number.
        super::units::duration(&text).ok()?;
        Some(json!(text))
    };
    let number = |value: &FieldValue| Some(json!(u64::try_from(value.as_integer()?).ok()?));
    let size = |value: &FieldValue| {
        let bytes = u64::try_from(value.as_integer()?).ok()?;
        Some(json!(format!("{bytes}B")))
    };
    let overflow = |value: &FieldValue| {
        let word = value.as_text()?;
        Overflow::from_name(word).map(|_| json!(word))
    };
    let yes = |value: &FieldValue| (*value == FieldValue::Bool(true)).then(|| json!(true));
    let values = [
        ("delivery_limit", limit),
        ("message_ttl", take(arguments, "x-message-ttl", duration)),
        ("expires", take(arguments, "x-expires", duration)),
        ("max_length", take(arguments, "x-max-length", number)),
        (
            "max_length_bytes",
            take(arguments, "x-max-length-bytes", size),
        ),
        ("overflow", take(arguments, "x-overflow", overflow)),
        (
            "single_active_consumer",
            take(arguments, "x-single-active-consumer", yes),
        ),
        ("max_priority", take(arguments, "x-max-priority", number)),
    ];
    for (key, value) in values {
        if let Some(value) = value {
            json.insert(key.to_owned(), value);
        }
    }
}

/// Takes an argument out if its value can be said.
fn take(
    arguments: &mut FieldTable,
    name: &str,
    say: impl Fn(&FieldValue) -> Option<Json>,
) -> Option<Json> {
    let said = say(arguments.get(name)?)?;
    arguments.remove(name);
    Some(said)
}

fn take_text(arguments: &mut FieldTable, name: &str) -> Option<String> {
    let text = arguments.get(name)?.as_text()?.to_owned();
    arguments.remove(name);
    Some(text)
}

fn policy_json(policy: &Policy) -> Json {
    let mut json = Map::new();
    json.insert("pattern".to_owned(), json!(policy.pattern.as_str()));
    if policy.apply_to != ApplyTo::All {
        json.insert("apply_to".to_owned(), json!(policy.apply_to.to_string()));
    }
    if policy.priority != 0 {
        json.insert("priority".to_owned(), json!(policy.priority));
    }
    json.insert("definition".to_owned(), table_to_json(&policy.definition));
    Json::Object(json)
}

fn queue_binding(binding: &Binding) -> Json {
    let mut json = Map::new();
    json.insert("exchange".to_owned(), json!(binding.source.as_str()));
    json.insert("key".to_owned(), json!(binding.key.as_str()));
    insert(&mut json, "arguments", table_to_json(&binding.arguments));
    Json::Object(json)
}

fn between_exchanges(binding: &Binding) -> Option<Json> {
    let Destination::Exchange(destination) = &binding.destination else {
        return None;
    };
    let mut json = Map::new();
    json.insert("source".to_owned(), json!(binding.source.as_str()));
    json.insert("destination".to_owned(), json!(destination.as_str()));
    json.insert("destination_type".to_owned(), json!("exchange"));
    json.insert("key".to_owned(), json!(binding.key.as_str()));
    insert(&mut json, "arguments", table_to_json(&binding.arguments));
    Some(Json::Object(json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::broker::BrokerFacts;
    use crate::diagnostic::Source;
    use crate::topology::{
        DeadLetterKey, DeadLettering, DeliveryLimit, ExchangeType, QueueType, RoutingKey,
    };

    fn parsed(text: &str) -> Topology {
        let source = Source {
            name: "t.yaml".to_owned(),
            text: text.to_owned(),
        };
        super::super::parse(std::slice::from_ref(&source), &|_| None).unwrap_or_else(|found| {
            panic!("{}\n{text}", crate::diagnostic::render(&found, &[source]))
        })
    }

    /// What a broker shows after a topology was applied to it.
    fn observed(topology: &Topology, facts: &BrokerFacts) -> Topology {
        let mut there = topology.clone();
        for (name, queue) in &mut there.queues {
            queue.arguments = topology.queues[name].declared_arguments(facts);
        }
        for exchange in there.exchanges.values_mut() {
            exchange.arguments = exchange.declared_arguments();
        }
        there
    }

    fn name() -> impl proptest::strategy::Strategy<Value = String> {
        "[a-zé日 :#'\"/*{}\\[\\]&!|>%@`,?-][a-z0-9é日 :#'\"/*{}$\\\\-]{0,20}"
    }

    fn queue() -> impl proptest::strategy::Strategy<Value = Queue> {
        let limits = (
            proptest::option::of(0_u64..5_000_000_000),
            proptest::option::of(0_u64..5_000_000_000),
            proptest::option::of(0_u64..4_000_000_000),
            proptest::option::of(0_u32..1000),
        );
        (limits, any::<bool>(), any::<bool>(), 0_u8..4).prop_map(
            |((length, bytes, ttl, limit), durable, sac, kind)| Queue {
                kind: [
                    None,
                    Some(QueueType::Classic),
                    Some(QueueType::Quorum),
                    Some(QueueType::Stream),
                ][usize::from(kind)]
                .clone(),
                durable,
                max_length: length,
                max_length_bytes: bytes,
                message_ttl: ttl.map(Duration::from_millis),
                delivery_limit: limit.map(|limit| match limit {
                    0..500 => DeliveryLimit::Unlimited,
                    limit => DeliveryLimit::Finite(limit),
                }),
                single_active_consumer: sac,
                overflow: sac.then_some(Overflow::RejectPublish),
                ..Queue::default()
            },
        )
    }

    proptest! {
        #[test]
        fn an_exported_topology_plans_empty(
            names in proptest::collection::btree_set(name(), 1..6),
            queues in proptest::collection::vec(queue(), 6),
            keys in proptest::collection::vec(name(), 6),
        ) {
            let facts = BrokerFacts::new("RabbitMQ", "4.0.5");
            let mut topology = Topology::default();
            let mut last: Option<ExchangeName> = None;
            for ((name, mut queue), key) in names.into_iter().zip(queues).zip(keys) {
                let exchange = ExchangeName::new(name.clone()).expect("exchange");
                let queue_name = QueueName::new(name).expect("queue");
                let key = RoutingKey::new(key).expect("key");
                let mut declared = Exchange::durable(ExchangeType::Topic);
                declared.alternate = last.clone();
                topology.exchanges.insert(exchange.clone(), declared);
                queue.dead_lettering = last.map(|exchange| DeadLettering {
                    exchange,
                    key: DeadLetterKey::Replaced(key.clone()),
                });
                topology.queues.insert(queue_name.clone(), queue);
                topology.bindings.push(Binding {
                    source: exchange.clone(),
                    destination: Destination::Queue(queue_name),
                    key,
                    arguments: FieldTable::from([("n".to_owned(), FieldValue::I64(5))]),
                });
                last = Some(exchange);
            }
            let there = observed(&topology, &facts);
            let exported = export(&there).expect("exported");
            prop_assert_eq!(&exported.left_out, &Vec::<String>::new());
            let read = parsed(&exported.text);
            let again = observed(&read, &facts);
            prop_assert_eq!(&again.exchanges, &there.exchanges);
            let arguments = |topology: &Topology| -> Vec<FieldTable> {
                topology.queues.values().map(|queue| queue.arguments.clone()).collect()
            };
            prop_assert_eq!(arguments(&again), arguments(&there));
            prop_assert_eq!(read.bindings.len(), topology.bindings.len());
            for binding in &topology.bindings {
                prop_assert!(read.bindings.contains(binding), "{}", binding);
            }
        }
    }

    #[test]
    fn what_the_format_cannot_say_is_told() {
        let mut topology = Topology::default();
        let queue = Queue {
            arguments: FieldTable::from([
                ("x-delivery-limit".to_owned(), FieldValue::text("3")),
                ("x-own".to_owned(), FieldValue::I64(1)),
            ]),
            ..Queue::default()
        };
        topology
            .queues
            .insert(QueueName::new("q").expect("name"), queue);
        let exported = export(&topology).expect("exported");
        assert_eq!(
            exported.left_out,
            ["queue 'q': x-delivery-limit is \"3\", which the file format cannot say"]
        );
        assert!(exported.text.contains("x-own: 1"), "{}", exported.text);
    }
}
