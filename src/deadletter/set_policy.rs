//! How a policy gives a queue its settings, as a command or in words.

use crate::printable::shell_word;
use crate::topology::{QueueName, VhostName};

/// Which policy is in force for a queue. Only one is at a time, and setting it
/// anew replaces all its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InForce<'a> {
    /// None.
    None,
    /// The one of this name.
    Named(&'a str),
    /// One whose name is not known here.
    Unnamed,
    /// That is not told (yet).
    Untold,
}

/// A way out: words, and a command where one can be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetPolicy {
    /// A command on one line, safe to paste whatever the names are.
    Command(String),
    /// What to do where another policy would be put out of force.
    Words(String),
}

/// How the queue gets these settings (JSON without the braces) by a policy; a new
/// one is named after the queue, `purpose` first.
#[must_use]
pub fn set_policy(
    vhost: &VhostName,
    queue: &QueueName,
    in_force: InForce<'_>,
    purpose: &str,
    settings: &str,
) -> SetPolicy {
    let policy = match in_force {
        InForce::None => {
            let pattern = format!("^{}$", fancy_regex::escape(queue.as_str()));
            return SetPolicy::Command(format!(
                "rabbitmqctl set_policy --vhost {} --apply-to queues {} {} '{{{settings}}}'",
                vhost.shell_quoted(),
                shell_word(&format!("{purpose}-{queue}")),
                shell_word(&pattern)
            ));
        }
        InForce::Named(name) => format!("in the policy '{name}' that is in force for it"),
        InForce::Unnamed => "in the policy that is in force for it".to_owned(),
        InForce::Untold => format!(
            "in the policy that is in force for it, or in a new one where there is none (rabbitmqctl list_policies --vhost {})",
            vhost.shell_quoted()
        ),
    };
    SetPolicy::Words(format!(
        "set {settings} {policy}; carry its other settings over: who sets a policy anew replaces all of them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_one_word_and_one_pattern() {
        let vhost = VhostName::new("my vhost").expect("name");
        for (name, expected) in [
            ("orders", "keep-orders '^orders$'"),
            ("a.b", r"keep-a.b '^a\.b$'"),
            ("-x", "keep--x '^-x$'"),
            (
                "'; rm -rf ~ (",
                r"'keep-'\''; rm -rf ~ (' '^'\''; rm -rf ~ \($'",
            ),
            ("a\n.b", r"$'keep-a\012.b' '^a\n\.b$'"),
        ] {
            let name = QueueName::new(name).expect("name");
            let set = set_policy(&vhost, &name, InForce::None, "keep", "\"a\":1");
            assert_eq!(
                set,
                SetPolicy::Command(format!(
                    "rabbitmqctl set_policy --vhost 'my vhost' --apply-to queues {expected} '{{\"a\":1}}'"
                ))
            );
        }
    }

    #[test]
    fn a_policy_in_force_is_not_put_out_of_force() {
        let vhost = VhostName::new("v").expect("name");
        let queue = QueueName::new("q").expect("name");
        for (in_force, expected) in [
            (InForce::Named("p"), "in the policy 'p' that is in force"),
            (InForce::Unnamed, "in the policy that is in force"),
            (InForce::Untold, "list_policies --vhost v"),
        ] {
            match set_policy(&vhost, &queue, in_force, "keep", "\"a\":1") {
                SetPolicy::Words(words) => {
                    assert!(words.contains(expected), "{words}");
                    assert!(words.contains("carry its other settings over"), "{words}");
                }
                SetPolicy::Command(command) => panic!("{command}"),
            }
        }
    }
}
