//! Thirty looks at one message, on every queue that can cost it: it is still
//! there, or mq had refused to look.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "support of tests outside #[test] functions"
)]

use std::sync::Mutex;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, GiveUp, Sent};
use crate::vhost::Vhost;

/// More than the 21 that a default limit of 20 grants.
const LOOKS: usize = 30;

/// What a look took is given back sooner; else it is lost.
const GIVEN_BACK: Duration = Duration::from_secs(15);

/// A refusal stays one: it is not asked for thirty times.
const REFUSALS: usize = 3;

/// The delivery limit of work queues whose messages come with a count.
const CARRIED: usize = 20;

/// What must become of looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Nothing can happen: they are granted.
    Granted,
    /// They would cost the message.
    Refused,
    /// As mq likes, as long as the message stays.
    Either,
    /// There is no such queue on this broker.
    Absent,
}

use Expected::{Absent, Either, Granted, Refused};

/// When a policy is set, and how.
#[derive(Clone, Copy, Debug)]
enum Policy {
    None,
    /// Before the queue is made.
    Limit(i64),
    /// Where operators set it.
    Operator(i64),
    /// After mq had looked once: the statistics still tell of the time before.
    Late(i64),
    /// As `Limit`, and taken away after mq had looked once.
    Removed(i64),
}

/// How the message came.
#[derive(Clone, Copy, Debug)]
enum Came {
    Published,
    /// Dead-lettered after so many returns as its work queue had for a limit.
    DeliveryLimit,
    /// Dropped by `basic.reject`, which 4.3 counts too.
    Rejected,
}

/// A queue, how its message came, and what to expect on 3.10, 4.0 and 4.3.
struct Row(&'static str, Json, Policy, Came, [Expected; 3]);

/// Names are unique: they are those of the queues.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let quorum = |more: Json| {
        let mut all = json!({"x-queue-type": "quorum"});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let limit = |limit: i64| quorum(json!({"x-delivery-limit": limit}));
    let classic = || json!({"x-queue-type": "classic"});
    let none = || quorum(json!({}));
    // On 4.3 looks do not count, but what a message carried does.
    let finite = [Refused, Refused, Either];
    let on_4 = |one: Expected| [Absent, one, one];
    let (published, no_policy) = (Came::Published, Policy::None);
    vec![
        Row("classic", classic(), no_policy, published, [Granted; 3]),
        Row("classic-after-limit", classic(), no_policy, Came::DeliveryLimit, [Granted; 3]),
        Row("classic-after-reject", classic(), no_policy, Came::Rejected, [Granted; 3]),
        Row("none", none(), no_policy, published, [Granted, Refused, Either]),
        Row("unlimited", limit(-1), no_policy, published, [Refused, Granted, Granted]),
        Row("minus-5", limit(-5), no_policy, published, [Refused, Granted, Granted]),
        Row("zero", limit(0), no_policy, published, finite),
        Row("two", limit(2), no_policy, published, finite),
        Row("twenty", limit(20), no_policy, published, finite),
        Row("hundred", limit(100), no_policy, published, finite),
        Row("policy", none(), Policy::Limit(5), published, finite),
        Row("policy-unlimited", none(), Policy::Limit(-1), published, on_4(Granted)),
        Row("unlimited-policy", limit(-1), Policy::Limit(5), published, finite),
        Row("hundred-policy", limit(100), Policy::Limit(5), published, finite),
        Row("five-policy-unlimited", limit(5), Policy::Limit(-1), published, on_4(Either)),
        Row("operator", none(), Policy::Operator(5), published, finite),
        Row("unlimited-operator", limit(-1), Policy::Operator(5), published, finite),
        Row("late-policy", limit(-1), Policy::Late(3), published, [Refused, Either, Either]),
        Row("late-policy-on-none", none(), Policy::Late(3), published, [Refused, Refused, Either]),
        Row("removed-policy", none(), Policy::Removed(-1), published, on_4(Either)),
        Row("text", quorum(json!({"x-delivery-limit": "3"})), no_policy, published, [Either; 3]),
        Row("none-after-limit", none(), no_policy, Came::DeliveryLimit, [Granted, Refused, Either]),
        Row("two-after-limit", limit(2), no_policy, Came::DeliveryLimit, finite),
        Row("twenty-after-limit", limit(20), no_policy, Came::DeliveryLimit, finite),
        Row("unlimited-after-limit", limit(-1), no_policy, Came::DeliveryLimit, [Refused, Granted, Granted]),
        Row("zero-after-reject", limit(0), no_policy, Came::Rejected, finite),
        Row("none-after-reject", none(), no_policy, Came::Rejected, [Granted, Refused, Either]),
        Row("single-active", quorum(json!({"x-single-active-consumer": true})), no_policy, published, [Either; 3]),
        // A look hides the message for a while.
        Row("delayed", quorum(json!({"x-delivery-limit": -1, "x-delayed-retry-type": "all", "x-delayed-retry-min": 50})), no_policy, published, [Absent, Absent, Either]),
    ]
}

/// The queue of a row with its message.
struct Grave<'v> {
    vhost: &'v Vhost,
    row: Row,
}

impl<'v> Grave<'v> {
    /// `None`: this broker has no such queue.
    fn dig(vhost: &'v Vhost, row: Row) -> Option<Self> {
        let grave = Self { vhost, row };
        if grave.expected() == Absent {
            return None;
        }
        let Row(name, arguments, policy, came, _) = &grave.row;
        match policy {
            Policy::Limit(limit) | Policy::Removed(limit) => grave.set("policies", *limit),
            Policy::Operator(limit) => grave.set("operator-policies", *limit),
            Policy::None | Policy::Late(_) => {}
        }
        let kind = arguments["x-queue-type"].as_str().unwrap();
        vhost.queue(name, kind, arguments);
        let work = format!("{name}.work");
        match came {
            Came::Published => vhost.send([Sent::to_queue(name, "x")]),
            Came::DeliveryLimit | Came::Rejected => {
                let to = DeadLetter::to_queue(name).arguments();
                let mut arguments = to.as_object().unwrap().clone();
                // High enough to carry a count past most limits.
                arguments.insert("x-delivery-limit".to_owned(), json!(CARRIED));
                vhost.queue(&work, "quorum", &Json::Object(arguments));
                vhost.send([Sent::to_queue(&work, "x")]);
                match came {
                    Came::Rejected => vhost.give_up(&work, GiveUp::Reject, 1),
                    _ => vhost.give_up(&work, GiveUp::Return, CARRIED + 1),
                }
            }
        }
        vhost.wait_for_ready(name, 1);
        Some(grave)
    }

    fn expected(&self) -> Expected {
        let place = match self.vhost.version() {
            (3, _) => 0,
            (4, 0..=2) => 1,
            _ => 2,
        };
        self.row.4[place]
    }

    fn set(&self, kind: &str, limit: i64) {
        let name = self.row.0;
        let body = json!({
            "pattern": format!("^{name}$"),
            "definition": {"delivery-limit": limit},
            "apply-to": "queues",
        });
        self.vhost
            .api(Method::PUT, &[kind, &self.vhost.name, name], &body);
    }

    /// Looks; whether the message was shown. Other answers than a look or a
    /// refusal are left to the queues that nobody can get from.
    fn look(&self, flags: &[&str]) -> bool {
        let name = self.row.0;
        self.is_there();
        let args = ["dlq", "inspect", name, "-o", "json"];
        let ran = self.vhost.mq(args).args(flags).run();
        match ran.code {
            0 => {
                let found = ran.json();
                let shown = found["messages"].as_array().map(Vec::len);
                assert_eq!(shown, Some(1), "{name}: {found:#}");
                true
            }
            2 => {
                assert!(ran.stderr.contains(name), "{}", ran.stderr);
                false
            }
            _ if name == "single-active" => false,
            code => panic!("{name}: exit {code}: {}", ran.stderr),
        }
    }

    /// Looks until it is plain that looks are granted or refused; how many were granted.
    fn looks(&self, flags: &[&str], most: usize) -> usize {
        let mut refused = 0;
        let mut granted = 0;
        while granted < most && refused < REFUSALS {
            if self.look(flags) {
                granted += 1;
            } else {
                refused += 1;
            }
            if granted + refused == 1 {
                self.change_policy();
            }
        }
        self.is_there();
        granted
    }

    /// Looks that go past the limit: each takes a few processes' time.
    fn more_than_its_limit(&self) -> usize {
        let by_policy = match self.row.2 {
            Policy::Limit(limit) | Policy::Operator(limit) => Some(limit),
            Policy::None | Policy::Late(_) | Policy::Removed(_) => None,
        };
        let by_argument = self.row.1["x-delivery-limit"].as_i64();
        match by_policy.or(by_argument) {
            Some(limit) if limit <= 5 => 10,
            _ => LOOKS,
        }
    }

    /// What a look took is given back only after its answer, so it is waited for.
    fn is_there(&self) {
        let deadline = Instant::now() + GIVEN_BACK;
        while self.vhost.ready(self.row.0) != 1 {
            assert!(Instant::now() < deadline, "{}: LOST", self.row.0);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn change_policy(&self) {
        match self.row.2 {
            Policy::Late(limit) => self.set("policies", limit),
            Policy::Removed(_) => {
                let path = ["policies", &self.vhost.name, self.row.0];
                self.vhost.api(Method::DELETE, &path, &json!({}));
            }
            _ => {}
        }
    }
}

/// Every row, a few at once: an unknown limit is waited for.
fn each_row(act: impl Fn(&Vhost, Row) + Sync) {
    let vhost = Vhost::new();
    let rows = Mutex::new(rows());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let row = rows.lock().unwrap().pop();
                    let Some(row) = row else { break };
                    let name = row.0;
                    // A thread of its own: one that fails must not hide the others.
                    let ran =
                        std::thread::scope(|row_alone| row_alone.spawn(|| act(&vhost, row)).join());
                    if ran.is_err() {
                        failed.lock().unwrap().push(name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed: {failed:?}");
}

#[test]
fn after_thirty_looks_the_message_is_still_there_or_each_was_refused() {
    each_row(|vhost, row| {
        let Some(grave) = Grave::dig(vhost, row) else {
            return;
        };
        let granted = grave.looks(&[], LOOKS);
        match grave.expected() {
            Granted => assert_eq!(granted, LOOKS, "{}", grave.row.0),
            Refused => assert!(
                // The first look may have come before the policy that forbids it.
                granted <= usize::from(matches!(grave.row.2, Policy::Late(_))),
                "{}: {granted} were granted",
                grave.row.0
            ),
            Either | Absent => {}
        }
    });
}

/// What would be lost is replaced by a copy first.
#[test]
fn after_thirty_looks_that_were_insisted_on_a_message_is_still_there() {
    each_row(|vhost, row| {
        let Some(grave) = Grave::dig(vhost, row) else {
            return;
        };
        let most = grave.more_than_its_limit();
        let granted = grave.looks(&["--even-if-it-counts"], most);
        let may_fail = grave.row.0 == "single-active";
        assert!(may_fail || granted == most, "{}: {granted}", grave.row.0);
    });
}

#[test]
fn a_stream_is_never_looked_at() {
    let vhost = Vhost::new();
    vhost.queue("s", "stream", &json!({}));
    for flags in [&[][..], &["--even-if-it-counts"]] {
        vhost
            .mq(["dlq", "inspect", "s"])
            .args(flags)
            .run()
            .code(2)
            .says(&["'s'", "stream"]);
    }
}

#[test]
fn a_user_who_may_not_read_policies_may_look_all_the_same() {
    let mut vhost = Vhost::new();
    vhost.dead_letter_queue("dead", "quorum");
    vhost.send([Sent::to_queue("dead", "x")]);
    let user = vhost.user(".*", ".*", ".*", "management");
    let as_user = format!("{user}:pw");
    let url = vhost.management_url.replace("guest:guest", &as_user);
    vhost
        .mq(["dlq", "inspect", "dead"])
        .env("MQ_MANAGEMENT_URL", url)
        .run()
        .code(0)
        .shows(&["1 ready"]);
}
