//! A 406, understood: which argument differs, what the file says, what the broker has.

use std::fmt;

use crate::plan::Object;
use crate::plan::difference::Difference;
use crate::topology::VhostName;

/// An object that exists otherwise than the file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The object.
    pub object: Object,
    /// What differs: all of it where the management API tells, else the first
    /// that the broker names, else nothing.
    pub differences: Vec<Difference>,
    /// The broker's words when it was declared again; empty if it said nothing,
    /// because it accepts and ignores the difference.
    pub said: String,
}

impl Conflict {
    /// Reads the broker's words (the same on 3.10, 4.0 and 4.3, cut at 255 bytes).
    #[must_use]
    pub fn read(object: Object, said: String) -> Self {
        Self {
            differences: read_difference(&said).into_iter().collect(),
            object,
            said,
        }
    }

    /// What can be done about it in `vhost`.
    #[must_use]
    pub fn ways_out(&self, vhost: &VhostName) -> Vec<String> {
        let mut ways = vec!["change the file to what the broker has".to_owned()];
        match &self.object {
            Object::Queue(name) => {
                if self
                    .differences
                    .iter()
                    .any(|difference| by_policy(&difference.argument))
                {
                    ways.push(
                        "leave the argument out of the file and set it by a policy, which can change later"
                            .to_owned(),
                    );
                }
                ways.push(format!(
                    "change the queue and keep its messages: mq topology migrate {} FILE, or apply with --allow migrate",
                    name.shell_quoted()
                ));
                ways.push(format!(
                    "declare a new queue under another name, bind it, drain '{name}', then delete '{name}'"
                ));
                ways.push(format!(
                    "if '{name}' is empty and may be lost: rabbitmqctl -p {} delete_queue {} --if-empty --if-unused, then apply again",
                    vhost.shell_quoted(),
                    name.shell_quoted()
                ));
            }
            Object::Exchange(name) => {
                ways.push(format!(
                    "declare a new exchange under another name and move the bindings, then delete '{name}'"
                ));
            }
            Object::Binding(_)
            | Object::Policy(..)
            | Object::Vhost
            | Object::User(_)
            | Object::Permissions(_)
            | Object::TopicPermission(_) => {}
        }
        ways
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return write!(f, "{}: {}", self.object, self.said);
        }
        for (at, difference) in self.differences.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{}: {difference}", self.object)?;
            if !difference.is_compared() {
                write!(f, " (RabbitMQ accepts this change and ignores it)")?;
            }
        }
        Ok(())
    }
}

/// Arguments that have a policy key of the same meaning (parameters.md, policies.md).
fn by_policy(argument: &str) -> bool {
    matches!(
        argument,
        "x-dead-letter-exchange"
            | "x-dead-letter-routing-key"
            | "x-message-ttl"
            | "x-expires"
            | "x-max-length"
            | "x-max-length-bytes"
            | "x-overflow"
            | "x-delivery-limit"
    )
}

/// `inequivalent arg 'A' for queue 'q' in vhost 'v': received X but current is Y`.
fn read_difference(said: &str) -> Option<Difference> {
    let rest = said.strip_prefix("inequivalent arg '")?;
    let (argument, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once(": received ")?;
    let (file, broker) = rest.split_once(" but current is ")?;
    Some(Difference {
        argument: argument.to_owned(),
        file: side(file),
        broker: side(broker),
    })
}

/// `none`, `'x'`, or `the value 'x' of type 't'`.
fn side(text: &str) -> Option<String> {
    if text == "none" {
        return None;
    }
    let text = text.strip_prefix("the value ").unwrap_or(text);
    let text = text.split("' of type").next().unwrap_or(text);
    Some(text.trim_matches('\'').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::QueueName;

    fn difference(said: &str) -> Option<(String, Option<String>, Option<String>)> {
        read_difference(said).map(|d| (d.argument, d.file, d.broker))
    }

    #[test]
    fn reads_every_wording_of_the_brokers() {
        let some = |text: &str| Some(text.to_owned());
        for (said, expected) in [
            (
                "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'",
                Some(("durable".to_owned(), some("false"), some("true"))),
            ),
            (
                "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is the value '5' of type 'long'",
                Some(("x-message-ttl".to_owned(), None, some("5"))),
            ),
            (
                "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '7' of type 'signedint' but current is none",
                Some(("x-message-ttl".to_owned(), some("7"), None)),
            ),
            (
                "invalid arg 'x-foo' for queue 'q' in vhost '/': nonsense",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(difference(said), expected, "{said}");
        }
    }

    #[test]
    fn offers_a_policy_where_one_can_do_it() {
        let conflict = |argument: &str| {
            Conflict::read(
                Object::Queue(QueueName::new("q").expect("name")),
                format!(
                    "inequivalent arg '{argument}' for queue 'q' in vhost '/': received '1' but current is '2'"
                ),
            )
        };
        let vhost = VhostName::new("/").expect("vhost");
        let offers = |argument: &str| {
            conflict(argument)
                .ways_out(&vhost)
                .iter()
                .any(|way| way.contains("policy"))
        };
        assert!(offers("x-max-length"));
        assert!(!offers("x-queue-type"));
    }
}
