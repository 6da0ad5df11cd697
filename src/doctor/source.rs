//! Where a queue's setting comes from, its argument or a policy, and how it is set.

use crate::deadletter::{self, InForce, SetPolicy};
use crate::doctor::{Fix, QueueSeen, VhostSeen};
use crate::field::FieldValue;
use crate::topology::QueueName;

/// How a policy gives a queue these settings (JSON without the braces), after
/// what has to be said before.
pub(super) fn set_policy(
    vhost: &VhostSeen,
    name: &QueueName,
    seen: &QueueSeen,
    (before, purpose, settings): (&str, &str, &str),
) -> Fix {
    let in_force = match (&seen.policy_name, &seen.policy) {
        (Some(policy), _) => InForce::Named(policy),
        (None, None) => InForce::Untold,
        (None, Some(_)) => InForce::None,
    };
    match deadletter::set_policy(&vhost.name, name, in_force, purpose, settings) {
        SetPolicy::Command(command) => Fix {
            words: format!("{before} run"),
            command: Some(command),
        },
        SetPolicy::Words(words) => Fix::from(format!("{before} {words}")),
    }
}

impl QueueSeen {
    /// Where the setting that policies call `setting` comes from, in words.
    pub(super) fn source(&self, setting: &str) -> String {
        let argument = format!("x-{setting}");
        if self.arguments.contains_key(&argument) {
            return format!("by the argument {argument}");
        }
        match &self.policy_name {
            Some(name) => format!("by {setting} of the policy '{name}'"),
            None => format!("by {setting} of a policy"),
        }
    }

    /// Whether the setting is by argument: then no policy can change it.
    pub(super) fn is_by_argument(&self, setting: &str) -> bool {
        self.arguments.contains_key(&format!("x-{setting}"))
    }

    /// Argument and policy, where both set it and the argument says something else.
    pub(super) fn overridden(&self, setting: &str) -> Option<(String, String)> {
        let argument = self.arguments.get(&format!("x-{setting}"))?.as_text()?;
        let policy = self.policy.as_ref()?.get(setting);
        let policy = policy.and_then(FieldValue::as_text)?;
        (argument != policy).then(|| (argument.to_owned(), policy.to_owned()))
    }
}
