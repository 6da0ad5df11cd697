use super::*;

const BOX: Size = Size {
    width: 80.0,
    height: 40.0,
};

fn links(pairs: &[(usize, usize)]) -> Vec<Link> {
    let link = |(from, to): &(usize, usize)| Link {
        from: *from,
        to: *to,
        label: Size {
            width: 60.0,
            height: 13.0,
        },
        comes_back: false,
    };
    pairs.iter().map(link).collect()
}

fn laid(nodes: usize, pairs: &[(usize, usize)]) -> Layout {
    let layout = lay_out(&vec![BOX; nodes], &links(pairs));
    check(&layout, pairs);
    layout
}

/// Everything lies within the picture, boxes and labels lie apart, and edges
/// begin and end at their nodes.
fn check(layout: &Layout, pairs: &[(usize, usize)]) {
    let labels = layout.routes.iter().map(|route| route.label);
    let mut boxes: Vec<Rect> = layout.nodes.iter().copied().chain(labels).collect();
    for rect in &boxes {
        assert!(
            rect.at.x >= -0.01
                && rect.at.y >= -0.01
                && rect.at.x + rect.size.width <= layout.size.width + 0.01
                && rect.at.y + rect.size.height <= layout.size.height + 0.01,
            "{rect:?} is outside of {:?}",
            layout.size
        );
    }
    for (route, (from, to)) in layout.routes.iter().zip(pairs) {
        let (Some(first), Some(last)) = (route.points.first(), route.points.last()) else {
            panic!("an edge without a way");
        };
        for (end, node) in [(first, from), (last, to)] {
            let rect = layout.nodes[*node];
            let inside = end.x >= rect.at.x - 0.01
                && end.x <= rect.at.x + rect.size.width + 0.01
                && end.y >= rect.at.y - 0.01
                && end.y <= rect.at.y + rect.size.height + 0.01;
            assert!(inside, "{end:?} is not at {rect:?}");
        }
    }
    if boxes.len() > 400 {
        return;
    }
    boxes.sort_by(|a, b| a.at.x.total_cmp(&b.at.x));
    for (place, one) in boxes.iter().enumerate() {
        for other in &boxes[place + 1..] {
            let apart = one.at.x + one.size.width <= other.at.x + 0.01
                || one.at.y + one.size.height <= other.at.y + 0.01
                || other.at.y + other.size.height <= one.at.y + 0.01;
            assert!(apart, "{one:?} lies over {other:?}");
        }
    }
}

#[test]
fn a_chain_is_a_straight_line() {
    let layout = laid(4, &[(0, 1), (1, 2), (2, 3)]);
    for pair in layout.nodes.windows(2) {
        assert!((pair[0].at.y - pair[1].at.y).abs() < 0.1, "{pair:?}");
        assert!(pair[0].at.x + pair[0].size.width < pair[1].at.x);
    }
}

#[test]
fn cycles_of_every_shape_are_laid_out() {
    for (nodes, pairs) in [
        (1, vec![(0, 0)]),
        (1, vec![(0, 0), (0, 0)]),
        (2, vec![(0, 1), (1, 0)]),
        (2, vec![(0, 1), (0, 1), (1, 0), (1, 1)]),
        (3, vec![(0, 1), (1, 2), (2, 0)]),
        (4, vec![(0, 1), (1, 2), (2, 1), (2, 3), (3, 0), (3, 3)]),
        (5, vec![(4, 3), (3, 2), (2, 1), (1, 0), (0, 4), (0, 2)]),
        (
            6,
            (0..6).flat_map(|a| (0..6).map(move |b| (a, b))).collect(),
        ),
        (9, vec![(0, 1), (2, 3), (3, 2), (5, 5)]),
    ] {
        laid(nodes, &pairs);
    }
}

#[test]
fn what_should_come_back_comes_back() {
    // Without the mark the first node would be the first layer.
    let mut links = links(&[(0, 1), (1, 2), (2, 0)]);
    links[0].comes_back = true;
    let layout = lay_out(&[BOX; 3], &links);
    assert!(layout.nodes[1].at.x < layout.nodes[2].at.x);
    assert!(layout.nodes[2].at.x < layout.nodes[0].at.x);
}

#[test]
fn an_edge_past_a_node_goes_round_it() {
    let layout = laid(3, &[(0, 1), (1, 2), (0, 2)]);
    let node = layout.nodes[1];
    for pair in layout.routes[2].points.windows(2) {
        let beside = pair[1].x <= node.at.x || pair[0].x >= node.at.x + node.size.width;
        let off = |y: f64| y < node.at.y || y > node.at.y + node.size.height;
        assert!(
            beside || (off(pair[0].y) && off(pair[1].y)),
            "{pair:?} {node:?}"
        );
    }
}

#[test]
fn no_chain_and_no_star_is_too_large() {
    let chain: Vec<(usize, usize)> = (0..9_999).map(|n| (n, n + 1)).collect();
    laid(10_000, &chain);
    let mut ring = chain;
    ring.push((9_999, 0));
    laid(10_000, &ring);
    let star: Vec<(usize, usize)> = (1..2_000).map(|n| (0, n)).collect();
    laid(2_000, &star);
}

#[test]
fn any_graph_is_laid_out_and_always_the_same_way() {
    let edge = (0_usize..12, 0_usize..12);
    let graphs = proptest::collection::vec(edge, 0..30);
    proptest::proptest!(proptest::prelude::ProptestConfig::with_cases(64), |(pairs in graphs)| {
        let first = laid(12, &pairs);
        proptest::prop_assert_eq!(first, laid(12, &pairs));
    });
}
