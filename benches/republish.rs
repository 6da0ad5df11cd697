//! The peers of `scripts/bench replay`: the plainest loops that lapin can do, each
//! with so many publishes unconfirmed at once as `WINDOW` says.
//!
//! ```text
//! republish publish URL QUEUE COUNT BYTES WINDOW   persistent and mandatory
//! republish drain   URL QUEUE COUNT PREFETCH       an ack for every 50
//! republish move    URL FROM TO COUNT WINDOW       each acked after its confirm
//! ```
#![expect(
    clippy::unwrap_used,
    reason = "a program for measuring: whatever goes wrong ends it"
)]

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer};

/// Acks are sent for this many at a time.
const ACK_EVERY: usize = 50;

fn main() {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().unwrap();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            match args[..] {
                ["publish", url, queue, count, bytes, window] => {
                    publish(url, queue, number(count), number(bytes), number(window)).await;
                }
                ["drain", url, queue, count, prefetch] => {
                    drain(url, queue, number(count), number(prefetch)).await;
                }
                ["move", url, from, to, count, window] => {
                    move_all(url, from, to, number(count), number(window)).await;
                }
                // `cargo bench` starts every bench.
                _ => {}
            }
        });
}

async fn channel(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

async fn confirming(connection: &Connection) -> Channel {
    let channel = connection.create_channel().await.unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    channel
}

async fn consumer(channel: &Channel, queue: &str, prefetch: usize) -> Consumer {
    channel
        .basic_qos(prefetch.try_into().unwrap(), BasicQosOptions::default())
        .await
        .unwrap();
    let options = BasicConsumeOptions::default();
    channel
        .basic_consume(queue.into(), "".into(), options, FieldTable::default())
        .await
        .unwrap()
}

async fn sent(
    channel: &Channel,
    queue: &str,
    body: &[u8],
    properties: BasicProperties,
) -> impl Future<Output = lapin::Result<Confirmation>> + use<> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    channel
        .basic_publish("".into(), queue.into(), options, body, properties)
        .await
        .unwrap()
}

fn must_be_taken(confirmation: &Confirmation) {
    assert!(
        matches!(confirmation, Confirmation::Ack(None)),
        "{confirmation:?}"
    );
}

async fn publish(url: &str, queue: &str, count: usize, bytes: usize, window: usize) {
    let (connection, _) = channel(url).await;
    let channel = confirming(&connection).await;
    let body = vec![b'x'; bytes];
    let mut out = VecDeque::with_capacity(window);
    for _ in 0..count {
        let properties = BasicProperties::default().with_delivery_mode(2);
        out.push_back(sent(&channel, queue, &body, properties).await);
        if out.len() >= window
            && let Some(confirm) = out.pop_front()
        {
            must_be_taken(&confirm.await.unwrap());
        }
    }
    for confirm in out {
        must_be_taken(&confirm.await.unwrap());
    }
    connection.close(200, "bye".into()).await.unwrap();
}

async fn drain(url: &str, queue: &str, count: usize, prefetch: usize) {
    let (connection, channel) = channel(url).await;
    let mut deliveries = consumer(&channel, queue, prefetch).await;
    for number in 1..=count {
        let delivery = deliveries.next().await.unwrap().unwrap();
        if number % ACK_EVERY == 0 || number == count {
            let options = BasicAckOptions { multiple: true };
            delivery.acker.ack(options).await.unwrap();
        }
    }
    connection.close(200, "bye".into()).await.unwrap();
}

async fn move_all(url: &str, from: &str, to: &str, count: usize, window: usize) {
    let (connection, channel) = channel(url).await;
    let target = confirming(&connection).await;
    let mut deliveries = consumer(&channel, from, window * 2).await;
    let mut out = VecDeque::with_capacity(window);
    for number in 1..=count {
        let delivery = deliveries.next().await.unwrap().unwrap();
        let properties = delivery.properties.with_headers(FieldTable::default());
        let confirm = sent(&target, to, &delivery.data, properties).await;
        out.push_back((confirm, delivery.acker));
        while out.len() >= window || (number == count && !out.is_empty()) {
            if let Some((confirm, acker)) = out.pop_front() {
                must_be_taken(&confirm.await.unwrap());
                acker.ack(BasicAckOptions::default()).await.unwrap();
            }
        }
    }
    connection.close(200, "bye".into()).await.unwrap();
}
