//! Where a queue's setting comes from, its argument or a policy, and how it is set.

use crate::doctor::{QueueSeen, VhostSeen};
use crate::field::FieldValue;
use crate::topology::QueueName;

/// How a policy gives a queue these settings (JSON without the braces). Only one
/// policy is in force for a queue, so one that is there has to take them.
pub(super) fn set_policy(
    vhost: &VhostSeen,
    name: &QueueName,
    seen: &QueueSeen,
    settings: &str,
) -> String {
    match &seen.policy_name {
        Some(policy) => {
            format!("add {settings} to the policy '{policy}', which is in force for it")
        }
        None => format!(
            "rabbitmqctl set_policy --vhost {} --apply-to queues NAME {} '{{{settings}}}'",
            vhost.name.shell_quoted(),
            quoted(&format!("^{}$", fancy_regex::escape(name.as_str())))
        ),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::bench::vhost;

    #[test]
    fn a_hostile_name_stays_one_word_and_one_pattern() {
        let mut vhost = vhost("4.3.6", "queues: { q: { type: classic } }");
        let seen = vhost.queue("q").clone();
        for (name, expected) in [
            ("orders", "'^orders$'"),
            ("a.b", r"'^a\.b$'"),
            ("'; rm -rf ~ (", r"'^'\''; rm -rf ~ \($'"),
        ] {
            let name = QueueName::new(name).expect("name");
            let fix = set_policy(&vhost, &name, &seen, "\"a\":1");
            assert_eq!(
                fix,
                format!(
                    "rabbitmqctl set_policy --vhost v --apply-to queues NAME {expected} '{{\"a\":1}}'"
                )
            );
        }
    }
}
