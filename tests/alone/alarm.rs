//! A memory alarm blocks those who publish: that is said, waited for, and no lost confirm.
#![expect(
    clippy::disallowed_methods,
    reason = "an alarm lasts longer than the wait for a confirm"
)]

use std::time::{Duration, Instant};

use crate::node::Node;
use crate::vhost::Vhost;

const SAID: &str = "the broker blocks publishers: low on memory";

fn with_queue() -> Vhost {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    vhost
}

#[test]
fn publishing_goes_on_when_the_alarm_is_over() {
    let node = Node::alone();
    let vhost = with_queue();
    node.is_short_of_memory();
    // The wait for the confirm is shorter than the alarm.
    let publish = |more: &[&str]| {
        vhost
            .mq(["publish", "-q", "q", "--confirm-timeout", "1s"])
            .args(more)
    };
    let mut one = publish(&["one"]).spawn();
    let mut many = publish(&["--repeat", "300", "many"]).spawn();
    one.wait_for_stderr(SAID);
    many.wait_for_stderr(SAID);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        assert!(one.is_running() && many.is_running());
        std::thread::yield_now();
    }
    node.has_memory_again();
    one.wait().code(0).says(&["takes messages again, after"]);
    let many = many.wait().code(0).says(&["takes messages again, after"]);
    many.shows(&["routed 300 of 300"]);
    vhost.wait_for_ready("q", 301);
}

#[test]
fn an_alarm_that_lasts_is_75_and_what_was_not_sent_is_told() {
    let node = Node::alone();
    let vhost = with_queue();
    node.is_short_of_memory();
    let publish = || vhost.mq(["publish", "-q", "q", "--blocked-timeout", "2s"]);
    publish()
        .args(["one"])
        .run()
        .code(75)
        .says(&[SAID, "has blocked publishers for 2s: low on memory"]);
    publish()
        .args(["--lines", "-"])
        .stdin("a\n".repeat(400))
        .run()
        .code(75)
        .says(&[
            SAID,
            "no answer; the broker may or may not have it",
            "was sent",
            "has blocked publishers for 2s: low on memory",
        ]);
    // A signal does not wait for the alarm, and a second one for nothing.
    let mut running = vhost
        .mq(["publish", "-q", "q", "--repeat", "9", "x"])
        .spawn();
    running.wait_for_stderr(SAID);
    running.signal(rustix::process::Signal::INT);
    running.signal(rustix::process::Signal::TERM);
    let ran = running.wait();
    assert!([130, 143].contains(&ran.code), "{ran:?}");
    node.has_memory_again();
}
