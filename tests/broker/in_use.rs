//! What was deleted once although it was in use: it must not happen again.

#![expect(
    clippy::expect_used,
    reason = "helpers of a test, outside #[test] functions"
)]

use lapin::ConnectionProperties;
use lapin::options::{BasicGetOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable};
use reqwest::Method;
use serde_json::json;

use crate::vhost::{Vhost, block_on};

const PRUNE: [&str; 3] = ["apply", "--prune", "--yes"];

fn is_there(vhost: &Vhost, kind: &str, name: &str) -> bool {
    let objects = vhost.get(&[kind, &vhost.name]);
    objects
        .as_array()
        .into_iter()
        .flatten()
        .any(|object| object["name"] == name)
}

#[test]
fn a_stream_is_never_taken_for_empty() {
    let vhost = Vhost::new();
    let file = "version: 1\nowns: ['^o']\nqueues: { o.s: { type: stream } }\n";
    vhost.topology(file, &["apply"]).run().code(0);
    vhost.publish("o.s", "x");
    vhost
        .topology(file, &["destroy", "--yes"])
        .run()
        .code(2)
        .says(&["queue 'o.s': it is a stream"]);
    vhost
        .topology("version: 1\nowns: ['^o']\n", &PRUNE)
        .run()
        .code(2)
        .says(&["queue 'o.s': it"]);
    assert!(is_there(&vhost, "queues", "o.s"));
    vhost
        .topology(file, &["destroy", "--yes", "--force"])
        .run()
        .code(0);
}

#[test]
fn a_message_that_somebody_holds_counts_at_once() {
    let vhost = Vhost::new();
    for kind in ["classic", "quorum"] {
        held_message(&vhost, kind);
    }
}

fn held_message(vhost: &Vhost, kind: &str) {
    let file = &format!("version: 1\nowns: ['^o']\nqueues: {{ o.{kind}: {{ type: {kind} }} }}\n");
    let queue = &format!("o.{kind}");
    vhost.topology(file, &["apply"]).run().code(0);
    vhost.publish(queue, "x");
    let (refused, pruned) = block_on(async {
        let connection = lapin::Connection::connect(&vhost.url(), ConnectionProperties::default())
            .await
            .expect("client");
        let channel = connection.create_channel().await.expect("client");
        let held = channel
            .basic_get(queue.as_str().into(), BasicGetOptions { no_ack: false })
            .await
            .expect("client");
        assert!(held.is_some());
        let ran = tokio::task::block_in_place(|| {
            (
                vhost.topology(file, &["destroy", "--yes"]).run(),
                vhost.topology("version: 1\nowns: ['^o']\n", &PRUNE).run(),
            )
        });
        connection.close(200, "bye".into()).await.expect("client");
        ran
    });
    let said = format!("queue '{queue}': it ");
    refused.code(2).says(&[&said]);
    pruned.code(2).says(&[&said]);
    vhost.wait_for_ready(queue, 1);
    vhost.delete_queue(queue);
}

#[test]
fn nothing_is_done_to_a_neighbours_broker() {
    let vhost = Vhost::new();
    let neighbour = crate::proxy::management_of_another_cluster();
    let file = "version: 1\nusers: { somebody: {} }\npolicies: { p: { pattern: x, definition: { max-length: 1 } } }\n";
    for args in [
        &["destroy", "--yes"][..],
        &["destroy", "--yes", "--force", "--delete-vhost"],
        &["apply", "--create-vhost", "--vhost", "of nobody"],
    ] {
        vhost
            .topology(file, args)
            .env("MQ_MANAGEMENT_URL", &neighbour)
            .run()
            .code(78)
            .says(&["belongs to the cluster 'somebody-elses'"]);
    }
}

#[test]
fn what_the_file_says_is_declared_elsewhere_is_not_pruned() {
    let vhost = Vhost::new();
    vhost.apply("exchanges: { o.theirs: { type: fanout } }");
    let file = "version: 1
owns: ['^o']
elsewhere: { exchanges: [ o.theirs ] }
queues: { o.q: { type: classic, dead_letter: { exchange: o.theirs, key: x } } }
";
    vhost.topology(file, &PRUNE).run().code(0);
    assert!(is_there(&vhost, "exchanges", "o.theirs"));
}

#[test]
fn an_exchange_that_others_send_dead_letters_to_is_in_use() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { o.dlx: { type: fanout }, o.ae: { type: fanout }, theirs: { type: fanout, alternate: o.ae } }
queues: { theirs: { dead_letter: { exchange: o.dlx } } }
",
    );
    for flags in [&[][..], &["--allow", "lose-messages"]] {
        let mut args = PRUNE.to_vec();
        args.extend(flags);
        vhost
            .topology("version: 1\nowns: ['^o']\n", &args)
            .run()
            .code(2)
            .says(&[
                "exchange 'o.dlx': queue 'theirs' dead-letters to it",
                "exchange 'o.ae': exchange 'theirs' has it as alternate",
            ]);
    }
    assert!(is_there(&vhost, "exchanges", "o.dlx"));
}

#[test]
fn losing_messages_is_no_word_on_what_exchanges_feed() {
    let vhost = Vhost::new();
    vhost.apply(
        "exchanges: { o.x: { type: fanout } }\nqueues: { theirs: { bind: [ { exchange: o.x } ] } }",
    );
    let mut args = PRUNE.to_vec();
    args.extend(["--allow", "lose-messages"]);
    vhost
        .topology("version: 1\nowns: ['^o']\n", &args)
        .run()
        .code(2)
        .says(&["exchange 'o.x': it feeds what the file does not declare: queue 'theirs'"]);
}

#[test]
fn a_binding_with_arguments_of_any_type_really_goes() {
    let vhost = Vhost::new();
    let file = "version: 1
owns: ['^o']
exchanges: { o.x: { type: headers } }
queues: { o.q: { type: classic } }
";
    vhost.topology(file, &["apply"]).run().code(0);
    block_on(async {
        let connection = lapin::Connection::connect(&vhost.url(), ConnectionProperties::default())
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        for value in [
            AMQPValue::LongInt(5),
            AMQPValue::ShortShortInt(5),
            AMQPValue::Timestamp(1_700_000_000),
            AMQPValue::Void,
            AMQPValue::Double(1.5),
            AMQPValue::LongString("text / %".into()),
        ] {
            let mut arguments = FieldTable::default();
            arguments.insert("v".into(), value);
            channel
                .queue_bind(
                    "o.q".into(),
                    "o.x".into(),
                    "k / %é".into(),
                    QueueBindOptions::default(),
                    arguments,
                )
                .await
                .unwrap();
        }
        connection.close(200, "bye".into()).await.unwrap();
    });
    vhost
        .topology(file, &PRUNE)
        .run()
        .code(0)
        .shows(&["deleted"]);
    vhost
        .topology(file, &["plan", "--check", "--prune"])
        .run()
        .code(0);
}

#[test]
fn a_vhost_with_anything_of_others_in_it_stays() {
    let keeper = Vhost::new();
    let name = format!("{} shared", keeper.name);
    let file = "version: 1\nqueues: { q: { type: classic } }\n";
    keeper
        .topology(file, &["apply", "--create-vhost", "--vhost", &name])
        .run()
        .code(0);
    let policy = json!({"pattern": "^x", "definition": {"max-length": 5}});
    keeper.api(Method::PUT, &["policies", &name, "theirs"], &policy);
    let destroy = ["destroy", "--yes", "--delete-vhost", "--vhost", &name];
    keeper
        .topology(file, &destroy)
        .run()
        .code(3)
        .says(&["it still holds policy 'theirs'"]);
    keeper.api(Method::DELETE, &["policies", &name, "theirs"], &json!({}));
    keeper.topology(file, &destroy).run().code(0);
}

#[test]
fn mq_does_not_change_the_user_it_works_as() {
    let mut vhost = Vhost::new();
    let user = vhost.user(".*", ".*", ".*", "administrator");
    let management = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    let file =
        format!("version: 1\nexchanges: {{ e: {{ type: fanout }} }}\nusers: {{ {user}: {{}} }}\n");
    vhost
        .topology(&file, &["apply"])
        .env("MQ_MANAGEMENT_URL", management)
        .run()
        .code(2)
        .says(&["is what mq works as", "tags"]);
    assert!(!is_there(&vhost, "exchanges", "e"));
}

#[test]
fn patterns_that_only_the_broker_can_read_do_not_stop_the_others() {
    let vhost = Vhost::new();
    let policy = json!({"pattern": "\\Qa.b\\E", "priority": 1.5, "definition": {"max-length": 5}});
    vhost.api(Method::PUT, &["policies", &vhost.name, "odd"], &policy);
    let file = "version: 1\npolicies: { p: { pattern: ^x, definition: { max-length: 5 } } }\n";
    vhost.topology(file, &["apply"]).run().code(0);
    vhost.topology(file, &["plan", "--check"]).run().code(0);
}
