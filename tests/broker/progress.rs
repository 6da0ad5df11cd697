//! The progress line of a worker on a terminal, which is real: `script` opens it.

use rustix::process::Signal;

use crate::consume::{IMMEDIATE, of_type};
use crate::support::screen::Screen;
use crate::support::{Mq, Script, wait_until};
use crate::vhost::Vhost;

const WAITS: &str = "printf 'one '; echo $PPID >$(dirname $0)/parent
while [ ! -e $(dirname $0)/go ]; do sleep 0.02; done
echo word";

fn on_terminal(vhost: &Vhost, columns: u16, args: &[&str], handler: &Script) -> Mq {
    let command = ["--exec".into(), handler.path()];
    let words = ["consume", "work"].iter().chain(args).map(Into::into);
    vhost.mq(words.chain(command)).on_terminal(columns)
}

fn with_message() -> Vhost {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "x");
    vhost
}

#[test]
fn the_line_is_drawn_around_what_is_said_and_leaves_no_trace() {
    let vhost = with_message();
    let handler = Script::new(WAITS);
    let mut running = on_terminal(&vhost, 120, &["--until-empty"], &handler).spawn();
    wait_until("the line", || {
        running
            .stdout_so_far()
            .contains("work  0/s  acked 0  in flight 1")
    });
    let shown = Screen::after(120, &running.stdout_so_far()).text();
    assert_eq!(shown, "work  0/s  acked 0  in flight 1");
    handler.leave("go");
    wait_until("the line with an ack", || {
        let screen = Screen::after(120, &running.stdout_so_far());
        let shown = screen.text();
        shown.starts_with("[#1] one word\nwork  ") && shown.ends_with("  acked 1")
            || !running.is_running()
    });
    let ran = running.wait().code(0);
    let screen = Screen::after(120, &ran.stdout);
    assert_eq!(
        screen.text(),
        "[#1] one word\nwork: 1 acked, 0 retried, 0 dead-lettered, 0 given back; stopped: the queue is empty"
    );
}

#[test]
fn a_narrow_terminal_does_not_wrap_and_a_signal_leaves_it_clean() {
    let vhost = with_message();
    let handler = Script::new(WAITS);
    let mq = on_terminal(&vhost, 20, &[], &handler);
    let running = mq.spawn();
    let says = |text: &str| {
        wait_until(text, || running.stdout_so_far().contains(text));
    };
    says("work  0/s  acked 0");
    assert_eq!(Screen::after(20, &running.stdout_so_far()).wraps, 0);
    // `script` would end by a signal of its own, and leave mq to itself.
    let parent = handler.lines("parent")[0].parse().unwrap();
    let pid = rustix::process::Pid::from_raw(parent).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    says("draining");
    let before = Screen::after(20, &running.stdout_so_far());
    assert_eq!(before.wraps, 0);
    assert!(before.text().contains("draining"), "{}", before.text());
    handler.leave("go");
    let ran = running.wait().code(0);
    let after = Screen::after(20, &ran.stdout).text();
    assert!(after.starts_with("[#1] one word\nwork: 1 acked"), "{after}");
    assert!(
        !after.contains("draining") && !after.contains("/s"),
        "{after}"
    );
}

#[test]
fn an_error_leaves_the_terminal_clean() {
    let vhost = with_message();
    let handler = Script::new("while [ ! -e $(dirname $0)/go ]; do sleep 0.02; done; exit 69");
    let running = on_terminal(&vhost, 200, &[], &handler).spawn();
    let line = "work  0/s  acked 0  in flight 1";
    wait_until("the line", || running.stdout_so_far().contains(line));
    handler.leave("go");
    let ran = running.wait().code(69);
    let after = Screen::after(200, &ran.stdout).text();
    let lines: Vec<&str> = after.lines().collect();
    assert!(
        lines[0].starts_with(" WARN attempt failed queue=work"),
        "{after}"
    );
    assert!(lines[1].starts_with("work: 0 acked"), "{after}");
    assert!(
        lines[2].starts_with("mq: the handler of queue 'work' cannot work"),
        "{after}"
    );
}

#[test]
fn who_asked_for_none_gets_none() {
    let vhost = with_message();
    let handler = Script::new("sleep 0.6; exit 0");
    for args in [["--quiet"], ["--log-format=json"]] {
        vhost.publish("work", "x");
        let mut all = vec!["--until-empty"];
        all.extend(args);
        let ran = on_terminal(&vhost, 80, &all, &handler).run().code(0);
        assert!(!ran.stdout.contains('\x1b'), "{:?}", ran.stdout);
    }
    vhost.publish("work", "printed");
    let ran = vhost
        .mq(["consume", "work", "--print", "--idle-timeout", "1s"])
        .on_terminal(80)
        .run()
        .code(0);
    assert!(ran.stdout.contains("printed") && !ran.stdout.contains('\x1b'));
    // And no terminal, no line.
    vhost.publish("work", "x");
    let command = ["--until-empty".into(), "--exec".into(), handler.path()];
    let words = ["consume", "work"].map(Into::into).into_iter();
    let ran = vhost.mq(words.chain(command)).run().code(0);
    assert_eq!(ran.stderr, "");
}
