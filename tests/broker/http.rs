//! Working a queue with a URL: what the server gets, and what its answers do.

use std::ffi::OsString;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::consume::{DLX, IMMEDIATE, of_type};
use crate::support::http_server::{HttpServer, answer};
use crate::support::{Mq, wait_until};
use crate::vhost::Vhost;

fn consume(vhost: &Vhost, flags: &[&str], url: &str) -> Mq {
    let mut args: Vec<OsString> = ["consume", "work", "--http", url].map(Into::into).into();
    args.extend(flags.iter().map(Into::into));
    vhost.mq(args)
}

/// Works until nothing is left, and gives the summary.
fn drain(vhost: &Vhost, flags: &[&str], url: &str) -> Json {
    let all = [&["--until-empty", "-o", "json"], flags].concat();
    consume(vhost, &all, url).run().code(0).json()
}

/// The only dead letter there is.
#[track_caller]
#[expect(
    clippy::indexing_slicing,
    reason = "test support outside #[test] functions"
)]
fn dead_letter(vhost: &Vhost) -> Json {
    let dlq = vhost.inspect("dead");
    assert_eq!(dlq["ready"], 1, "{dlq}");
    dlq["messages"][0].clone()
}

#[test]
fn a_message_arrives_as_it_is_and_is_acked() {
    let vhost = Vhost::new();
    let topology = of_type(IMMEDIATE, "quorum")
        .replace("exchanges: {", "exchanges: { orders é: { type: topic },")
        .replace(
            "work: {",
            "work: { bind: [{ exchange: orders é, key: '#' }],",
        );
    vhost.apply(&topology);
    let body = [0_u8, 1, 254, 255, b'\r', b'\n'].repeat(50_000);
    vhost
        .mq([
            "publish",
            "-e",
            "orders é",
            "-k",
            "ключ 100%",
            "--content-type",
            "application/x-thing; v=1",
            "--content-encoding",
            "gzip",
            "--message-id",
            "m1",
            "--correlation-id",
            "c 1",
            "--reply-to",
            "answers",
            "--type",
            "t",
            "--app-id",
            "shop",
            "--timestamp",
            "12",
            "--priority",
            "3",
            "-H",
            "k=é",
            "-H",
            "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ])
        .stdin(body.clone())
        .run()
        .code(0);
    let server = HttpServer::saying(&answer(200, "", "thanks"));
    let url = format!("http://us%40er:se%3Asame@{}/a/b?c=d#e", server.address);
    let summary = drain(&vhost, &[], &url);
    assert_eq!(
        (&summary["acked"], &summary["received"]),
        (&1.into(), &1.into())
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(request.line, "POST /a/b?c=d HTTP/1.1");
    assert!(request.body == body, "{} bytes came", request.body.len());
    for (name, value) in [
        ("host", server.address.as_str()),
        ("user-agent", concat!("mq/", env!("CARGO_PKG_VERSION"))),
        ("authorization", "Basic dXNAZXI6c2U6c2FtZQ=="),
        ("content-type", "application/x-thing; v=1"),
        ("content-encoding", "gzip"),
        ("MQ-Queue", "work"),
        ("MQ-Exchange", "orders%20%C3%A9"),
        ("MQ-Routing-Key", "%D0%BA%D0%BB%D1%8E%D1%87%20100%25"),
        ("MQ-Attempt", "1"),
        ("MQ-Max-Attempts", "5"),
        ("MQ-Redelivered", "false"),
        ("MQ-Body-Bytes", "300000"),
        ("MQ-Message-Id", "m1"),
        ("MQ-Correlation-Id", "c%201"),
        ("MQ-Reply-To", "answers"),
        ("MQ-Type", "t"),
        ("MQ-App-Id", "shop"),
        ("MQ-Timestamp", "12"),
        ("MQ-Priority", "3"),
        ("MQ-Delivery-Mode", "2"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    let headers: Json = serde_json::from_str(request.header("MQ-Headers").unwrap()).unwrap();
    assert_eq!(headers["k"], "é");
}

/// 429 with a wait, then 503, then done.
#[test]
fn an_analyzer_that_is_busy_at_first_gets_the_message_three_times() {
    for kind in ["classic", "quorum"] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(DLX, kind));
        vhost.publish("work", "analyze me");
        let analyzer = HttpServer::new(|request, client| {
            client.send(match request.header("mq-attempt") {
                Some("1") => answer(429, "retry-after: 1\r\n", "slow down"),
                Some("2") => answer(503, "", ""),
                _ => answer(200, "", "{}"),
            });
        });
        let summary = drain(&vhost, &[], &analyzer.url());
        assert_eq!(
            (&summary["acked"], &summary["retried"]),
            (&1.into(), &2.into())
        );
        let requests = analyzer.requests();
        let attempts: Vec<_> = requests.iter().map(|it| it.header("mq-attempt")).collect();
        assert_eq!(attempts, [Some("1"), Some("2"), Some("3")], "{kind}");
        for request in &requests {
            assert_eq!(request.body, b"analyze me");
            assert_eq!(request.header("mq-routing-key"), Some("work"));
        }
        assert_eq!(vhost.ready("dead"), 0);
    }
}

#[test]
fn a_message_that_the_server_calls_bad_is_dead_lettered_at_once() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    vhost.publish("work", "body");
    let server = HttpServer::saying(&answer(400, "", "no such order\nat line 1"));
    let url = format!("http://user:sesame@{}/?token=sesame", server.address);
    let ran = consume(&vhost, &["--until-empty", "-o", "json", "-vvv"], &url)
        .run()
        .code(0)
        .says(&["HTTP 400: no such order"]);
    assert_eq!(ran.json()["dead_lettered"]["poison"], 1);
    let letter = dead_letter(&vhost);
    assert_eq!(letter["reason"], "poison");
    assert_eq!(letter["error"], "HTTP 400: no such order");
    assert_eq!(letter["body"], "body");
    assert_eq!(server.requests().len(), 1);
    for told in [&ran.stdout, &ran.stderr, &letter.to_string()] {
        assert!(!told.contains("sesame"), "{told}");
    }
}

#[test]
fn where_nobody_answers_attempts_are_used_up_and_the_reason_is_kept() {
    let plain = HttpServer::saying(&answer(200, "", ""));
    let rude = HttpServer::new(|_, client| client.hang_up());
    let mute = HttpServer::new(|_, client| client.withhold());
    // The kernel takes connections that are never accepted, and TLS waits.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = format!("https://{}", plain.address);
    let silent_tls = format!("https://{}", silent.local_addr().unwrap());
    let no_host = "http://no.such.host.invalid";
    for (url, limit, why) in [
        (
            "http://127.0.0.1:1",
            [].as_slice(),
            "cannot connect to http://127.0.0.1:1 (".to_owned(),
        ),
        (no_host, &[], format!("cannot connect to {no_host} ")),
        (&tls, &[], format!("cannot connect to {tls} (")),
        (
            &silent_tls,
            &["--connect-timeout", "300ms"],
            format!("cannot connect to {silent_tls} within 300ms"),
        ),
        (&rude.url(), &[], "broke off without an answer".to_owned()),
        (
            &mute.url(),
            &["--handler-timeout", "300ms"],
            "within 300ms".to_owned(),
        ),
    ] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(IMMEDIATE, "classic"));
        vhost.publish("work", "body");
        let flags = [&["--max-attempts", "2"], limit].concat();
        let summary = drain(&vhost, &flags, url);
        assert_eq!(summary["dead_lettered"]["exhausted"], 1, "{url}");
        let letter = dead_letter(&vhost);
        let error = letter["error"].as_str().unwrap();
        assert!(error.contains(&why), "{url}: {error}");
        assert_eq!(letter["attempts"], 2);
    }
    assert_eq!((rude.requests().len(), mute.requests().len()), (2, 2));
    // Nobody waits for the answer of a request that took too long.
    wait_until("both requests to be dropped", || mute.lost() == 2);
}

#[test]
fn a_redirect_is_told_and_not_followed() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "body");
    let server = HttpServer::saying(&answer(307, "location: /elsewhere?t=1\r\n", ""));
    drain(&vhost, &["--max-attempts", "2"], &server.url());
    let letter = dead_letter(&vhost);
    let error = letter["error"].as_str().unwrap();
    assert!(
        error.starts_with("HTTP 307: redirects are not followed"),
        "{error}"
    );
    assert!(error.ends_with(" /elsewhere"), "{error}");
    let lines: Vec<_> = server.requests().into_iter().map(|it| it.line).collect();
    assert_eq!(lines, ["POST / HTTP/1.1"; 2]);
}

/// The status is what counts; nobody reads on.
#[test]
fn an_answer_without_an_end_holds_nothing_up() {
    let endless = |status: u16| {
        HttpServer::new(move |_, client| {
            client.send(format!("HTTP/1.1 {status} Said\r\n\r\n"));
            client.flood();
        })
    };
    let (good, bad) = (endless(200), endless(422));
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish("work", "body");
    assert_eq!(drain(&vhost, &[], &good.url())["acked"], 1);
    vhost.publish("work", "body");
    assert_eq!(drain(&vhost, &[], &bad.url())["dead_lettered"]["poison"], 1);
    let letter = dead_letter(&vhost);
    let error = letter["error"].as_str().unwrap();
    assert!(
        error.starts_with("HTTP 422: xxx") && error.len() < 250,
        "{error}"
    );
    wait_until("both to be hung up on", || good.lost() + bad.lost() == 2);
}

#[test]
fn as_many_requests_as_prefetch_says_are_under_way_at_once() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish_all("work", &numbered(8));
    // Each waits until four are under way: with fewer at once it would never end.
    let under_way = Arc::new(AtomicUsize::new(0));
    let server = HttpServer::new(move |_, client| {
        under_way.fetch_add(1, Ordering::SeqCst);
        wait_until("four requests", || under_way.load(Ordering::SeqCst) >= 4);
        client.send(answer(204, "", ""));
    });
    let summary = drain(&vhost, &["--prefetch", "4"], &server.url());
    assert_eq!(
        (&summary["acked"], &summary["retried"]),
        (&8.into(), &0.into())
    );
    assert_eq!(server.requests().len(), 8);
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

#[test]
fn one_connection_serves_many_messages() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "classic"));
    vhost.publish_all("work", &numbered(30));
    let server = HttpServer::new(|request, client| match request.body.len() {
        1 => client.send(answer(200, "", "a body that nobody asked for")),
        _ => {
            // In pieces, as frameworks stream it.
            client.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            for piece in ["5\r\nhello\r\n"; 20] {
                client.send(piece);
            }
            client.send("0\r\n\r\n");
        }
    });
    let summary = drain(&vhost, &[], &server.url());
    assert_eq!(summary["acked"], 30);
    assert_eq!((server.requests().len(), server.connections()), (30, 1));
}

#[test]
fn a_signal_waits_for_the_answer_and_leaves_the_rest() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish_all("work", &numbered(5));
    let go = Arc::new(AtomicBool::new(false));
    let may_go = go.clone();
    let server = HttpServer::new(move |_, client| {
        wait_until("leave to answer", || may_go.load(Ordering::SeqCst));
        client.send(answer(200, "", ""));
    });
    let flags = ["--prefetch", "2", "-o", "json", "-v"];
    let mut worker = consume(&vhost, &flags, &server.url()).spawn();
    wait_until("two requests", || server.requests().len() == 2);
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("draining");
    go.store(true, Ordering::SeqCst);
    let summary = worker.wait().code(0).json();
    assert_eq!(summary["acked"], 2);
    assert_eq!(server.requests().len(), 2);
    vhost.wait_for_ready("work", 3);
}

#[test]
fn after_the_grace_period_and_at_a_second_signal_the_request_is_dropped() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "x");
    let server = HttpServer::new(|_, client| client.withhold());
    let flags = ["--drain-timeout", "200ms", "-o", "json"];
    let worker = consume(&vhost, &flags, &server.url()).spawn();
    wait_until("the request", || server.requests().len() == 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code(0).json()["released"], 1);
    vhost.wait_for_ready("work", 1);

    let mut worker = consume(&vhost, &["-v"], &server.url()).spawn();
    wait_until("the next request", || server.requests().len() == 2);
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("draining");
    worker.signal(Signal::TERM);
    worker.wait().code(143).shows(&["1 unsettled"]);
    vhost.wait_for_ready("work", 1);
    wait_until("both requests to be dropped", || server.lost() == 2);
}

/// A URL that does not answer is no reason not to start.
#[test]
fn a_server_that_comes_up_later_gets_the_message() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(DLX, "quorum"));
    vhost.publish("work", "x");
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let server = HttpServer::new(move |_, client| {
        if is_up.load(Ordering::SeqCst) {
            client.send(answer(200, "", ""));
        } else {
            client.hang_up();
        }
    });
    let flags = ["--until-empty", "--max-attempts", "100", "-o", "json"];
    let mut worker = consume(&vhost, &flags, &server.url()).spawn();
    worker.wait_for_stderr("broke off without an answer");
    up.store(true, Ordering::SeqCst);
    assert_eq!(worker.wait().code(0).json()["acked"], 1);
}

/// Its downstream is away for long: the message is kept, and its delays grow.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "measures the delays between requests"
)]
fn an_analyzer_that_is_down_stops_the_worker_which_acks_once_it_is_back() {
    let vhost = Vhost::new();
    vhost.apply("workers: { work: { retry: { strategy: backoff, delays: [200ms, 600ms], max_attempts: 3 } } }\n");
    vhost.publish("work", "analyze me");
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let retry = [
        "--strategy",
        "backoff",
        "--delays",
        "200ms,600ms",
        "--max-attempts",
        "3",
        "--on-exhausted",
        "stop",
    ];
    consume(&vhost, &retry, &nobody)
        .run()
        .code(69)
        .says(&["attempt 3 of 3 failed", "given back"]);
    vhost.wait_for_ready("work", 1);
    assert_eq!(vhost.ready("work.dlq"), 0);
    let back = HttpServer::saying(&answer(200, "", "{}"));
    assert_eq!(drain(&vhost, &retry, &back.url())["acked"], 1);

    vhost.publish("work", "analyze me too");
    let times = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let busy = HttpServer::new(move |request, client| {
        seen.lock().unwrap().push(std::time::Instant::now());
        client.send(match request.header("mq-attempt") {
            Some("1") => answer(429, "", ""),
            Some("2") => answer(503, "", ""),
            _ => answer(200, "", "{}"),
        });
    });
    assert_eq!(drain(&vhost, &retry, &busy.url())["acked"], 1);
    let times = times.lock().unwrap();
    let waits: Vec<u128> = times
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).as_millis())
        .collect();
    assert!(waits[0] >= 200 && waits[1] >= 600, "{waits:?}");
}
