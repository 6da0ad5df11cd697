//! The ledger: whatever is done to workers, everything published was handled or
//! is in a queue. Nothing is lost; what is handled twice is counted, not hidden.

use rustix::process::Signal;

use crate::consume::{DLX, consume, of_type};
use crate::support::{Script, wait_until};
use crate::vhost::Vhost;

/// Every tenth message is poison; the others are written down when done.
const HANDLER: &str = "
n=$(cat)
d=$(dirname \"$0\")
echo $n >>$d/started
[ $((n % 10)) -ne 0 ] || exit 65
sleep 0.02
echo $n >>$d/done
";

#[test]
fn workers_that_are_stopped_or_killed_at_any_moment_lose_nothing() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(DLX, kind));
        let handler = Script::new(HANDLER);
        let bodies: Vec<String> = (0..150).map(|n| n.to_string()).collect();
        vhost.publish_all("work", &bodies);
        // At ever other points of the work, and in every way a worker can end.
        let signals = [Signal::TERM, Signal::KILL, Signal::INT];
        for (round, signal) in signals.iter().cycle().take(9).enumerate() {
            let seen = handler.lines("started").len();
            let worker = consume(&vhost, &["--prefetch", "4", "--quiet"], &handler).spawn();
            wait_until("some more to start", || {
                handler.lines("started").len() > seen + round % 4
            });
            worker.signal(*signal);
            let ran = worker.wait();
            let expected = if *signal == Signal::KILL { -1 } else { 0 };
            assert_eq!(ran.code, expected, "{}", ran.stderr);
        }
        consume(&vhost, &["--prefetch", "4", "--until-empty"], &handler)
            .run()
            .code(0);
        let mut accounted: Vec<u32> = handler
            .lines("done")
            .iter()
            .filter_map(|line| line.parse().ok())
            .collect();
        let limited = vhost
            .mq(["dlq", "inspect", "dead", "--limit", "1000", "-o", "json"])
            .run()
            .code(0)
            .json();
        let dead = limited["messages"].as_array().cloned().unwrap_or_default();
        accounted.extend(
            dead.iter()
                .filter_map(|message| message["body"].as_str()?.parse::<u32>().ok()),
        );
        accounted.sort_unstable();
        accounted.dedup();
        assert_eq!(accounted, (0..150).collect::<Vec<u32>>(), "{kind}");
        assert_eq!((vhost.ready("work"), vhost.ready("wait")), (0, 0));
    }
}
