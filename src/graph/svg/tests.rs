use super::*;
use crate::graph::{Depth, Edge, Role, State};

fn node(name: &str) -> Node {
    Node {
        kind: NodeKind::Queue,
        name: name.to_owned(),
        type_name: Some("quorum".to_owned()),
        state: State::Declared,
        role: Some(Role::DeadLetter),
        facts: Vec::new(),
        depth: None,
    }
}

fn edge(from: usize, to: usize, kind: EdgeKind, label: &str) -> Edge {
    Edge {
        from,
        to,
        kind,
        labels: vec![label.to_owned()],
    }
}

const ODD: [&str; 9] = [
    "",
    "<script>alert(1)</script>",
    "a & b &amp; \"c\" 'd' ]]>",
    "bell\u{7} nul\0 escape\u{1b}[31m",
    "two\nlines\r\ttab",
    "\u{fffe}\u{ffff}\u{9b}\u{202e}",
    "日本 🐇 é",
    "--> <!-- ",
    "%%{init}%% #35; \\N",
];

/// Parsed again: a reader of XML has the last word on what is well formed.
fn texts(picture: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(picture).expect("well-formed XML");
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    assert!(
        root.children()
            .any(|child| child.has_tag_name("title") || child.tag_name().name() == "title")
    );
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        assert_ne!(element.tag_name().name(), "script");
        for attribute in element.attributes() {
            assert!(!attribute.name().starts_with("on"), "{attribute:?}");
            assert!(!attribute.value().contains("http"), "{attribute:?}");
        }
    }
    let texts = document.descendants().filter(roxmltree::Node::is_text);
    let texts = texts.filter_map(|text| text.text());
    texts.map(str::to_owned).collect()
}

#[test]
fn odd_names_are_text_and_nothing_else() {
    let long = "é".repeat(127);
    let names = ODD.iter().copied().chain([long.as_str()]);
    let nodes: Vec<Node> = names.clone().map(node).collect();
    let mut edges: Vec<Edge> = Vec::new();
    for (place, name) in names.enumerate() {
        for kind in EdgeKind::ALL {
            edges.push(edge(place, (place + 1) % nodes.len(), kind, name));
            edges.push(edge(place, place, kind, name));
        }
    }
    let picture = svg(&Graph { nodes, edges }).expect("picture");
    let texts = texts(&picture);
    for shown in [
        "<script>alert(1)</script>",
        "a & b &amp; \"c\" 'd' ]]>",
        "日本 🐇 é",
    ] {
        assert!(texts.iter().any(|text| text == shown), "{shown}");
    }
    // Cut where it is drawn, whole where it is pointed at.
    let cut = format!("{}…", "é".repeat(NAME));
    assert!(texts.contains(&cut) && texts.contains(&format!("queue {long}")));
    assert!(
        texts
            .iter()
            .all(|text| text.chars().all(|c| c == '\n' || !c.is_control()))
    );
}

#[test]
fn a_picture_that_nobody_could_read_is_refused() {
    let graph = |nodes: usize, edges: usize| Graph {
        nodes: (0..nodes).map(|n| node(&n.to_string())).collect(),
        edges: (0..edges)
            .map(|n| edge(n % nodes, n / nodes, EdgeKind::Binding, "k"))
            .collect(),
    };
    assert!(svg(&graph(0, 0)).is_ok());
    let most = svg(&graph(MAX_NODES, MAX_EDGES)).expect("picture");
    roxmltree::Document::parse(&most).expect("well-formed XML");
    for (nodes, edges) in [(MAX_NODES + 1, 0), (MAX_NODES, MAX_EDGES + 1)] {
        let refused = svg(&graph(nodes, edges)).expect_err("too large");
        assert_eq!(refused, TooLarge { nodes, edges });
    }
}

#[test]
fn only_dead_letters_that_are_there_stand_out() {
    let with = |ready: Option<u64>| {
        let depth = Depth {
            ready,
            ..Depth::default()
        };
        let nodes = vec![Node {
            depth: Some(depth),
            ..node("dlq")
        }];
        let picture = svg(&Graph {
            nodes,
            edges: Vec::new(),
        });
        picture.expect("picture").contains("class=\"node alarm\"")
    };
    assert!(with(Some(1)));
    assert!(!with(Some(0)) && !with(None));
}
