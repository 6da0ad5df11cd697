//! What a message costs from the worker to its handler and back: a program for
//! each against one that lives on. `cargo bench --bench handler`.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a bench that is its own handler"
)]

use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use mq::handler::{Exec, ExecStream, Handler, Job};
use mq::message::{Delivery, Properties};
use mq::retry::Outcome;
use mq::topology::QueueName;
use tokio::runtime::Builder;
use tokio::sync::watch;

const LIMIT: Duration = Duration::from_secs(10);

fn main() {
    if std::env::args().any(|argument| argument == "answer") {
        answer();
    } else {
        divan::main();
    }
}

/// Done, whatever it is.
fn answer() {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        writeln!(answers, r#"{{"id":{},"outcome":"done"}}"#, message["id"]).unwrap();
    }
}

fn job() -> Job {
    Job {
        queue: QueueName::new("work").unwrap(),
        tag: 1,
        delivery: Arc::new(Delivery {
            exchange: String::new(),
            routing_key: "work".to_owned(),
            redelivered: false,
            properties: Properties {
                message_id: Some("m".to_owned()),
                ..Properties::default()
            },
            body: b"{\"id\":1}".to_vec(),
        }),
        attempt: 1,
        max_attempts: 5,
        wants_result: false,
    }
}

fn run(bencher: Bencher<'_, '_>, handler: &Handler) {
    // One thread: no more is measured than the handler and its process.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let kill = watch::Sender::new(false);
    bencher.bench_local(|| {
        let attempt = runtime.block_on(handler.run(job(), kill.subscribe()));
        assert_eq!(attempt.outcome, Outcome::Done);
    });
    runtime.block_on(handler.close());
}

#[divan::bench]
fn exec(bencher: Bencher<'_, '_>) {
    let command = [OsString::from("/bin/true")];
    let exec = Exec::find(&command, None, LIMIT).unwrap();
    run(bencher, &Handler::Exec(exec));
}

#[divan::bench]
fn exec_stream(bencher: Bencher<'_, '_>) {
    let command = [std::env::current_exe().unwrap().into(), "answer".into()];
    let stream = ExecStream::find(&command, None, LIMIT).unwrap();
    run(bencher, &Handler::Stream(stream));
}
