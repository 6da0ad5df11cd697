//! Pictures of what a broker has, with the depths of its queues.

use serde_json::{Value as Json, json};

use crate::support::{TextFile, wait_until};
use crate::vhost::Vhost;

const YAML: &str = "exchanges: { in: { type: topic }, dlx: { type: fanout } }
queues:
  work: { type: classic, bind: [ { exchange: in, key: 'a.*' }, { exchange: amq.direct, key: b } ] }
  wait: { type: classic, message_ttl: 1h, dead_letter: { exchange: '', key: work } }
  dlq: { type: classic, bind: [ { exchange: dlx } ] }
policies:
  dead: { pattern: '^work$', apply_to: queues, definition: { dead-letter-exchange: dlx } }
";

fn node(graph: &Json, id: &str) -> Json {
    let nodes = graph["nodes"].as_array().into_iter().flatten();
    let mut found = nodes.filter(|node| node["id"] == id);
    found.next().cloned().unwrap_or_default()
}

#[test]
fn the_broker_is_drawn_with_its_depths() {
    let vhost = Vhost::new();
    vhost.apply(YAML);
    vhost.publish_all("dlq", &["x".to_owned(), "y".to_owned()]);
    let live = || {
        let args = ["topology", "graph", "--live", "-o", "json"];
        vhost.mq(args).run().code(0).json()
    };
    // Brokers count every few seconds, and not all numbers at once.
    let depth = json!({"ready": 2, "unacknowledged": 0, "consumers": 0});
    wait_until("the depth of dlq", || {
        node(&live(), "queue:dlq")["depth"] == depth
    });
    let graph = live();
    assert_eq!(graph["vhost"], vhost.name.as_str());
    let dlq = node(&graph, "queue:dlq");
    assert_eq!(
        (&dlq["role"], &dlq["alarm"]),
        (&json!("dead_letter"), &json!(true))
    );
    assert_eq!(node(&graph, "exchange:amq.rabbitmq.trace"), Json::Null);
    let edges: Vec<String> = graph["edges"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|edge| {
            format!(
                "{} {} {} {}",
                edge["from"], edge["kind"], edge["to"], edge["labels"]
            )
        })
        .collect();
    assert_eq!(
        edges.join("\n").replace('"', ""),
        "exchange:amq.direct binding queue:work [b]
exchange:dlx binding queue:dlq []
exchange:in binding queue:work [a.*]
queue:wait retry queue:work [after 1h]
queue:work dead_letter exchange:dlx [key kept]"
    );

    // The files, with the numbers of the broker.
    let more = YAML.replace("policies:", "  absent: {}\npolicies:");
    let file = TextFile::new("t.yaml", &format!("version: 1\n{more}"));
    let args = ["topology", "graph", "--live", &file.path()];
    vhost.mq(args).run().code(0).shows(&[
        "dlq<br/>classic<br/>2 ready, 0 unacked, 0 consumers",
        "absent<br/>not on the broker",
        ":::alarm",
    ]);
}

/// Reading policies needs a tag that looking at queues does not.
#[test]
fn a_user_who_may_not_read_policies_sees_what_they_come_to() {
    let mut vhost = Vhost::new();
    vhost.apply(YAML);
    let user = vhost.user("", "", ".*", "management");
    let url = vhost.url_of(&user, "pw");
    wait_until("the policy of work", || {
        let ran = vhost
            .mq(["topology", "graph", "--live", "--as", "dot"])
            .env("MQ_URL", &url)
            .run()
            .code(0);
        ran.stdout.contains("key kept")
    });
}
