//! Working a queue when something else fails: no message is lost, and the exit
//! code and one message tell what it was.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use reqwest::Method;
use serde_json::json;

use crate::consume::{DLX, IMMEDIATE, consume, consumers, of_type};
use crate::proxy::Proxy;
use crate::support::{Mq, Ran, Script, TextFile, wait_until};
use crate::vhost::Vhost;

#[test]
fn a_queue_that_does_not_exist_is_65() {
    let vhost = Vhost::new();
    let handler = Script::new("exit 0");
    consume(&vhost, &[], &handler)
        .run()
        .code(65)
        .says(&["queue 'work' does not exist", "mq topology apply"]);
}

#[test]
fn a_queue_whose_dead_letters_would_vanish_is_not_worked() {
    for (topology, says) in [
        ("queues: { work: }\n", "has no dead-letter exchange"),
        (
            "exchanges: { dlx: { type: direct } }\nqueues: { work: { dead_letter: { exchange: dlx } }, dead: { bind: [ { exchange: dlx, key: dead } ] } }\n",
            "no binding for key 'work'",
        ),
        (
            // A worker that crashes or gives back often enough reaches the limit, and the
            // broker drops what comes back from the wait queue after that.
            &DLX.replace(
                "work: { type: TYPE",
                "work: { type: quorum, delivery_limit: 5",
            )
            .replace("TYPE", "classic"),
            "has a finite delivery limit",
        ),
        (
            &of_type(DLX, "classic").replace("work: { ", "work: { max_length: 5, "),
            "has a length limit that drops its oldest message",
        ),
    ] {
        let vhost = Vhost::new();
        vhost.apply(topology);
        vhost.publish("work", "x");
        let handler = Script::new("echo x >>$(dirname $0)/ran");
        consume(&vhost, &["--until-empty"], &handler)
            .run()
            .code(2)
            .says(&["refusing to work queue 'work'", says, "help:"]);
        assert!(handler.lines("ran").is_empty());
        assert_eq!(vhost.ready("work"), 1);
    }
}

#[test]
fn dead_lettering_by_policy_is_seen() {
    let vhost = Vhost::new();
    vhost.apply("exchanges: { dlx: { type: fanout } }\nqueues: { work: { type: classic }, dead: { type: classic, bind: [ { exchange: dlx } ] } }\n");
    let policy = json!({"pattern": "^work$", "definition": {"dead-letter-exchange": "dlx"}});
    vhost.api(
        reqwest::Method::PUT,
        &["policies", &vhost.name, "p"],
        &policy,
    );
    vhost.publish("work", "x");
    let handler = Script::new("exit 65");
    // The policy reaches the queue a moment after the request.
    wait_until("the policy to be in force", || {
        vhost.get(&["queues", &vhost.name, "work"])["policy"] == "p"
    });
    consume(&vhost, &["--until-empty"], &handler).run().code(0);
    vhost.wait_for_ready("dead", 1);
}

#[test]
fn a_file_that_does_not_match_the_broker_is_refused() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "classic"));
    let file = TextFile::new(
        "t.yaml",
        &format!("version: 1\n{}", of_type(IMMEDIATE, "classic")),
    );
    let handler = Script::new("exit 0");
    let path = file.path();
    consume(&vhost, &["--topology", &path], &handler)
        .run()
        .code(2)
        .says(&["on the broker", "but the file says", "'wait'"]);
    consume(&vhost, &["--strategy", "immediate"], &handler)
        .run()
        .code(2)
        .says(&["strategy `immediate` is asked for"]);
}

#[test]
fn with_the_management_plugin_off_the_file_is_believed() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "classic"));
    vhost.publish("work", "x");
    let file = TextFile::new(
        "t.yaml",
        &format!("version: 1\n{}", of_type(DLX, "classic")),
    );
    let handler = Script::new("exit 65");
    let path = file.path();
    let blind = |flags: &[&str]| {
        consume(&vhost, flags, &handler)
            .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
            .run()
    };
    blind(&[])
        .code(69)
        .says(&["--topology", "rabbitmq_management"]);
    blind(&["--topology", &path, "--until-empty"]).code(0);
    vhost.wait_for_ready("dead", 1);
    vhost.delete_queue("dead");
    blind(&["--topology", &path])
        .code(2)
        .says(&["queue 'dead' does not exist", "vanish"]);
}

#[test]
fn a_handler_that_says_69_stops_the_worker_and_keeps_the_message() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    vhost.publish("work", "x");
    let handler = Script::new("echo 'database is down' >&2; exit 69");
    consume(&vhost, &[], &handler)
        .run()
        .code(69)
        .says(&["exit 69: database is down", "given back"]);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn a_handler_that_vanishes_is_a_bad_deploy_and_drains_nothing() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    vhost.publish_all("work", &["1".to_owned(), "2".to_owned(), "3".to_owned()]);
    // The first run removes the program: the second cannot be started.
    let handler = Script::new("rm \"$0\"");
    consume(&vhost, &[], &handler)
        .run()
        .code(69)
        .says(&["cannot start", "given back"]);
    vhost.wait_for_ready("work", 2);
    assert_eq!(vhost.ready("dead"), 0);
}

#[test]
fn a_timeout_is_a_failed_attempt_and_ends_the_handlers_children_too() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "x");
    let handler = Script::new("sleep 600 & echo $! >>$(dirname $0)/children; wait");
    let flags = [
        "--handler-timeout",
        "300ms",
        "--max-attempts",
        "2",
        "--until-empty",
    ];
    consume(&vhost, &flags, &handler).run().code(0);
    assert_eq!(handler.lines("children").len(), 2);
    for child in handler.lines("children") {
        wait_until(&format!("grandchild {child} to be gone"), || {
            is_gone(&child)
        });
    }
    assert_eq!(vhost.ready("dead"), 1);
}

#[expect(clippy::disallowed_methods, reason = "looks at the process table")]
pub(crate) fn is_gone(pid: &str) -> bool {
    // A zombie whose parent is gone counts as gone.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn odd_children_do_no_harm() {
    for (what, script) in [
        ("closes its input early", "exec <&-; exit 0"),
        ("ignores its input", "exit 0"),
        ("writes ten megabytes", "head -c 10485760 /dev/zero; exit 0"),
        (
            "complains at length",
            "head -c 10485760 /dev/zero >&2; exit 0",
        ),
        ("leaves a child with its stderr open", "sleep 60 & exit 0"),
    ] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(IMMEDIATE, "classic"));
        // As large as every broker takes by default.
        vhost
            .mq(["publish", "-q", "work"])
            .stdin(vec![b'x'; 15 << 20])
            .run()
            .code(0);
        let handler = Script::new(script);
        let summary = consume(&vhost, &["--max-messages", "1", "-o", "json"], &handler)
            .run()
            .code(0)
            .json();
        assert_eq!(summary["acked"], 1, "a child that {what}");
    }
}

#[test]
fn a_queue_deleted_under_the_worker_is_65() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let handler = Script::new("exit 0");
    vhost.publish("work", "x");
    let worker = consume(&vhost, &["--reconnect-for", "1s"], &handler).spawn();
    wait_until("the first message to be worked", || {
        vhost.ready("work") == 0
    });
    vhost.delete_queue("work");
    worker.wait().code(65).says(&["queue 'work' was deleted"]);
}

#[test]
fn a_dead_letter_that_is_not_taken_stops_the_worker_and_stays() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let handler = Script::new(
        "d=$(dirname $0); echo x >>$d/started; while [ ! -e $d/go ]; do sleep 0.05; done; exit 65",
    );
    vhost.publish("work", "x");
    let worker = consume(&vhost, &[], &handler).spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    // The place to rest goes away while the message is being worked.
    vhost.delete_queue("dead");
    touch(&handler);
    worker
        .wait()
        .code(67)
        .says(&["no queue takes dead letters", "given back"]);
    vhost.wait_for_ready("work", 1);
}

#[expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tells a handler to go on"
)]
fn touch(handler: &Script) {
    std::fs::write(handler.file("go"), "").unwrap();
}

/// Takes the place where dead letters rest, or wait, away while a handler runs.
fn with_path_broken(topology: &str, kind: &str, flags: &[&str], breaks: impl Fn(&Vhost)) -> Ran {
    let vhost = Vhost::new();
    vhost.apply(&of_type(topology, kind));
    let handler = Script::new(
        "d=$(dirname $0); echo x >>$d/started; while [ ! -e $d/go ]; do sleep 0.05; done; exit 1",
    );
    let bodies: Vec<String> = (0..5).map(|n| n.to_string()).collect();
    vhost.publish_all("work", &bodies);
    let mut all = vec!["--until-empty"];
    all.extend(flags);
    let worker = consume(&vhost, &all, &handler).spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    breaks(&vhost);
    touch(&handler);
    let ran = worker.wait();
    vhost.wait_for_ready("work", 5);
    ran
}

#[test]
fn an_unbound_dead_letter_queue_costs_nothing_under_either_strategy() {
    for kind in ["classic", "quorum"] {
        for (topology, key) in [(IMMEDIATE, "~"), (DLX, "dead")] {
            with_path_broken(topology, kind, &["--max-attempts", "1"], |vhost| {
                let path = ["bindings", &vhost.name, "e", "dlx", "q", "dead", key];
                vhost.api(reqwest::Method::DELETE, &path, &json!({}));
            })
            .code(67)
            .says(&["no queue takes dead letters", "given back"]);
        }
    }
}

#[test]
fn a_wait_queue_that_is_gone_costs_nothing() {
    for (kind, says) in [
        (
            "classic",
            "no queue takes retries at exchange 'dlx' with key 'retry'",
        ),
        ("quorum", "queue 'wait' is gone"),
    ] {
        with_path_broken(DLX, kind, &[], |vhost| vhost.delete_queue("wait"))
            .code(67)
            .says(&[says]);
    }
}

#[test]
fn a_path_that_cannot_be_seen_is_proved_with_every_message() {
    // The file says what should be; on the broker the wait queue is not bound.
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "classic"));
    let path = ["bindings", &vhost.name, "e", "dlx", "q", "wait", "retry"];
    vhost.api(reqwest::Method::DELETE, &path, &json!({}));
    vhost.publish("work", "x");
    let file = TextFile::new(
        "t.yaml",
        &format!("version: 1\n{}", of_type(DLX, "classic")),
    );
    let handler = Script::new("echo $MQ_ATTEMPT $MQ_ROUTING_KEY >>$(dirname $0)/seen; exit 1");
    let path = file.path();
    let flags = ["--topology", &path, "--max-attempts", "3", "--until-empty"];
    let blind = || {
        consume(&vhost, &flags, &handler)
            .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
            .run()
    };
    blind().code(67).says(&["given back"]);
    vhost.wait_for_ready("work", 1);
    // Bound again, retries go as copies and attempts still count right.
    vhost.apply(&of_type(DLX, "classic"));
    blind().code(0);
    assert_eq!(
        handler.lines("seen"),
        ["1 work", "1 work", "2 work", "3 work"]
    );
    let dead = vhost.inspect("dead");
    assert_eq!(dead["messages"][0]["attempts"], 3);
}

#[test]
fn a_queue_without_the_dead_lettering_of_the_file_loses_nothing() {
    let vhost = Vhost::new();
    let file = TextFile::new(
        "t.yaml",
        &format!("version: 1\n{}", of_type(DLX, "classic")),
    );
    vhost.apply(
        &of_type(DLX, "classic").replace(", dead_letter: { exchange: dlx, key: retry }", ""),
    );
    vhost.publish("work", "x");
    let handler = Script::new("exit 1");
    let path = file.path();
    let flags = ["--topology", &path, "--max-attempts", "2", "--until-empty"];
    consume(&vhost, &flags, &handler)
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(0);
    vhost.wait_for_ready("dead", 1);
}

/// Every way a client can spoil `x-death`; 3.10 crashes or loses the message on
/// some of them when it is nacked.
fn spoiled() -> Vec<BasicProperties> {
    let with = |value: AMQPValue| {
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), value);
        BasicProperties::default().with_headers(headers)
    };
    let mut table = FieldTable::default();
    table.insert("queue".into(), AMQPValue::LongString("work".into()));
    table.insert("reason".into(), AMQPValue::LongString("rejected".into()));
    table.insert("count".into(), AMQPValue::LongString("NaN".into()));
    // Well-formed: it expired here once, was moved back with its headers, and
    // 3.10 drops it when the wait queue brings it back.
    let mut expired = FieldTable::default();
    expired.insert("queue".into(), AMQPValue::LongString("work".into()));
    expired.insert("reason".into(), AMQPValue::LongString("expired".into()));
    expired.insert("count".into(), AMQPValue::LongLongInt(1));
    expired.insert("exchange".into(), AMQPValue::LongString("".into()));
    expired.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    let keys = FieldArray::from(vec![AMQPValue::LongString("a".into())]);
    expired.insert("routing-keys".into(), AMQPValue::FieldArray(keys));
    vec![
        with(AMQPValue::FieldArray(FieldArray::from(vec![
            AMQPValue::FieldTable(expired),
        ]))),
        with(AMQPValue::LongString("dead".into())),
        with(AMQPValue::FieldArray(FieldArray::from(vec![
            AMQPValue::LongInt(1),
            AMQPValue::LongInt(2),
        ]))),
        with(AMQPValue::FieldArray(FieldArray::from(vec![
            AMQPValue::FieldTable(table),
        ]))),
    ]
}

#[test]
fn a_malformed_x_death_from_a_client_loses_nothing() {
    for topology in [DLX, IMMEDIATE] {
        for kind in ["classic", "quorum"] {
            let vhost = Vhost::new();
            vhost.apply(&of_type(topology, kind));
            let messages: Vec<_> = spoiled()
                .into_iter()
                .enumerate()
                .map(|(n, properties)| (n.to_string().into_bytes(), properties))
                .collect();
            vhost.publish_raw("work", &messages);
            let handler = Script::new("exit 1");
            consume(&vhost, &["--until-empty", "--max-attempts", "3"], &handler)
                .run()
                .code(0);
            vhost.wait_for_ready("dead", 4);
        }
    }
}

#[test]
fn headers_that_fill_their_frame_do_not_block_the_queue() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let mut headers = FieldTable::default();
    headers.insert(
        "k".into(),
        AMQPValue::LongString("v".repeat(129_000).into()),
    );
    let full = BasicProperties::default().with_headers(headers);
    vhost.publish_raw("work", &[(b"x".to_vec(), full)]);
    let handler = Script::new("echo $MQ_ATTEMPT >>$(dirname $0)/seen; exit 1");
    consume(&vhost, &["--until-empty", "--max-attempts", "2"], &handler)
        .run()
        .code(0);
    assert_eq!(handler.lines("seen"), ["1", "2"]);
    vhost.wait_for_ready("dead", 1);
}

#[test]
fn a_signal_while_connecting_ends_the_worker_at_once() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("listener");
    let port = silent.local_addr().expect("address").port();
    let worker = Mq::new(["--timeout", "20s", "consume", "work", "--print"])
        .env("MQ_URL", format!("amqp://127.0.0.1:{port}"))
        .spawn();
    let _accepted = silent.accept().expect("mq to connect");
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().code(0);
}

#[test]
fn a_lost_connection_is_opened_again_and_nothing_is_lost() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let proxy = Proxy::to(vhost.address());
    let bodies: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    vhost.publish_all("work", &bodies);
    let handler = Script::new(
        "n=$(cat); [ $((n % 20)) -ne 0 ] || exit 65; sleep 0.05; echo $n >>$(dirname $0)/done",
    );
    let worker = consume(
        &vhost,
        &["--prefetch", "3", "--until-empty", "-o", "json"],
        &handler,
    )
    .env("MQ_URL", vhost.url_at("guest", "guest", &proxy.address))
    .spawn();
    for cut_at in [10, 25, 40] {
        wait_until("some to be done", || handler.lines("done").len() >= cut_at);
        proxy.cut();
    }
    let ran = worker.wait().code(0).says(&["reconnected"]);
    let mut done = handler.lines("done");
    done.sort();
    done.dedup();
    assert_eq!(done.len(), 57, "{}", ran.stderr);
    let dead = vhost.inspect("dead");
    let mut bodies: Vec<&str> = dead["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["body"].as_str())
        .collect();
    bodies.sort_unstable();
    // A copy may be there twice if the connection broke between its confirm and the ack.
    bodies.dedup();
    assert_eq!(bodies, ["0", "20", "40"]);
    assert_eq!((vhost.ready("work"), vhost.ready("wait")), (0, 0));
}

#[test]
fn a_broker_that_does_not_come_back_is_69_and_keeps_the_message() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    let proxy = Proxy::to(vhost.address());
    let handler = Script::new("echo x >>$(dirname $0)/started; sleep 1");
    vhost.publish("work", "x");
    let worker = consume(&vhost, &["--reconnect-for", "1s", "-o", "json"], &handler)
        .env("MQ_URL", vhost.url_at("guest", "guest", &proxy.address))
        .spawn();
    wait_until("it to run", || handler.lines("started").len() == 1);
    proxy.let_through(false);
    proxy.cut();
    let ran = worker
        .wait()
        .code(69)
        .says(&["did not come back within 1s", "unsettled messages are back"]);
    assert_eq!(ran.json()["unsettled"], 1);
    vhost.wait_for_ready("work", 1);
}

#[test]
fn no_permission_to_read_is_77() {
    let mut vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let user = vhost.user(".*", ".*", "^$", "management");
    let handler = Script::new("exit 0");
    let management = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    let args: Vec<std::ffi::OsString> = vec![
        "consume".into(),
        "work".into(),
        "--exec".into(),
        handler.path(),
    ];
    Mq::new(args)
        .env("MQ_URL", vhost.url_of(&user, "pw"))
        .env("MQ_MANAGEMENT_URL", management)
        .run()
        .code(77)
        .says(&["queue 'work'", "set_permissions"]);
}

#[test]
fn a_vhost_deleted_under_the_worker_is_no_clean_end() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    let handler = Script::new("exit 0");
    let worker = consume(&vhost, &["--reconnect-for", "2s"], &handler).spawn();
    wait_until("the worker to be there", || consumers(&vhost) == 1);
    vhost.api(Method::DELETE, &["vhosts", &vhost.name], &json!({}));
    let ran = worker.wait();
    vhost.api(Method::PUT, &["vhosts", &vhost.name], &json!({}));
    // The connection ends and the vhost is not there when it comes back, or the
    // queue's end is seen before that (3.10).
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let told = ["vhost", "queue 'work' was deleted"];
    assert!(
        told.iter().any(|words| ran.stderr.contains(words)),
        "{}",
        ran.stderr
    );
}

#[test]
fn of_several_urls_the_first_that_answers_is_used() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "x");
    // Nobody listens on the first; the second goes away and comes back.
    let proxy = Proxy::to(vhost.address());
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
        listener.local_addr().expect("address").to_string()
    };
    let urls = format!(
        "{},{},{}",
        vhost.url_at("guest", "guest", &nobody),
        vhost.url_at("guest", "guest", &proxy.address),
        vhost.url()
    );
    let handler = Script::new("echo $(cat) >>$(dirname $0)/seen");
    let worker = consume(&vhost, &[], &handler).env("MQ_URL", &urls).spawn();
    wait_until("the first message", || handler.lines("seen").len() == 1);
    proxy.let_through(false);
    proxy.cut();
    vhost.publish("work", "y");
    // The first may come again: its ack may have been cut off with the connection.
    wait_until("the second message", || {
        handler.lines("seen").contains(&"y".to_owned())
    });
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().code(0).says(&["reconnected"]);
}

/// On 4.3 a quorum queue takes back what was held too long and cancels the
/// consumer; older ones close the channel, up to a minute later.
#[test]
fn a_message_held_too_long_is_taken_again() {
    let vhost = Vhost::new();
    if vhost.version() < (4, 3) {
        return;
    }
    vhost.apply(
        "
exchanges: { dlx: { type: fanout } }
queues:
  work: { type: quorum, delivery_limit: unlimited, consumer_timeout: 1s, dead_letter: { exchange: dlx } }
  dead: { type: classic, bind: [ { exchange: dlx } ] }
",
    );
    vhost.publish("work", "x");
    let handler = Script::new(
        "d=$(dirname $0); [ -e $d/slow ] || { touch $d/slow; sleep 3; }; echo done >>$d/seen",
    );
    consume(&vhost, &["--until-empty"], &handler)
        .run()
        .code(0)
        .says(&["the broker ended the subscription", "reconnected"])
        .shows(&["1 acked"]);
    assert_eq!(handler.lines("seen").len(), 2);
    assert_eq!(vhost.ready("dead"), 0);
}
