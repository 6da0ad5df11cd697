#![expect(
    clippy::disallowed_methods,
    reason = "a client of the server needs a clock"
)]

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::worker::Link;

async fn serving(status: Status) -> Server {
    let address = Address::parse("0").expect("an address");
    let labels = Labels {
        vhost: "/".to_owned(),
        queue: "q".to_owned(),
    };
    Server::start(&address, labels, move || status.clone())
        .await
        .expect("a free port")
}

/// What comes back until the server closes the connection.
async fn send(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.expect("connect");
    stream.write_all(request.as_bytes()).await.expect("send");
    let mut said = Vec::new();
    // A server that throws what it did not read away resets the connection.
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8(said).expect("text")
}

async fn ask(server: &Server, method: &str, path: &str) -> String {
    send(
        server,
        &format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n"),
    )
    .await
}

fn working() -> Status {
    Status {
        link: Link::Up,
        ..Status::default()
    }
}

#[tokio::test]
async fn health_and_readiness_follow_the_worker() {
    for (status, health, ready, said) in [
        (Status::default(), "200", "503", "connecting"),
        (working(), "200", "200", "ready"),
        (
            Status {
                link: Link::Lost,
                since_turn: Duration::from_hours(1),
                ..working()
            },
            "200",
            "503",
            "reconnecting",
        ),
        (
            Status {
                paused: true,
                ..working()
            },
            "200",
            "503",
            "paused",
        ),
        (
            Status {
                stopping: true,
                ..working()
            },
            "200",
            "503",
            "draining",
        ),
        (
            Status {
                since_turn: Duration::from_hours(1),
                ..working()
            },
            "503",
            "200",
            "ready",
        ),
    ] {
        let server = serving(status).await;
        let answer = ask(&server, "GET", "/healthz").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {health} ")),
            "{answer}"
        );
        let answer = ask(&server, "GET", "/readyz").await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {ready} ")),
            "{answer}"
        );
        assert!(answer.ends_with(&format!("\r\n\r\n{said}\n")), "{answer}");
    }
}

#[tokio::test]
async fn a_head_has_no_body_and_other_methods_are_refused() {
    let server = serving(working()).await;
    let got = ask(&server, "GET", "/metrics").await;
    let (_, page) = got.split_once("\r\n\r\n").expect("a head");
    assert!(got.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    let head = ask(&server, "HEAD", "/metrics").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"));
    assert!(
        head.contains(&format!("content-length: {}\r\n", page.len())),
        "{head}"
    );
    for path in ["/metrics", "/healthz", "/readyz"] {
        let refused = ask(&server, "POST", path).await;
        assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
        assert!(refused.contains("allow: GET, HEAD\r\n"), "{refused}");
    }
    for path in ["/", "/metrics/", "/x", "/healthz2"] {
        let lost = ask(&server, "GET", path).await;
        assert!(lost.starts_with("HTTP/1.1 404 "), "{lost}");
    }
    let with_query = ask(&server, "GET", "/metrics?name[]=mq_info").await;
    assert!(with_query.starts_with("HTTP/1.1 200 "), "{with_query}");
}

#[tokio::test]
async fn an_endless_head_is_cut_off() {
    let server = serving(working()).await;
    let long = format!("GET /metrics HTTP/1.1\r\nx: {}", "y".repeat(1024 * 1024));
    let answer = send(&server, &long).await;
    assert!(!answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let rubbish = send(&server, "\x16\x03\x01\x02\x00\r\n\r\n").await;
    assert!(!rubbish.starts_with("HTTP/1.1 200 "), "{rubbish}");
}

#[tokio::test]
async fn silent_clients_are_many_and_others_are_answered_all_the_same() {
    let server = serving(working()).await;
    let mut silent = Vec::new();
    for _ in 0..MOST_CONNECTIONS * 3 {
        let stream = TcpStream::connect(server.address()).await.expect("connect");
        silent.push(stream);
    }
    let answer = ask(&server, "GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // The first ones had to go, and long before any limit of time.
    let began = Instant::now();
    let mut oldest = silent.swap_remove(0);
    let read = oldest.read(&mut [0; 1]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(began.elapsed() < HEAD_LIMIT);
}

#[tokio::test]
async fn it_ends_with_its_owner() {
    let server = serving(working()).await;
    let address = server.address();
    let mut open = TcpStream::connect(address).await.expect("connect");
    drop(server);
    let read = open.read(&mut [0; 1]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(TcpStream::connect(address).await.is_err());
}
