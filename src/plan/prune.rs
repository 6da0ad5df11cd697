//! What an earlier version of the files may have made and this one does not want.
//!
//! There is no state file to remember it. Instead the files say which names
//! nobody else uses (`owns:`); what has such a name and is not declared is theirs.

use crate::plan::Object;
use crate::topology::{Destination, Topology};

/// The queues, exchanges, policies and bindings of `there` that may go.
///
/// A binding is owned by the name of what it leads to; one whose end goes is
/// listed too, for it goes with it.
#[must_use]
pub fn prunable(wanted: &Topology, there: &Topology) -> Topology {
    let owned = |name: &str| {
        !name.starts_with("amq.")
            && !name.is_empty()
            && !wanted.elsewhere.contains(name)
            && wanted.owns.iter().any(|pattern| pattern.is_found_in(name))
    };
    let wanted_bindings = wanted.binding_identities();
    let mut prunable = Topology::default();
    for (name, queue) in &there.queues {
        if owned(name.as_str()) && !wanted.queues.contains_key(name) {
            prunable.queues.insert(name.clone(), queue.clone());
        }
    }
    for (name, exchange) in &there.exchanges {
        if owned(name.as_str()) && !wanted.exchanges.contains_key(name) {
            prunable.exchanges.insert(name.clone(), exchange.clone());
        }
    }
    for (key, policy) in &there.policies {
        if owned(key.1.as_str()) && !wanted.policies.contains_key(key) {
            prunable.policies.insert(key.clone(), policy.clone());
        }
    }
    for binding in &there.bindings {
        let is_owned = match &binding.destination {
            // A queue of a single connection is not listed; its bindings are its own.
            Destination::Queue(name) => owned(name.as_str()) && there.queues.contains_key(name),
            Destination::Exchange(name) => owned(name.as_str()),
        };
        if is_owned && !wanted_bindings.contains(&binding.identity()) {
            prunable.bindings.push(binding.clone());
        }
    }
    prunable
}

/// The objects of a prunable topology that need a step of their own, in the
/// order in which they go: bindings between what stays, queues, exchanges, policies.
#[must_use]
pub fn pruned_objects(prunable: &Topology) -> Vec<Object> {
    let mut objects: Vec<Object> = loose_bindings(prunable)
        .map(|binding| Object::Binding(binding.clone()))
        .collect();
    objects.extend(prunable.queues.keys().cloned().map(Object::Queue));
    let exchanges = super::exchanges_last_first(prunable);
    objects.extend(exchanges.into_iter().map(Object::Exchange));
    let policies = prunable.policies.keys().cloned();
    objects.extend(policies.map(|(kind, name)| Object::Policy(kind, name)));
    objects
}

/// Bindings neither of whose ends goes.
fn loose_bindings(prunable: &Topology) -> impl Iterator<Item = &crate::topology::Binding> {
    prunable.bindings.iter().filter(|binding| {
        let end_goes = match &binding.destination {
            Destination::Queue(name) => prunable.queues.contains_key(name),
            Destination::Exchange(name) => prunable.exchanges.contains_key(name),
        };
        !end_goes && !prunable.exchanges.contains_key(&binding.source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologyfile::parsed as topology;

    fn pruned(wanted: &str, there: &str) -> Vec<String> {
        pruned_objects(&prunable(&topology(wanted), &topology(there)))
            .iter()
            .map(|object| format!("{} {}", object.kind(), object.name()))
            .collect()
    }

    const THERE: &str = "
exchanges: { o.in: { type: topic }, o.gone: { type: fanout }, theirs: { type: fanout } }
queues:
  o.work: { bind: [ { exchange: o.in, key: new }, { exchange: o.in, key: old }, { exchange: o.gone }, { exchange: amq.topic, key: k } ] }
  o.old: { bind: [ { exchange: o.in, key: x } ] }
  theirs: { bind: [ { exchange: o.in, key: x } ] }
policies: { o.p: { pattern: '^o', definition: { max-length: 1 } }, p: { pattern: '^o', definition: { max-length: 1 } } }
";
    const WANTED: &str = "
exchanges: { o.in: { type: topic } }
queues: { o.work: { bind: [ { exchange: o.in, key: new } ] } }
";

    #[test]
    fn what_is_owned_and_not_declared_goes() {
        assert_eq!(
            pruned(&format!("owns: [ '^o\\.' ]{WANTED}"), THERE),
            [
                "binding o.in -> o.work [old]",
                "binding amq.topic -> o.work [k]",
                "queue o.old",
                "exchange o.gone",
                "policy o.p",
            ]
        );
    }

    #[test]
    fn what_others_declare_stays() {
        let wanted = format!(
            "owns: [ '^o\\.' ]\nelsewhere: {{ exchanges: [ o.gone ], queues: [ o.old ] }}{WANTED}"
        );
        assert!(
            !pruned(&wanted, THERE)
                .iter()
                .any(|name| name.contains("exchange o.gone") || name.contains("queue o.old"))
        );
    }

    #[test]
    fn nothing_goes_that_the_files_do_not_own() {
        assert!(pruned(WANTED, THERE).is_empty());
        assert!(pruned(&format!("owns: [ '^p$' ]{WANTED}"), THERE) == ["policy p"]);
        // What every vhost has is nobody's.
        assert!(
            !pruned(&format!("owns: [ '' ]{WANTED}"), THERE)
                .iter()
                .any(|name| name.starts_with("exchange amq"))
        );
    }
}
