//! Dead letters that nobody looked after yet.

use crate::doctor::check::EMPTY;
use crate::doctor::{NotTold, Report, Status, SubjectKind, VhostContents, VhostSeen};

pub(super) fn check(vhost: &VhostSeen, contents: &VhostContents, report: &mut Report) {
    let mut not_counted = 0;
    for name in contents.resting.queues.keys() {
        report.judged(EMPTY, 1);
        let Some(seen) = contents.queues.get(name) else {
            continue;
        };
        let count = match seen.messages {
            None => {
                not_counted += 1;
                continue;
            }
            Some(0) => continue,
            Some(count) => count,
        };
        let age = match contents.oldest_seconds.get(name) {
            Some(seconds) => format!(", the oldest died {} ago", age(*seconds)),
            None => String::new(),
        };
        let vhost_flag = vhost.name.shell_quoted();
        report.find(
            EMPTY,
            vhost.finding(
                Status::Warn,
                SubjectKind::Queue,
                name.as_str(),
                format!(
                    "{count} dead letter{}{age}",
                    if count == 1 { "" } else { "s" }
                ),
                format!(
                    "see what they are: mq dlq inspect {} --vhost {vhost_flag}",
                    name.shell_quoted()
                ),
            ),
        );
    }
    if not_counted > 0 {
        let why = NotTold::yet(format!(
            "the broker does not count the messages of {not_counted} dead-letter queues (yet)"
        ));
        report.find(EMPTY, vhost.not_told(&why));
    }
    if contents.resting.incomplete {
        let why = NotTold {
            why: "dead letters go through an exchange whose routing is not known here: there may be more dead-letter queues".to_owned(),
            fix: "look at the queues behind it: `mq topology graph --live`".to_owned(),
        };
        report.find(EMPTY, vhost.not_told(&why));
    }
}

/// The largest unit: `3 d`, `5 min`.
fn age(seconds: u64) -> String {
    for (unit, name) in [(86_400, "d"), (3600, "h"), (60, "min")] {
        if seconds >= unit {
            return format!("{} {name}", seconds / unit);
        }
    }
    format!("{seconds} s")
}
