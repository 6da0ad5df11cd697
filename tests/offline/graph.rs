//! Pictures of topologies: the shipped ones as they were looked at, and what is refused.

use crate::support::{Mq, TextFile};

const SHIPPED: [(&str, &str); 3] = [
    ("orders", "topologies/orders.yaml"),
    ("workers", "topologies/workers.yaml"),
    ("native_retry", "topologies/4.3/native-retry.yaml"),
];

fn graph(args: &[&str]) -> String {
    let words = ["topology", "graph"].iter().chain(args);
    let ran = Mq::new(words).run().code(0);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    ran.stdout
}

#[test]
fn the_shipped_topologies_as_text() {
    for (name, file) in SHIPPED {
        insta::assert_snapshot!(format!("{name}_mermaid"), graph(&[file]));
        insta::assert_snapshot!(format!("{name}_dot"), graph(&[file, "--as", "dot"]));
    }
}

/// The whole picture, because a layout that changes unasked should be looked at.
#[test]
fn the_shipped_topologies_as_pictures() {
    for (name, file) in SHIPPED {
        let picture = graph(&[file, "--as", "svg"]);
        assert_eq!(picture, graph(&["-f", file, "--as", "svg"]));
        let document = roxmltree::Document::parse(&picture).expect("well-formed XML");
        let legend = document.descendants().filter(|element| {
            element.attribute("class") == Some("key") && element.text().is_some()
        });
        assert!(legend.count() > 3, "{name} has no legend");
        insta::assert_snapshot!(format!("{name}_svg"), picture);
    }
}

#[test]
fn the_model_is_json_and_a_picture_asked_for_wins() {
    let json: serde_json::Value =
        serde_json::from_str(&graph(&["topologies/orders.yaml", "-o", "json"])).expect("json");
    insta::assert_snapshot!("orders_json", format!("{json:#}"));
    let lines = graph(&["topologies/orders.yaml", "-o", "jsonl"]);
    assert_eq!(lines.lines().count(), 1);
    let picture = graph(&["topologies/orders.yaml", "-o", "json", "--as", "dot"]);
    assert!(picture.starts_with("digraph"), "{picture}");
}

#[test]
fn a_prefix_is_drawn_as_apply_would_write_it() {
    let picture = graph(&["--prefix", "ci-7.", "topologies/orders.yaml"]);
    assert!(picture.contains("ci-7.orders.dlq"), "{picture}");
}

#[test]
fn something_to_draw_is_needed() {
    Mq::new(["topology", "graph"])
        .run()
        .code(64)
        .says(&["<FILE"]);
    Mq::new(["topology", "graph", "/no/such/file"])
        .run()
        .code(66);
    // Nothing answers here.
    Mq::new(["topology", "graph", "--live"])
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(69);
}

/// Wait queues one after the other: every step of drawing must do without recursion.
#[test]
fn a_chain_of_ten_thousand_queues_is_drawn_or_refused() {
    let mut yaml = "version: 1\nqueues:\n".to_owned();
    for n in 0..10_000 {
        yaml.push_str(&format!(
            "  q{n}: {{ type: classic, message_ttl: 1s, dead_letter: {{ exchange: '', key: q{} }} }}\n",
            (n + 1) % 10_000
        ));
    }
    let file = TextFile::new("chain.yaml", &yaml);
    let path = file.path();
    assert_eq!(
        graph(&[&path, "--as", "dot"]).matches(" -> ").count(),
        10_000
    );
    Mq::new(["topology", "graph", &path])
        .run()
        .code(0)
        .says(&["10000 edges", "--as dot"]);
    Mq::new(["topology", "graph", &path, "--as", "svg"])
        .run()
        .code(65)
        .says(&["10000 nodes", "at most 500", "--as dot", "narrow it down"]);
}
