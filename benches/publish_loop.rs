//! A peer of `scripts/bench publish`: the plainest loop of confirmed publishes that
//! lapin can do.
//!
//! ```text
//! publish_loop URL QUEUE COUNT BYTES WINDOW [one-thread]
//! ```
//!
//! Persistent and mandatory, at most WINDOW messages without a confirm. Ends with 0
//! only if each one was confirmed and none came back.
#![expect(
    clippy::unwrap_used,
    reason = "a program for measuring: whatever goes wrong ends it"
)]

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use tokio::runtime::Builder;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap();
    let (mut runtime, [url, queue, count, bytes, window]) = match args[..] {
        [url, queue, count, bytes, window] => (
            Builder::new_multi_thread(),
            [url, queue, count, bytes, window],
        ),
        [url, queue, count, bytes, window, "one-thread"] => (
            Builder::new_current_thread(),
            [url, queue, count, bytes, window],
        ),
        // `cargo bench` starts every bench.
        _ => return,
    };
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let all = publish(url, queue, number(count), number(bytes), number(window));
    runtime.enable_all().build().unwrap().block_on(all);
}

async fn publish(url: &str, queue: &str, count: usize, bytes: usize, window: usize) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let body = vec![b'x'; bytes];
    let mut open = FuturesUnordered::new();
    for _ in 0..count {
        if open.len() >= window {
            must_be_taken(&open.next().await.unwrap());
        }
        open.push(confirmed(&channel, queue, &body));
    }
    while let Some(confirmation) = open.next().await {
        must_be_taken(&confirmation);
    }
    connection.close(200, "bye".into()).await.unwrap();
}

async fn confirmed(channel: &Channel, queue: &str, body: &[u8]) -> Confirmation {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let properties = BasicProperties::default().with_delivery_mode(2);
    let confirm = channel
        .basic_publish("".into(), queue.into(), options, body, properties)
        .await
        .unwrap();
    confirm.await.unwrap()
}

fn must_be_taken(confirmation: &Confirmation) {
    assert!(
        matches!(confirmation, Confirmation::Ack(None)),
        "{confirmation:?}"
    );
}
