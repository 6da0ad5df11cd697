//! A vhost set up wrongly on purpose by other clients (pika, amqp-tools): each
//! mistake is found with its evidence, and is gone once it is righted.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start clients of other makes, and read what was reported"
)]

use std::process::{Child, Command, Stdio};

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::doctor::{examine, findings};
use crate::support::wait_for;
use crate::vhost::Vhost;

/// A client that runs until it is dropped.
struct Client(Child);

impl Client {
    fn run(command: &mut Command) -> Self {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(silent.stderr(Stdio::inherit()).spawn().unwrap())
    }

    /// Debian's python3, which has Debian's python3-pika.
    fn pika(vhost: &Vhost, words: &[&str]) -> Self {
        Self::run(
            Command::new("/usr/bin/python3")
                .arg("tests/broker/doctor_wrong/client.py")
                .arg(vhost.url())
                .args(words),
        )
    }

    /// `amqp-consume` acks when `cat` ends well.
    fn amqp_consume(vhost: &Vhost, queue: &str, flags: &[&str]) -> Self {
        let at = vhost.endpoint();
        Self::run(
            // Its URLs know no such vhosts.
            Command::new("amqp-consume")
                .args(["--server", &at.host, "--port", &at.port.to_string()])
                .args(["--vhost", &vhost.name])
                .args(["--queue", queue])
                .args(flags)
                .arg("cat"),
        )
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn declare(vhost: &Vhost, queue: &str, arguments: &Json) {
    let body = json!({"durable": true, "arguments": arguments});
    vhost.api(Method::PUT, &["queues", &vhost.name, queue], &body);
}

fn exchange(vhost: &Vhost, name: &str, durable: bool) {
    let body = json!({"type": "direct", "durable": durable});
    vhost.api(Method::PUT, &["exchanges", &vhost.name, name], &body);
}

fn bind(vhost: &Vhost, exchange: &str, queue: &str, key: &str) {
    let path = ["bindings", &vhost.name, "e", exchange, "q", queue];
    vhost.api(Method::POST, &path, &json!({"routing_key": key}));
}

fn policy(vhost: &Vhost, name: &str, definition: &Json) {
    let body =
        json!({"pattern": format!("^{name}$"), "definition": definition, "apply-to": "queues"});
    vhost.api(Method::PUT, &["policies", &vhost.name, name], &body);
}

fn to(exchange: &str, key: &str) -> Json {
    json!({"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key})
}

/// Something wrong: the check, its subject, and what the evidence names.
type Wrong = (&'static str, &'static str, &'static [&'static str]);

/// Waits until all of these are found, each with a fix.
fn wait_for_all(vhost: &Vhost, wrongs: &[Wrong]) {
    wait_for("everything wrong to be found", || {
        let report = examine(vhost);
        let found = findings(vhost, &report);
        let missing = wrongs.iter().find(|(code, subject, parts)| {
            !found.iter().any(|(of, finding)| {
                let evidence = finding["evidence"].as_str().unwrap();
                of == code
                    && (*subject == "*" || finding["subject"] == *subject)
                    && ["fail", "warn"].contains(&finding["status"].as_str().unwrap())
                    && parts.iter().all(|part| evidence.contains(part))
                    && !finding["fix"].as_str().unwrap().is_empty()
            })
        });
        match missing {
            Some(missing) => Err(format!("{missing:?}\n{found:#?}")),
            None => Ok(()),
        }
    });
}

/// Waits until nothing is wrong or unknown any more.
fn wait_for_none(vhost: &Vhost) {
    wait_for("nothing wrong to be left", || {
        let report = examine(vhost);
        let found = findings(vhost, &report);
        found.is_empty().then_some(()).ok_or(format!("{found:#?}"))
    });
}

#[test]
fn what_other_clients_do_wrong_is_found_until_they_do_it_right() {
    let vhost = Vhost::new();
    for (queue, dead) in [("a", "a.dlq"), ("b", "b.dlq"), ("c", "c.dlq")] {
        declare(&vhost, queue, &to("", dead));
        declare(&vhost, dead, &json!({}));
    }
    let wrong = [
        Client::pika(&vhost, &["publish", "a"]),
        Client::amqp_consume(&vhost, "a", &["--no-ack"]),
        Client::amqp_consume(&vhost, "b", &[]),
        Client::pika(&vhost, &["consume", "c", "5000", "ack"]),
    ];
    wait_for_all(
        &vhost,
        &[
            (
                "MQD04",
                "*",
                &["'publish a'", "without confirms", "user 'guest'"],
            ),
            ("MQD05", "a", &["no_ack"]),
            ("MQD06", "b", &["prefetch 0"]),
            ("MQD06", "c", &["prefetch 5000", "'consume c 5000 ack'"]),
        ],
    );
    vhost
        .mq(["doctor", "--check", "--skip", "MQD14"])
        .run()
        .code(1)
        .shows(&["FAIL    MQD04", "FAIL    MQD05", "FAIL    MQD06"]);
    drop(wrong);
    let _right = [
        Client::pika(&vhost, &["publish", "a", "confirms"]),
        Client::amqp_consume(&vhost, "a", &["-p", "10"]),
        Client::amqp_consume(&vhost, "b", &["-p", "10"]),
        Client::pika(&vhost, &["consume", "c", "20", "ack"]),
    ];
    wait_for_none(&vhost);
}

#[test]
fn a_topology_that_loses_dead_letters_is_found_until_it_is_righted() {
    let vhost = Vhost::new();
    exchange(&vhost, "gone.after.restart", false);
    exchange(&vhost, "dlx", true);
    exchange(&vhost, "other", true);
    declare(&vhost, "a", &to("gone.after.restart", "dead"));
    declare(&vhost, "a.dlq", &json!({}));
    bind(&vhost, "gone.after.restart", "a.dlq", "dead");
    declare(&vhost, "b", &to("dlx", "wrong"));
    declare(&vhost, "b.dlq", &json!({}));
    bind(&vhost, "dlx", "b.dlq", "right");
    declare(&vhost, "c", &to("", "c.dlq"));
    declare(&vhost, "c.dlq", &json!({"x-queue-type": "quorum"}));
    policy(&vhost, "c", &json!({"dead-letter-exchange": "other"}));
    declare(&vhost, "d", &json!({}));
    declare(&vhost, "d.dlq", &json!({}));
    policy(&vhost, "d", &json!({"dead-letter-exchange": "nowhere"}));
    let mut wrongs: Vec<Wrong> = vec![
        (
            "MQD01",
            "a",
            &["'gone.after.restart'", "not durable", "by the argument"],
        ),
        ("MQD01", "d", &["'nowhere'", "does not exist", "policy 'd'"]),
        ("MQD02", "b", &["'dlx'", "'wrong'", "reach no queue"]),
        ("MQD02", "c", &["policy 'c'", "'other'", "wins"]),
    ];
    let limited = vhost.version() >= (4, 0);
    if limited {
        wrongs.push(("MQD09", "c.dlq", &["limit of 20", "nobody set it"]));
    }
    wait_for_all(&vhost, &wrongs);

    let path = ["exchanges", &vhost.name, "gone.after.restart"];
    vhost.api(Method::DELETE, &path, &json!({}));
    exchange(&vhost, "gone.after.restart", true);
    bind(&vhost, "gone.after.restart", "a.dlq", "dead");
    bind(&vhost, "dlx", "b.dlq", "wrong");
    vhost.api(Method::DELETE, &["policies", &vhost.name, "c"], &json!({}));
    policy(
        &vhost,
        "d",
        &json!({"dead-letter-exchange": "", "dead-letter-routing-key": "d.dlq"}),
    );
    if limited {
        policy(&vhost, "c.dlq", &json!({"delivery-limit": -1}));
    }
    wait_for_none(&vhost);
}

#[test]
fn consumers_that_put_dead_letters_back_are_found_until_they_stop() {
    let vhost = Vhost::new();
    for (queue, dead) in [("a", "a.dlq"), ("b", "b.dlq")] {
        declare(&vhost, queue, &to("", dead));
        declare(&vhost, dead, &json!({}));
        vhost.publish_all(queue, &["1".to_owned(), "2".to_owned()]);
    }
    let _workers = [
        Client::pika(&vhost, &["consume", "a", "1", "reject"]),
        Client::pika(&vhost, &["consume", "b", "1", "reject"]),
    ];
    let loops = [
        Client::pika(&vhost, &["consume", "a.dlq", "1", "requeue"]),
        Client::pika(&vhost, &["consume", "b.dlq", "1", "republish", "b"]),
    ];
    wait_for_all(
        &vhost,
        &[
            ("MQD10", "a.dlq", &["redeliveries", "acks"]),
            (
                "MQD10",
                "b.dlq",
                &["'consume b.dlq 1 republish b'", "die again", "'b'"],
            ),
            ("MQD11", "a.dlq", &["2 dead letters"]),
        ],
    );
    drop(loops);
    let _right = [
        Client::pika(&vhost, &["consume", "a.dlq", "1", "ack"]),
        Client::pika(&vhost, &["consume", "b.dlq", "1", "ack"]),
    ];
    wait_for_none(&vhost);
}
