//! The URL as a handler, without a worker: its result, and being told to end.

use std::sync::Arc;
use std::time::Duration;

use mq::endpoint::HandlerEndpoint;
use mq::handler::{Handler, Http, Job};
use mq::message::{Delivery, Properties};
use mq::retry::{Attempt, HandlerResult, Outcome};
use mq::topology::QueueName;
use tokio::sync::watch;

use crate::support::http_server::{HttpServer, answer};
use crate::support::wait_until;

#[expect(clippy::unwrap_used, reason = "outside #[test] functions")]
fn run(url: &str, wants_result: bool, limit: Duration, kill: &watch::Sender<bool>) -> Attempt {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let endpoint = HandlerEndpoint::parse(url).unwrap();
    let handler = Handler::Http(Http::new(endpoint, Duration::from_secs(5), limit).unwrap());
    let job = Job {
        queue: QueueName::new("q").unwrap(),
        tag: 1,
        delivery: Arc::new(Delivery {
            exchange: "e".to_owned(),
            routing_key: "k".to_owned(),
            redelivered: false,
            properties: Properties::default(),
            body: b"body".to_vec(),
        }),
        attempt: 1,
        max_attempts: 2,
        wants_result,
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(handler.run(job, kill.subscribe()))
}

fn attempt(server: &HttpServer, wants_result: bool) -> Attempt {
    run(
        &server.url(),
        wants_result,
        Duration::from_mins(1),
        &watch::Sender::new(false),
    )
}

fn end(attempt: &Attempt) -> &str {
    attempt.trace.end.as_deref().unwrap_or_default()
}

#[test]
fn the_body_of_an_answer_is_the_result_if_one_is_wanted() {
    let body = "é\u{0}".repeat(100_000);
    let server = HttpServer::saying(&answer(201, "content-type: text/x; a=b\r\n", &body));
    let wanted = attempt(&server, true);
    assert_eq!(
        (&wanted.outcome, end(&wanted)),
        (&Outcome::Done, "HTTP 201")
    );
    let result = wanted.result.expect("result");
    assert!(
        result.body == body.as_bytes(),
        "{} bytes came",
        result.body.len()
    );
    assert_eq!(result.content_type.as_deref(), Some("text/x; a=b"));
    let unwanted = attempt(&server, false);
    assert_eq!((unwanted.outcome, unwanted.result), (Outcome::Done, None));
}

#[test]
fn an_answer_of_a_failure_is_a_result_too() {
    let server = HttpServer::saying(&answer(422, "", "no\n"));
    let attempt = attempt(&server, true);
    let why = "HTTP 422: no".to_owned();
    assert_eq!(attempt.outcome, Outcome::Poison { why });
    let body = b"no\n".to_vec();
    let content_type = None;
    assert_eq!(attempt.result, Some(HandlerResult { body, content_type }));
}

#[test]
fn a_result_that_does_not_come_whole_is_a_failed_attempt() {
    const MOST: usize = 16 * 1024 * 1024;
    let most = HttpServer::saying(&answer(200, "", &"x".repeat(MOST)));
    let result = attempt(&most, true).result.expect("result");
    assert_eq!(result.body.len(), MOST);

    let endless = HttpServer::new(|_, client| {
        client.send("HTTP/1.1 200 OK\r\n\r\n");
        client.flood();
    });
    let torn = HttpServer::new(|_, client| {
        client.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        client.hang_up();
    });
    let slow = HttpServer::new(|_, client| {
        client.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        client.withhold();
    });
    let limit = Duration::from_secs(2);
    for (server, expected) in [
        (&endless, "HTTP 200, but its body is over 16 MiB"),
        (&torn, "HTTP 200, but its body broke off"),
        (&slow, "HTTP 200, but its body did not end within 2s"),
    ] {
        let attempt = run(&server.url(), true, limit, &watch::Sender::new(false));
        match &attempt.outcome {
            Outcome::Failed { why, wait: None } => assert!(why.starts_with(expected), "{why}"),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(attempt.result, None);
    }
    // Where no result is wanted all of these are done.
    for server in [&endless, &torn, &slow] {
        assert_eq!(attempt(server, false).outcome, Outcome::Done);
    }
}

#[test]
fn the_end_is_told_in_a_word() {
    let mute = HttpServer::new(|_, client| client.withhold());
    let limit = Duration::from_millis(200);
    let late = run(&mute.url(), false, limit, &watch::Sender::new(false));
    assert_eq!(end(&late), "timeout");
    let refused = run(
        "http://127.0.0.1:1/",
        false,
        limit,
        &watch::Sender::new(false),
    );
    assert_eq!(end(&refused), "connect");
    let rude = HttpServer::new(|_, client| client.hang_up());
    assert_eq!(end(&attempt(&rude, false)), "broken off");
    let bad = HttpServer::saying(&answer(400, "", ""));
    assert_eq!(end(&attempt(&bad, false)), "HTTP 400");
}

#[test]
fn told_to_end_it_drops_the_request() {
    let mute = HttpServer::new(|_, client| client.withhold());
    let slow = HttpServer::new(|_, client| {
        client.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        client.withhold();
    });
    for server in [mute, slow] {
        let kill = watch::Sender::new(false);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&server.url(), true, Duration::from_mins(1), &kill));
            wait_until("the request", || !server.requests().is_empty());
            kill.send_replace(true);
            let ended = running.join().expect("joined");
            assert_eq!(ended, Attempt::bare(Outcome::Interrupted));
        });
        wait_until("the request to be dropped", || server.lost() == 1);
    }
}
