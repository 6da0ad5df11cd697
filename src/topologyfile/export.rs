//! A topology read from a broker, written as a file that plans empty against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::export_users;
use crate::broker::BrokerFacts;
use crate::field::{FieldTable, FieldValue, table_to_json};
use crate::topology::{
    ApplyTo, Binding, DeadLetterStrategy, DelayedRetryType, Destination, Exchange, ExchangeName,
    LeaderLocator, MaxAge, Overflow, Pattern, Policy, PolicyKind, Queue, QueueName, QueueType,
    RetryPolicy, Topology,
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
    write(topology, false)
}

/// Writes a topology that was read from files: the same one without short
/// forms and variables.
///
/// # Errors
/// The YAML library's words, should it refuse a value.
pub fn expanded(topology: &Topology) -> Result<Exported, String> {
    // Where a value is sent otherwise to other versions, the newest has a word
    // for it that the file format turns back.
    write(&topology.as_declared(&BrokerFacts::newest_measured()), true)
}

/// `from_file`: what a broker has anyway is written where the file says it.
fn write(topology: &Topology, from_file: bool) -> Result<Exported, String> {
    let mut left_out = Vec::new();
    let mut file = Map::new();
    file.insert("version".to_owned(), json!(1));
    if let Some(vhost) = export_users::vhost_json(topology, from_file) {
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
            let json = queue_json(topology, bind, name, queue, &mut left_out);
            (name.to_string(), json)
        })
        .collect();
    insert(&mut file, "queues", Json::Object(queues));
    let bindings: Vec<Json> = topology
        .bindings
        .iter()
        .filter_map(|binding| not_of_a_queue(topology, binding))
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
    let owns: Vec<&str> = topology.owns.iter().map(Pattern::as_str).collect();
    insert(&mut file, "owns", json!(owns));
    let mut elsewhere = Map::new();
    insert(&mut elsewhere, "exchanges", json!(dangling(topology)));
    insert(&mut elsewhere, "queues", json!(dangling_queues(topology)));
    insert(&mut file, "elsewhere", Json::Object(elsewhere));
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

/// Queues that are named and not there.
fn dangling_queues(topology: &Topology) -> BTreeSet<&str> {
    let bound = topology
        .bindings
        .iter()
        .filter_map(|binding| match &binding.destination {
            Destination::Queue(name) => Some(name),
            Destination::Exchange(_) => None,
        });
    let resting = topology
        .queues
        .values()
        .filter_map(|queue| queue.retry.as_ref()?.dead_letter_queue.as_ref());
    bound
        .chain(resting)
        .filter(|name| !name.is_reserved() && !topology.queues.contains_key(name))
        .map(QueueName::as_str)
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
    topology: &Topology,
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
    // What a type takes and ignores would be a mistake in a file.
    let kind = json.get("type").and_then(Json::as_str);
    let kind = kind.map(QueueType::from_name);
    let overflow = || {
        let own = queue.arguments.get("x-overflow");
        own.and_then(FieldValue::as_text)
            .and_then(Overflow::from_name)
            .or_else(|| topology.effective_queue(name)?.overflow)
    };
    let (mut sayable, unsayable): (FieldTable, FieldTable) = arguments
        .into_iter()
        .partition(|(argument, value)| is_in_force(kind.as_ref(), &overflow, argument, value));
    typed(&mut json, &mut sayable);
    let mut arguments = sayable;
    arguments.extend(unsayable);
    // What is left under a name that has a typed key has a value the key cannot say.
    arguments.retain(|argument, value| {
        let unsaid = super::queue_fields::typed_key(argument).is_some();
        if unsaid {
            left_out.push(format!(
                "queue '{name}': {argument} is {}, which the file format cannot say",
                value.to_json()
            ));
        }
        !unsaid
    });
    insert(&mut json, "arguments", table_to_json(&arguments));
    if let Some(retry) = &queue.retry {
        json.insert("retry".to_owned(), retry_json(retry));
    }
    if let Some(description) = &queue.description {
        json.insert("description".to_owned(), json!(description));
    }
    Json::Object(json)
}

/// Only a file has it; a broker knows nothing of it.
fn retry_json(retry: &RetryPolicy) -> Json {
    let mut json = Map::new();
    if let Some(strategy) = retry.strategy {
        json.insert("strategy".to_owned(), json!(strategy.to_string()));
    }
    let delays: Vec<Json> = retry
        .delays
        .iter()
        .map(|delay| json!(humantime::format_duration(*delay).to_string()))
        .collect();
    insert(&mut json, "delays", Json::Array(delays));
    if let Some(attempts) = retry.max_attempts {
        json.insert("max_attempts".to_owned(), json!(attempts));
    }
    if let Some(queue) = &retry.dead_letter_queue {
        json.insert("dead_letter_queue".to_owned(), json!(queue.as_str()));
    }
    Json::Object(json)
}

/// Whether the broker does what the argument says: not where the type has no
/// such thing, and not where a condition of it is missing.
fn is_in_force(
    kind: Option<&QueueType>,
    overflow: &dyn Fn() -> Option<Overflow>,
    argument: &str,
    value: &FieldValue,
) -> bool {
    let is_quorum = kind == Some(&QueueType::Quorum);
    match (argument, value.as_text()) {
        ("x-overflow", Some("reject-publish-dlx")) => !is_quorum,
        ("x-dead-letter-strategy", Some("at-least-once")) => {
            is_quorum && overflow() == Some(Overflow::RejectPublish)
        }
        _ => super::queue_fields::typed_key(argument)
            .is_none_or(|key| super::queue_types::takes(kind, key)),
    }
}

/// Moves arguments into the keys that are made for them.
fn typed(json: &mut Map<String, Json>, arguments: &mut FieldTable) {
    if let Some(exchange) = take_text(arguments, "x-dead-letter-exchange") {
        let mut dead_letter = Map::new();
        dead_letter.insert("exchange".to_owned(), json!(exchange));
        if let Some(key) = take_text(arguments, "x-dead-letter-routing-key") {
            dead_letter.insert("key".to_owned(), json!(key));
        }
        let known = |word: &str| DeadLetterStrategy::from_name(word).is_some();
        if let Some(strategy) = take_word(arguments, "x-dead-letter-strategy", known) {
            dead_letter.insert("strategy".to_owned(), strategy);
        }
        json.insert("dead_letter".to_owned(), Json::Object(dead_letter));
    }
    if let Some(delayed) = delayed_retry(arguments) {
        json.insert("delayed_retry".to_owned(), delayed);
    }
    let limit = take(arguments, "x-delivery-limit", |value| {
        match value.as_integer()? {
            limit if limit < 0 => Some(json!("unlimited")),
            limit => u32::try_from(limit).ok().map(|limit| json!(limit)),
        }
    });
    let number = |value: &FieldValue| Some(json!(u64::try_from(value.as_integer()?).ok()?));
    let size = |value: &FieldValue| {
        let bytes = u64::try_from(value.as_integer()?).ok()?;
        Some(json!(format!("{bytes}B")))
    };
    let small = |range: std::ops::RangeInclusive<i64>| {
        move |value: &FieldValue| {
            let number = value.as_integer().filter(|number| range.contains(number))?;
            Some(json!(number))
        }
    };
    let filter = |value: &FieldValue| {
        let bytes = value.as_integer().filter(|n| (16..=255).contains(n))?;
        Some(json!(format!("{bytes}B")))
    };
    let age = |value: &FieldValue| {
        let text = value.as_text()?;
        MaxAge::from_broker(text).map(|_| json!(text))
    };
    let locator = |word: &str| LeaderLocator::ALL.iter().any(|(known, _)| *known == word);
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
        (
            "overflow",
            take_word(arguments, "x-overflow", |word| {
                Overflow::from_name(word).is_some()
            }),
        ),
        (
            "single_active_consumer",
            take(arguments, "x-single-active-consumer", yes),
        ),
        (
            "max_priority",
            take(arguments, "x-max-priority", small(1..=255)),
        ),
        (
            "consumer_timeout",
            take(arguments, "x-consumer-timeout", duration),
        ),
        (
            "leader_locator",
            take_word(arguments, "x-queue-leader-locator", locator),
        ),
        (
            "initial_cluster_size",
            take(arguments, "x-quorum-initial-group-size", small(1..=1000)),
        ),
        (
            "initial_cluster_size",
            take(arguments, "x-initial-cluster-size", small(1..=1000)),
        ),
        ("max_age", take(arguments, "x-max-age", age)),
        (
            "max_segment_size",
            take(arguments, "x-stream-max-segment-size-bytes", size),
        ),
        (
            "filter_size",
            take(arguments, "x-stream-filter-size-bytes", filter),
        ),
    ];
    for (key, value) in values {
        if let Some(value) = value {
            json.insert(key.to_owned(), value);
        }
    }
}

fn duration(value: &FieldValue) -> Option<Json> {
    let milliseconds = u64::try_from(value.as_integer()?).ok()?;
    let text = humantime::format_duration(Duration::from_millis(milliseconds)).to_string();
    // Only what reads back as the same number.
    super::units::duration(&text).ok()?;
    Some(json!(text))
}

/// All three arguments together, or none: alone they say something else.
fn delayed_retry(arguments: &mut FieldTable) -> Option<Json> {
    let word = arguments.get("x-delayed-retry-type")?.as_text()?;
    let kind = DelayedRetryType::from_name(word)?;
    let shortest = arguments.get("x-delayed-retry-min")?;
    let longest = arguments.get("x-delayed-retry-max");
    let in_order = longest.is_none_or(|longest| longest.as_integer() >= shortest.as_integer());
    if shortest.as_integer() == Some(0) || !in_order {
        return None;
    }
    let mut json = Map::new();
    json.insert("type".to_owned(), json!(kind.to_string()));
    json.insert("min".to_owned(), duration(shortest)?);
    if let Some(longest) = longest {
        json.insert("max".to_owned(), duration(longest)?);
    }
    arguments.retain(|argument, _| !argument.starts_with("x-delayed-retry-"));
    Some(Json::Object(json))
}

/// Takes one of the words out that the file has too.
fn take_word(
    arguments: &mut FieldTable,
    name: &str,
    is_known: impl Fn(&str) -> bool,
) -> Option<Json> {
    take(arguments, name, |value| {
        let word = value.as_text().filter(|word| is_known(word))?;
        Some(json!(word))
    })
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
    if let Some(description) = &policy.description {
        json.insert("description".to_owned(), json!(description));
    }
    Json::Object(json)
}

fn queue_binding(binding: &Binding) -> Json {
    let mut json = Map::new();
    json.insert("exchange".to_owned(), json!(binding.source.as_str()));
    json.insert("key".to_owned(), json!(binding.key.as_str()));
    insert(&mut json, "arguments", table_to_json(&binding.arguments));
    Json::Object(json)
}

/// A binding that stands under no queue: it leads to an exchange, or to a
/// queue that others declare. Those of the broker's own queues are its own.
fn not_of_a_queue(topology: &Topology, binding: &Binding) -> Option<Json> {
    let (kind, destination) = match &binding.destination {
        Destination::Exchange(name) => ("exchange", name.as_str()),
        Destination::Queue(name) => {
            if name.is_reserved() || topology.queues.contains_key(name) {
                return None;
            }
            ("queue", name.as_str())
        }
    };
    let mut json = Map::new();
    json.insert("source".to_owned(), json!(binding.source.as_str()));
    json.insert("destination".to_owned(), json!(destination));
    json.insert("destination_type".to_owned(), json!(kind));
    json.insert("key".to_owned(), json!(binding.key.as_str()));
    insert(&mut json, "arguments", table_to_json(&binding.arguments));
    Some(Json::Object(json))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diagnostic::Source;
    use crate::topology::{
        DeadLetterKey, DeadLettering, DelayedRetry, DeliveryLimit, ExchangeType, RoutingKey,
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
        let waits = (
            proptest::option::of((1_u64..100_000, proptest::option::of(0_u64..100_000))),
            proptest::option::of(1_u64..4_000_000_000),
            proptest::option::of(1_u64..10_000_000),
            proptest::option::of(1_u32..9),
            proptest::option::of((1_u64..3_000_000_000, 16_u8..=255)),
        );
        (limits, waits, any::<bool>(), any::<bool>(), 0_u8..4).prop_map(
            |(
                (length, bytes, ttl, limit),
                (delayed, timeout, age, size, stream),
                durable,
                sac,
                kind,
            )| {
                let anything = Queue {
                    max_length: length,
                    max_length_bytes: bytes,
                    message_ttl: ttl.map(Duration::from_millis),
                    consumer_timeout: timeout.map(Duration::from_millis),
                    ..Queue::default()
                };
                let overflow = sac.then_some(Overflow::RejectPublish);
                match kind {
                    0 => Queue {
                        durable,
                        single_active_consumer: sac,
                        overflow,
                        ..anything
                    },
                    1 => Queue {
                        kind: Some(QueueType::Classic),
                        durable,
                        auto_delete: sac,
                        max_priority: size.and_then(|size| u8::try_from(size).ok()),
                        overflow: sac.then_some(Overflow::RejectPublishDlx),
                        ..anything
                    },
                    2 => Queue {
                        kind: Some(QueueType::Quorum),
                        delivery_limit: limit.map(|limit| match limit {
                            0..500 => DeliveryLimit::Unlimited,
                            limit => DeliveryLimit::Finite(limit),
                        }),
                        single_active_consumer: sac,
                        overflow,
                        dead_letter_strategy: sac.then_some(DeadLetterStrategy::AtLeastOnce),
                        delayed_retry: delayed.map(|(min, more)| DelayedRetry {
                            kind: DelayedRetryType::Failed,
                            min: Duration::from_millis(min),
                            max: more.map(|more| Duration::from_millis(min + more)),
                        }),
                        leader_locator: sac.then_some(LeaderLocator::Balanced),
                        initial_cluster_size: size,
                        ..anything
                    },
                    _ => Queue {
                        kind: Some(QueueType::Stream),
                        max_length: None,
                        message_ttl: None,
                        max_age: age.and_then(MaxAge::from_seconds),
                        max_segment_size: stream.map(|(segment, _)| segment),
                        filter_size: stream.map(|(_, filter)| filter),
                        leader_locator: sac.then_some(LeaderLocator::ClientLocal),
                        initial_cluster_size: size,
                        ..anything
                    },
                }
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
                queue.dead_lettering = last
                    .filter(|_| queue.kind != Some(QueueType::Stream))
                    .map(|exchange| DeadLettering {
                        exchange,
                        key: DeadLetterKey::Replaced(key.clone()),
                    });
                if queue.dead_lettering.is_none() {
                    queue.dead_letter_strategy = None;
                }
                topology.queues.insert(queue_name.clone(), queue);
                topology.bindings.push(Binding {
                    source: exchange.clone(),
                    destination: Destination::Queue(queue_name),
                    key,
                    arguments: FieldTable::from([("n".to_owned(), FieldValue::I64(5))]),
                });
                last = Some(exchange);
            }
            let there = topology.as_declared(&facts);
            let exported = export(&there).expect("exported");
            prop_assert_eq!(&exported.left_out, &Vec::<String>::new());
            let read = parsed(&exported.text);
            let again = read.as_declared(&facts);
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

    #[test]
    fn at_least_once_is_written_where_it_is_in_force() {
        let arguments = [
            ("x-queue-type", "quorum"),
            ("x-dead-letter-exchange", ""),
            ("x-dead-letter-strategy", "at-least-once"),
            ("x-overflow", "reject-publish"),
        ];
        let mut topology = Topology::default();
        let queue = Queue {
            arguments: arguments
                .map(|(name, value)| (name.to_owned(), FieldValue::text(value)))
                .into(),
            ..Queue::default()
        };
        topology
            .queues
            .insert(QueueName::new("q").expect("name"), queue);
        let exported = export(&topology).expect("exported");
        assert_eq!(exported.left_out, Vec::<String>::new());
        let read = parsed(&exported.text);
        let queue = read.queues.values().next().expect("queue");
        assert_eq!(
            queue.dead_letter_strategy,
            Some(DeadLetterStrategy::AtLeastOnce)
        );
    }

    #[test]
    fn what_a_broker_took_and_ignores_is_told_and_not_written() {
        let text = FieldValue::text;
        let table = |pairs: &[(&str, FieldValue)]| -> FieldTable {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect()
        };
        let quorum = ("x-queue-type", text("quorum"));
        for (arguments, ignored) in [
            (
                table(&[quorum.clone(), ("x-overflow", text("reject-publish-dlx"))]),
                "x-overflow",
            ),
            (
                table(&[
                    quorum.clone(),
                    ("x-dead-letter-exchange", text("")),
                    ("x-dead-letter-strategy", text("at-least-once")),
                ]),
                "x-dead-letter-strategy",
            ),
            (
                table(&[quorum, ("x-stream-filter-size-bytes", FieldValue::I64(16))]),
                "x-stream-filter-size-bytes",
            ),
            (
                table(&[
                    ("x-delayed-retry-type", text("all")),
                    ("x-queue-type", text("classic")),
                ]),
                "x-delayed-retry-type",
            ),
        ] {
            let mut topology = Topology::default();
            let queue = Queue {
                arguments,
                ..Queue::default()
            };
            topology
                .queues
                .insert(QueueName::new("q").expect("name"), queue);
            let exported = export(&topology).expect("exported");
            let told: Vec<bool> = exported
                .left_out
                .iter()
                .map(|told| told.contains(ignored))
                .collect();
            assert_eq!(told, [true], "{ignored}");
            parsed(&exported.text);
        }
    }
}
