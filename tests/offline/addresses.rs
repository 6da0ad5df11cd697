//! Wrong addresses: each is told apart, none hangs, none shows a password.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that plays a server and watches the clock"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::Mq;

/// Serves every connection with `answer` and keeps it open; gives the port.
fn server(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 512];
                while let Ok(read) = stream.read(&mut bytes) {
                    if read == 0 || (!answer.is_empty() && stream.write_all(answer).is_err()) {
                        break;
                    }
                }
            });
        }
    });
    port
}

fn publish_to(url: &str) -> Mq {
    Mq::new(["--timeout", "1s", "publish", "-q", "q", "x"]).env("MQ_URL", url)
}

#[test]
fn a_closed_port_is_69() {
    publish_to("amqp://u:sesame@127.0.0.1:1/v")
        .run()
        .code(69)
        .says(&["amqp://u@127.0.0.1:1/v", "refused", "help:"]);
}

#[test]
fn a_host_that_does_not_exist_is_69() {
    publish_to("amqp://no-such-host.invalid/v")
        .run()
        .code(69)
        .says(&["no-such-host.invalid", "help:"]);
}

#[test]
fn a_port_that_accepts_and_never_answers_is_69_in_time() {
    let port = server(b"");
    let began = Instant::now();
    publish_to(&format!("amqp://127.0.0.1:{port}"))
        .run()
        .code(69)
        .says(&["no answer in time", "does not speak AMQP"]);
    assert!(began.elapsed() < Duration::from_secs(8));
}

#[test]
fn strangers_are_named() {
    for (answer, named) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "HTTP server"),
        (&[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46], "amqps://"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "no AMQP broker"),
        (b"AMQP\x00\x01\x00\x00", "another version of AMQP"),
    ] {
        let port = server(answer);
        publish_to(&format!("amqp://127.0.0.1:{port}"))
            .run()
            .code(69)
            .says(&[named]);
    }
}

#[test]
fn a_wrong_url_is_78_and_corrected() {
    for (url, says) in [
        ("amqp://u:sesame@h/", "amqp://u:***@h/%2f"),
        ("amqp://u:sesame@h/a/b", "a%2fb"),
        ("http://u:sesame@h/v", "begins neither"),
        ("amqp://u:sesame@h:70000/v", "cannot be read"),
        ("amqp://u:sesame@h/v?heartbeat=often", "heartbeat"),
    ] {
        let ran = publish_to(url).run().code(78).says(&[says]);
        assert!(!ran.stderr.contains("sesame"), "{}", ran.stderr);
    }
}

#[test]
fn several_urls_are_tried_in_order_and_all_are_named() {
    publish_to("amqp://127.0.0.1:1/a,amqp://127.0.0.1:2/b")
        .run()
        .code(69)
        .says(&["127.0.0.1:1/a", "127.0.0.1:2/b"]);
}

#[test]
fn amqp_url_is_the_fallback_and_mq_url_wins() {
    let run = |mq_url: &str| {
        Mq::new(["publish", "-q", "q", "x"])
            .env("AMQP_URL", "amqp://127.0.0.1:1/fallback")
            .env("MQ_URL", mq_url)
            .run()
            .code(69)
    };
    run("").says(&["fallback"]);
    run("amqp://127.0.0.1:1/first").says(&["first"]);
}

#[test]
fn wait_says_what_it_waits_for_and_gives_up_with_69() {
    let began = Instant::now();
    Mq::new(["wait", "--for", "700ms"])
        .env("MQ_URL", "amqp://u:sesame@127.0.0.1:1/v")
        .run()
        .code(69)
        .says(&["waiting for AMQP at amqp://u@127.0.0.1:1/v", "gave up"]);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn wait_does_not_take_an_open_port_for_an_answer() {
    let port = server(b"");
    Mq::new(["wait", "--for", "1s"])
        .env("MQ_URL", format!("amqp://127.0.0.1:{port}"))
        .run()
        .code(69)
        .says(&["no answer in time"]);
}

#[test]
fn inspect_without_management_says_how_to_enable_it() {
    Mq::new(["dlq", "inspect", "q"])
        .env("MQ_MANAGEMENT_URL", "http://u:sesame@127.0.0.1:1")
        .run()
        .code(69)
        .says(&[
            "http://127.0.0.1:1",
            "rabbitmq-plugins enable rabbitmq_management",
        ]);
}

#[test]
fn a_silent_management_api_is_69_in_time() {
    let port = server(b"");
    Mq::new(["--timeout", "500ms", "dlq", "inspect", "q"])
        .env("MQ_MANAGEMENT_URL", format!("http://127.0.0.1:{port}"))
        .run()
        .code(69)
        .says(&["did not answer in time"]);
}
