//! `mq dlq browse` on a terminal, which is real: a pseudo-terminal, read as a
//! terminal reads it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test helpers"
)]

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::dead_letters::{DeadLetter, Reason, Sent};
use crate::support::{wait_for, wait_until};
use crate::vhost::Vhost;

fn nonzero(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

/// mq on a terminal of its own.
struct Browsing {
    master: Box<dyn MasterPty + Send>,
    /// Open here too: its state would go with mq otherwise.
    _slave: Box<dyn SlavePty + Send>,
    /// The modes of the terminal before mq took it.
    before: String,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn std::io::Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    folder: tempfile::TempDir,
}

impl Browsing {
    fn start(vhost: &Vhost, args: &[&str]) -> Self {
        let size = PtySize {
            rows: 24,
            cols: 80,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).expect("terminal");
        let folder = tempfile::tempdir().expect("folder");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_mq"));
        command.env_clear();
        command.cwd(folder.path());
        command.args(["dlq", "browse"]);
        command.args(args);
        command.env("TERM", "xterm");
        command.env("MQ_URL", vhost.url());
        command.env("MQ_MANAGEMENT_URL", &vhost.management_url);
        let before = Self::modes(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("mq");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(nonzero(24), nonzero(80), 0)));
        let seen = Arc::clone(&screen);
        let mut output = pair.master.try_clone_reader().expect("reader");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                seen.lock().expect("screen").process(&bytes[..read]);
            }
        });
        Self {
            keys: pair.master.take_writer().expect("writer"),
            master: pair.master,
            _slave: pair.slave,
            before,
            child,
            screen,
            folder,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys");
        self.keys.flush().expect("keys");
    }

    fn text(&self) -> String {
        self.screen.lock().expect("screen").screen().contents()
    }

    #[track_caller]
    fn shows(&self, words: &str) {
        wait_for(&format!("{words:?} on the screen"), || {
            let text = self.text();
            text.contains(words).then_some(()).ok_or(text)
        });
    }

    /// Types keys and waits for what they lead to.
    #[track_caller]
    fn leads(&mut self, keys: &str, words: &str) {
        self.types(keys);
        self.shows(words);
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize {
            rows,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.screen
            .lock()
            .expect("screen")
            .screen_mut()
            .set_size(nonzero(rows), nonzero(columns));
        self.master.resize(size).expect("resize");
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.process_id().expect("pid");
        let pid = Pid::from_raw(i32::try_from(pid).expect("pid")).expect("pid");
        kill_process(pid, signal).expect("signal");
    }

    /// Waits for the end: its exit code, with the terminal as it was.
    #[track_caller]
    fn ends(&mut self) -> u32 {
        let mut code = None;
        wait_until("mq to end", || {
            code = self
                .child
                .try_wait()
                .expect("wait")
                .map(|it| it.exit_code());
            code.is_some()
        });
        assert_eq!(Self::modes(&*self.master), self.before);
        wait_until("the first screen", || {
            let screen = self.screen.lock().expect("screen");
            !screen.screen().alternate_screen() && !screen.screen().hide_cursor()
        });
        code.expect("code")
    }

    /// The modes of the terminal, all of them.
    fn modes(master: &dyn MasterPty) -> String {
        format!("{:?}", master.get_termios())
    }
}

impl Drop for Browsing {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A work queue behind a topic exchange and its dead-letter queue with so many
/// rejected orders, their numbers as bodies.
fn rejected(kind: &str, count: u32) -> Vhost {
    let vhost = Vhost::new();
    vhost.exchange("orders", "topic");
    vhost.dead_letter_queue("dlq", kind);
    vhost.deadly_queue("work", kind, Reason::Rejected, DeadLetter::to_queue("dlq"));
    vhost.bind("orders", "work", "order.#");
    vhost.send((0..count).map(|number| Sent {
        exchange: "orders".to_owned(),
        key: "order.created".to_owned(),
        body: format!("order-{number}").into_bytes(),
        ..Sent::default()
    }));
    let count_here = usize::try_from(count).unwrap();
    vhost.let_die("work", Reason::Rejected, count_here);
    vhost.wait_for_ready("dlq", count);
    vhost
}

/// The bodies in a queue, sorted: looking may turn a quorum queue around.
fn bodies(vhost: &Vhost, queue: &str) -> Vec<String> {
    let found = vhost.inspect(queue);
    let messages = found["messages"].as_array().unwrap();
    let bodies = messages
        .iter()
        .map(|it| it["body"].as_str().unwrap().to_owned());
    let mut bodies: Vec<String> = bodies.collect();
    bodies.sort();
    bodies
}

const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";
const F5: &str = "\u{1b}[15~";

#[test]
fn one_finds_marks_and_sends_back() {
    for kind in ["classic", "quorum"] {
        let vhost = rejected(kind, 12);
        let mut browsing = Browsing::start(&vhost, &[]);
        browsing.shows("1 dead-letter queue");
        browsing.leads(ENTER, "12 messages");
        browsing.shows("rejected in work after 1 attempt");
        browsing.leads(ENTER, "› messages");
        browsing.leads("/order-1", "3 match");
        browsing.leads(ENTER, "Space mark");
        // order-1 stays, order-10 and order-11 go.
        browsing.leads("a", "3 marked");
        browsing.leads("u/1", "filter: order-11▏");
        browsing.leads(ENTER, "1 match");
        browsing.leads(" ", "1 marked");
        browsing.leads("/\u{8}0", "filter: order-10▏");
        browsing.leads(ENTER, "1 match");
        browsing.leads(" ", "2 marked");
        browsing.leads("r", "2 of 12 messages would be sent back");
        browsing.shows("if it fails");
        assert_eq!(vhost.ready("work"), 0, "nobody said yes");
        browsing.leads("y", "2 of 12 messages sent back");
        vhost.wait_for_ready("work", 2);
        let left = bodies(&vhost, "dlq");
        assert_eq!(left.len(), 10);
        assert!(
            !left.iter().any(|it| it == "order-10" || it == "order-11"),
            "{left:?}"
        );
        browsing.leads(ENTER, "10 messages");
        browsing.types("q");
        assert_eq!(browsing.ends(), 0);
        assert_eq!(vhost.ready("dlq"), 10);
    }
}

#[test]
fn one_exports_and_purges_what_is_marked_and_nothing_else() {
    let vhost = rejected("classic", 5);
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.shows("5 messages");
    browsing.leads(ENTER, "› messages");
    browsing.leads("j j ", "2 marked");
    browsing.leads("e", "they stay in");
    browsing.leads("out.jsonl\r", "exported 2 messages");
    assert_eq!(vhost.ready("dlq"), 5);
    let exported = std::fs::read_to_string(browsing.folder.path().join("out.jsonl")).unwrap();
    assert_eq!(exported.lines().count(), 2);
    browsing.leads(ENTER, "2 marked");
    // The same file again is not written over.
    browsing.leads("e", "Its name");
    browsing.leads("out.jsonl\r", "out.jsonl is there already");
    browsing.leads(ENTER, "2 marked");
    browsing.leads("p", "Type the queue's name");
    browsing.leads("work\r", "nothing was removed");
    browsing.leads("dlq\r", "purged 2 messages");
    browsing.leads(ENTER, "3 messages");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
    assert_eq!(bodies(&vhost, "dlq"), ["order-0", "order-2", "order-4"]);
    let files = std::fs::read_dir(browsing.folder.path()).unwrap();
    let names = files.map(|file| file.unwrap().path());
    let backup: Vec<_> = names.filter(|path| !path.ends_with("out.jsonl")).collect();
    let lines = std::fs::read_to_string(&backup[0]).unwrap();
    let bodies = lines.lines().map(|line| {
        let line: Json = serde_json::from_str(line).unwrap();
        line["body"].as_str().unwrap().to_owned()
    });
    assert_eq!(bodies.collect::<Vec<_>>(), ["order-1", "order-3"]);
}

#[test]
fn no_more_twins_go_than_were_marked() {
    let vhost = rejected("classic", 1);
    vhost.publish_all("dlq", &vec!["twin".to_owned(); 3]);
    vhost.wait_for_ready("dlq", 4);
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.shows("4 messages");
    browsing.leads("\r/twin\r ", "3 marked");
    // A fourth one comes after they were counted.
    vhost.publish("dlq", "twin");
    browsing.leads("p", "Remove 3 messages");
    browsing.leads("dlq\r", "purged 3 messages");
    browsing.types("\rq");
    assert_eq!(browsing.ends(), 0);
    assert_eq!(vhost.ready("dlq"), 2);
}

#[test]
fn the_terminal_is_given_back_whatever_ends_it() {
    let vhost = rejected("classic", 1);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut browsing = Browsing::start(&vhost, &["dlq"]);
        browsing.shows("1 message");
        assert_ne!(Browsing::modes(&*browsing.master), browsing.before);
        browsing.signal(signal);
        assert_eq!(browsing.ends(), 0, "{signal:?}");
    }
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.shows("1 message");
    browsing.types("\u{3}");
    assert_eq!(browsing.ends(), 0);
}

#[test]
fn a_terminal_that_shrinks_and_grows_breaks_nothing() {
    let vhost = rejected("classic", 3);
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.shows("3 messages");
    browsing.resize(20, 5);
    browsing.shows("needed; q quits");
    browsing.types("jk\r");
    browsing.resize(120, 40);
    browsing.shows("WHAT HAPPENED");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
}

#[test]
fn a_queue_that_goes_while_it_is_browsed_is_told() {
    let vhost = rejected("classic", 2);
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.leads("", "2 messages");
    vhost.delete_queue("dlq");
    browsing.leads("\rr", "does not exist, or");
    // Back to the queues, with a word about it.
    browsing.leads(ENTER, "Enter open  / filter");
    browsing.shows("does not exist, or");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
    // And one that never was.
    let mut browsing = Browsing::start(&vhost, &["nowhere"]);
    browsing.shows("does not exist, or");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
}

#[test]
fn a_queue_that_must_not_be_looked_at_is_refused_with_the_ways_out() {
    let vhost = Vhost::new();
    if vhost.version() < (4, 0) {
        return;
    }
    vhost.queue("limited", "quorum", &json!({"x-delivery-limit": 3}));
    vhost.publish("limited", "x");
    let mut browsing = Browsing::start(&vhost, &["limited"]);
    browsing.shows("rabbitmq-queues peek");
    browsing.shows("Esc back");
    browsing.leads(F5, "rabbitmq-queues peek");
    browsing.types(ESCAPE);
    browsing.shows("no queue takes dead letters");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
    assert_eq!(vhost.ready("limited"), 1);
}

/// RabbitMQ deletes such a queue with all its messages as soon as its last
/// consumer leaves, so that nobody who only looks may be one.
#[test]
fn a_queue_that_goes_with_its_last_consumer_stays() {
    let vhost = Vhost::new();
    let body = json!({"durable": true, "auto_delete": true, "arguments": {}});
    vhost.api(
        reqwest::Method::PUT,
        &["queues", &vhost.name, "auto"],
        &body,
    );
    vhost.publish_all("auto", &["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    let exported = vhost.mq(["dlq", "export", "auto"]).run().code(0);
    assert_eq!(exported.stdout.lines().count(), 3);
    vhost.mq(["dlq", "replay", "auto", "--dry-run"]).run();
    assert_eq!(vhost.ready("auto"), 3);
    let mut browsing = Browsing::start(&vhost, &["auto"]);
    browsing.leads("", "3 messages");
    browsing.leads("\r ", "1 marked");
    browsing.leads("p", "Remove 1 message ");
    browsing.leads("auto\r", "purged 1 message ");
    browsing.leads(ENTER, "2 messages");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
    assert_eq!(vhost.ready("auto"), 2);
}

#[test]
fn a_hostile_message_drives_nothing() {
    let vhost = rejected("classic", 0);
    let bodies = [
        "\u{1b}[2J\u{1b}]0;owned\u{7}",
        "\u{202e}evil",
        "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f} 🇩🇪 e\u{301}",
    ];
    vhost.publish_all("dlq", &bodies.map(str::to_owned));
    vhost.wait_for_ready("dlq", 3);
    let mut browsing = Browsing::start(&vhost, &["dlq"]);
    browsing.leads("", "3 messages");
    browsing.leads(ENTER, "\\u{1b}[2J\\u{1b}]0;owned\\u{7}");
    browsing.shows("\\u{202e}evil");
    browsing.leads(ENTER, "message 1 of 3");
    browsing.leads("n", "message 2 of 3");
    browsing.leads("n", "message 3 of 3");
    browsing.shows("mq dlq browse › dlq");
    browsing.types("q");
    assert_eq!(browsing.ends(), 0);
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let vhost = Vhost::new();
    let ran = vhost.mq(["dlq", "browse"]).run().code(64);
    ran.says(&["needs a terminal", "mq dlq list", "mq dlq inspect"]);
    let dumb = vhost.mq(["dlq", "browse"]).env("TERM", "dumb");
    dumb.run().code(64).says(&["needs a terminal"]);
}
