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
    let most = 8184 - 24 - 4 - 2 - 5;
    vhost
        .mq(["publish", "-q", "q", "-H", &header(most), "body"])
        .run()
        .code(0);
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
