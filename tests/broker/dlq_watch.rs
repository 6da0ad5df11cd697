//! Dead-letter queues over time, on a terminal and as lines, while queues come and
//! go and the broker is away.
#![expect(clippy::expect_used, reason = "helpers outside #[test] functions")]

use rustix::process::Signal;
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason};
use crate::proxy::Proxy;
use crate::support::{Mq, Running, wait_until};
use crate::vhost::Vhost;

fn with_dead_letters() -> Vhost {
    let vhost = Vhost::new();
    let dead = DeadLetter::to_queue("dead");
    vhost.deadly_queue("work", "classic", Reason::Expired, dead);
    vhost.dead_letter_queue("dead", "classic");
    vhost
}

fn watch(vhost: &Vhost, args: &[&str]) -> Mq {
    let words = ["dlq", "watch", "--interval", "1s"];
    vhost.mq(words.iter().chain(args))
}

fn lines(running: &Running) -> Vec<Json> {
    let text = running.stdout_so_far();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn wait_for_line(running: &Running, what: &str, is: impl Fn(&Json) -> bool) {
    wait_until(what, || lines(running).iter().any(&is));
}

#[test]
fn lines_tell_what_comes_and_goes() {
    let vhost = with_dead_letters();
    let mut running = watch(&vhost, &[]).spawn();
    wait_for_line(&running, "an empty queue", |line| {
        line["queue"] == "dead" && line["ready"] == 0 && line["unacknowledged"] == 0
    });
    for _ in 0..5 {
        vhost.publish("work", "x");
    }
    wait_for_line(&running, "what comes in", |line| {
        line["queue"] == "dead"
            && line["ready"] == 5
            && line["in_per_second"].as_f64() > Some(0.0)
            && line["out_per_second"] == 0.0
            && line["vhost"] == vhost.name.as_str()
            && line["time"].as_u64() > Some(1_700_000_000)
    });
    vhost.drain("dead");
    wait_for_line(&running, "what goes out", |line| {
        line["ready"] == 0 && line["out_per_second"].as_f64() > Some(0.0)
    });
    // Queues come and go.
    let other = DeadLetter::to_queue("other");
    vhost.deadly_queue("more", "classic", Reason::Rejected, other);
    vhost.dead_letter_queue("other", "classic");
    wait_for_line(&running, "a new queue", |line| line["queue"] == "other");
    vhost.delete_queue("dead");
    wait_for_line(&running, "a queue that is gone", |line| {
        line["queue"] == "dead" && line["state"] == "gone" && line["ready"].is_null()
    });
    assert!(running.is_running());
    running.signal(Signal::TERM);
    let ran = running.wait().code(0);
    let gone = ran.stdout.matches(r#""state":"gone""#).count();
    assert_eq!((gone, ran.stderr.as_str()), (1, ""));
}

#[test]
fn a_broker_that_is_away_is_said_once_and_awaited() {
    let vhost = with_dead_letters();
    let at = vhost.management_url.rsplit('@').next().expect("address");
    let proxy = Proxy::to(at.to_owned());
    let url = vhost.management_url.replace(at, &proxy.address);
    let mut running = watch(&vhost, &["dead"])
        .env("MQ_MANAGEMENT_URL", url)
        .spawn();
    wait_until("a line", || !lines(&running).is_empty());
    proxy.let_through(false);
    proxy.cut();
    running.wait_for_stderr("no answer since");
    let before = lines(&running).len();
    proxy.let_through(true);
    running.wait_for_stderr("answers again");
    wait_until("more lines", || lines(&running).len() > before);
    running.signal(Signal::INT);
    let ran = running.wait().code(0);
    assert_eq!(ran.stderr.matches("no answer since").count(), 1);
}

#[test]
fn the_start_is_no_outage() {
    let vhost = with_dead_letters();
    watch(&vhost, &["dead", "one", "two"])
        .run()
        .code(65)
        .says(&["'one', 'two'"]);
    let nowhere = "http://127.0.0.1:1";
    let away = watch(&vhost, &[]).env("MQ_MANAGEMENT_URL", nowhere);
    away.run().code(69);
}

#[test]
fn so_many_looks_and_no_more() {
    let vhost = with_dead_letters();
    let ran = watch(&vhost, &["dead", "--count", "2"]).run().code(0);
    assert_eq!(ran.stdout.lines().count(), 2);
    // On a terminal, but not one that can be drawn on.
    for (args, term) in [
        (&["--count=1"][..], "dumb"),
        (&["--count=1", "-ojsonl"], "xterm"),
    ] {
        let mq = watch(&vhost, &["dead"]).args(args).env("TERM", term);
        let ran = mq.on_terminal(80).run().code(0);
        let line: Json = serde_json::from_str(ran.stdout.trim()).expect("a line of JSON");
        assert_eq!(
            (&line["queue"], &line["state"]),
            (&json!("dead"), &json!("present"))
        );
    }
}

#[test]
fn a_page_fits_the_terminal_and_leaves_it_as_it_was() {
    let vhost = with_dead_letters();
    for columns in [20, 80] {
        let running = watch(&vhost, &[]).stdin("q").on_terminal(columns).spawn();
        let ran = running.wait().code(0);
        // What was typed before mq read keys was echoed.
        let drawn = ran.stdout.trim_start_matches('q');
        let shown = drawn.strip_prefix("\x1b[?1049h\x1b[?25l\x1b[?7l");
        let shown = shown.unwrap_or_else(|| panic!("{:?}", ran.stdout));
        let shown = shown.strip_suffix("\x1b[?7h\x1b[?25h\x1b[?1049l");
        let page = shown.and_then(|shown| shown.rsplit("\x1b[H").next());
        let page = page
            .expect("a page")
            .replace("\x1b[K", "")
            .replace("\x1b[J", "");
        let rows: Vec<&str> = page.lines().map(str::trim_end).collect();
        assert!(rows[1].starts_with("QUEUE  READY"), "{page}");
        assert!(rows[2].starts_with("dead"), "{page}");
        assert_eq!(rows[1].contains("TREND"), columns == 80, "{page}");
        for row in rows {
            assert!(row.chars().count() <= usize::from(columns), "{row}");
        }
    }
}
