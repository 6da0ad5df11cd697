//! The shipped topology, worked as the README says.

use crate::support::Script;
use crate::vhost::Vhost;

const HANDLER: &str = r#"
body=$(cat)
case $body in '{'*) ;; *) echo "not JSON" >&2; exit 65 ;; esac
case $body in *'"valid"'*) exit 0 ;; esac
echo "$MQ_ATTEMPT" >>"$(dirname "$0")/attempts"
echo "order is invalid" >&2
exit 1"#;

#[test]
fn good_ones_are_acked_failing_ones_retried_and_poison_ones_buried() {
    let vhost = Vhost::new();
    vhost
        .mq(["topology", "apply", "topologies/orders.yaml"])
        .run()
        .code(0);
    let handler = Script::new(HANDLER);
    for body in [
        r#"{"order_id":1001,"item":"Servidor Dedicado","status":"valid"}"#,
        r#"{"order_id":1002,"item":"Servidor Dedicado","status":"invalid"}"#,
        r#"{"order_id":1003,"item":"Servidor Dedicado","status":"valid"}"#,
        "this is not JSON",
    ] {
        vhost
            .mq([
                "publish",
                "-e",
                "orders.exchange",
                "-k",
                "order.created",
                body,
            ])
            .run()
            .code(0);
    }
    let summary = vhost
        .mq([
            "consume",
            "orders.queue",
            "--topology",
            "topologies/orders.yaml",
            "--until-empty",
            "-o",
            "json",
            "--exec",
        ]
        .map(Into::into)
        .into_iter()
        .chain([handler.path()]))
        .run()
        .code(0)
        .json();
    assert_eq!(summary["acked"], 2);
    assert_eq!(summary["retried"], 2);
    assert_eq!(summary["dead_lettered"]["poison"], 1);
    assert_eq!(summary["dead_lettered"]["exhausted"], 1);
    assert_eq!(handler.lines("attempts"), ["1", "2", "3"]);
    for queue in ["orders.queue", "orders.retry"] {
        assert_eq!(vhost.ready(queue), 0, "{queue}");
    }

    let dlq = vhost.inspect("orders.dlq");
    assert_eq!(dlq["ready"], 2);
    let find = |reason: &str| {
        dlq["messages"]
            .as_array()
            .and_then(|messages| messages.iter().find(|message| message["reason"] == reason))
            .cloned()
            .unwrap_or_default()
    };
    let poison = find("poison");
    assert_eq!(poison["body"], "this is not JSON");
    assert_eq!(poison["attempts"], 1);
    assert_eq!(poison["error"], "exit 65: not JSON");
    let exhausted = find("exhausted");
    assert_eq!(exhausted["attempts"], 3);
    assert_eq!(exhausted["origin"], "orders.queue");
    assert_eq!(exhausted["exchange"], "orders.exchange");
    assert_eq!(exhausted["routing_keys"][0], "order.created");
    let rejected = exhausted["deaths"]
        .as_array()
        .and_then(|deaths| {
            deaths
                .iter()
                .find(|death| death["queue"] == "orders.queue" && death["reason"] == "rejected")
        })
        .cloned()
        .unwrap_or_default();
    assert_eq!(rejected["count"], 2);
    // Looking again and again removes nothing.
    for _ in 0..25 {
        assert_eq!(vhost.inspect("orders.dlq")["shown"], 2);
    }
}
