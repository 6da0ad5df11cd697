//! A broker whose limits are smaller than the usual ones: what is over them is told
//! before it breaks the connection.

use serde_json::json;

use crate::node::Node;
use crate::vhost::Vhost;

fn with_queue() -> Vhost {
    let vhost = Vhost::new();
    vhost.apply("queues: { q: { type: classic } }\n");
    vhost
}

#[test]
fn headers_over_the_frame_of_this_broker_are_told_by_their_line() {
    let node = Node::alone();
    let vhost = with_queue();
    node.limit("frame_max", 8192);
    let header = |bytes: usize| format!("x={}", "y".repeat(bytes));
    // Up to 12 KiB a single message asks for small frames itself.
    for bytes in [8192, 14_000, 100_000] {
        vhost
            .mq(["publish", "-q", "q", "-H", &header(bytes), "body"])
            .run()
            .code(65)
            .says(&["a frame holds 8184", "frame_max"]);
    }
    // Fixed fields, delivery mode, the table's length, its only name and value.
    let most = 8184 - 14 - 1 - 4 - 2 - 5;
    for (bytes, code) in [(most, 0), (most + 1, 65)] {
        vhost
            .mq(["publish", "-q", "q", "-H", &header(bytes), "body"])
            .run()
            .code(code);
    }
    let line = |bytes: usize| {
        json!({"routing_key": "q", "body": "b", "properties": {"headers": {"x": "y".repeat(bytes)}}})
            .to_string()
    };
    let lines = [line(10), line(8000), line(9000), line(10)].join("\n");
    vhost
        .mq(["publish", "--jsonl", "-"])
        .stdin(lines)
        .run()
        .code(65)
        .shows(&["routed 2 of 2 messages"])
        .says(&["standard input:3: ", "a frame holds 8184"]);
    // Bodies are cut into as many frames as they need.
    vhost
        .mq(["publish", "-q", "q"])
        .stdin(vec![b'x'; 300_000])
        .run()
        .code(0);
    vhost.wait_for_ready("q", 4);
}

#[test]
fn a_body_over_the_size_this_broker_takes_is_told_by_its_line() {
    let node = Node::alone();
    let vhost = with_queue();
    node.limit("max_message_size", 500_000);
    let publish = |bytes: usize| {
        vhost
            .mq(["publish", "-q", "q", "--lines", "-"])
            .stdin(format!("1\n2\n{}\n4\n", "x".repeat(bytes)))
            .run()
            .code(65)
            .says(&[
                "standard input:3: ",
                "larger than configured max size 500000",
                "line 3: refused by the broker",
            ])
    };
    // So large ones go alone, and all before them are told.
    publish(2 << 20).shows(&["routed 2 of 3 messages"]);
    // This one does not, and the broker closes the channel of those with it.
    publish(600_000).says(&["no answer"]);
    publish(500_001).says(&["no answer"]);
    let ran = vhost
        .mq(["publish", "-q", "q"])
        .stdin(vec![b'x'; 500_001])
        .run();
    ran.code(65).says(&["max_message_size"]);
}
