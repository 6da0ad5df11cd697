//! A topology read from a broker, written as a file that plans empty against it.

mod queue;
mod routing_tests;
mod users;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use crate::broker::BrokerFacts;
use crate::field::{FieldTable, table_to_json};
use crate::topology::{
    ApplyTo, Binding, Destination, Exchange, ExchangeName, Pattern, Policy, PolicyKind, QueueName,
    Topology,
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
    if let Some(vhost) = users::vhost_json(topology, from_file) {
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
            let json = queue::queue_json(topology, bind, name, queue, &mut left_out);
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
    insert(&mut file, "users", users::users_json(topology));
    insert(&mut file, "permissions", users::permissions_json(topology));
    let owns: Vec<&str> = topology.owns.iter().map(Pattern::as_str).collect();
    insert(&mut file, "owns", json!(owns));
    let mut elsewhere = Map::new();
    insert(&mut elsewhere, "exchanges", json!(dangling(topology)));
    insert(&mut elsewhere, "queues", json!(dangling_queues(topology)));
    insert(&mut file, "elsewhere", Json::Object(elsewhere));
    insert(&mut file, "tests", routing_tests::tests_json(topology));
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
    named.extend(topology.tests.iter().map(|test| test.exchange.to_string()));
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
    let expected = topology
        .tests
        .iter()
        .flat_map(|test| test.expectations())
        .filter_map(|(_, queues)| queues)
        .flatten();
    bound
        .chain(resting)
        .chain(expected)
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
mod tests;
