//! The ways of edges and the places of labels, once everything stands.

use super::items::{Items, Kind, LOOP};
use super::place::Places;
use super::{Layout, Link, Point, Rect, Route, Size, at};

/// Reads boxes and ways off the places of items.
pub(super) fn route(items: &Items, places: &Places, links: &[Link], nodes: usize) -> Layout {
    let mut loops = vec![0.0_f64; nodes];
    for link in links.iter().filter(|link| link.from == link.to) {
        if let Some(room) = loops.get_mut(link.from) {
            *room += LOOP + link.label.height;
        }
    }
    let boxes: Vec<Rect> = (0..nodes)
        .map(|node| node_box(items, places, node, at(&loops, node)))
        .collect();
    let mut used = vec![0.0_f64; nodes];
    let mut routes = Vec::with_capacity(links.len());
    for (place, link) in links.iter().enumerate() {
        let route = if link.from == link.to {
            let below = used.get_mut(link.from);
            let route = self_loop(
                at(&boxes, link.from),
                below.as_deref().copied().unwrap_or(0.0),
                link.label,
            );
            if let Some(below) = below {
                *below += LOOP + link.label.height;
            }
            route
        } else {
            let chain = items.chains.get(place).map_or(&[][..], Vec::as_slice);
            let mut route = way(items, places, &boxes, chain);
            if at(&items.reversed, place) {
                route.points.reverse();
            }
            route
        };
        routes.push(route);
    }
    let right = places.layers.last().map_or(0.0, |(_, right)| *right);
    let bottoms = items.list.iter().zip(&places.heights);
    let bottom = bottoms
        .map(|(item, height)| height + item.below)
        .fold(0.0, f64::max);
    Layout {
        size: Size {
            width: right,
            height: bottom,
        },
        nodes: boxes,
        routes,
    }
}

fn node_box(items: &Items, places: &Places, node: usize, loops: f64) -> Rect {
    let item = items.item(node);
    let (left, right) = at(&places.layers, item.layer);
    Rect {
        at: Point {
            x: f64::midpoint(left, right) - item.width / 2.0,
            y: at(&places.heights, node) - item.above,
        },
        size: Size {
            width: item.width,
            height: item.above + item.below - loops,
        },
    }
}

fn way(items: &Items, places: &Places, boxes: &[Rect], chain: &[usize]) -> Route {
    let mut route = Route::default();
    for (from, to) in chain.iter().zip(chain.iter().skip(1)) {
        let leaving = items.leaving.get(*from).into_iter().flatten();
        let piece = leaving
            .map(|piece| at(&items.pieces, *piece))
            .find(|piece| piece.to == *to)
            .unwrap_or_default();
        let start = at(&places.heights, *from) + piece.leaves;
        let end = at(&places.heights, *to) + piece.arrives;
        let first = items.item(*from);
        let (left, right) = at(&places.layers, first.layer);
        let begins = if first.kind == Kind::Node {
            let rect = at(boxes, *from);
            rect.at.x + rect.size.width
        } else {
            left
        };
        if first.kind == Kind::Label {
            let height = first.above - 3.0;
            route.label = Rect {
                at: Point {
                    x: f64::midpoint(left, right) - first.width / 2.0,
                    y: start - first.above,
                },
                size: Size {
                    width: first.width,
                    height,
                },
            };
        }
        route.points.push(Point {
            x: begins,
            y: start,
        });
        route.points.push(Point { x: right, y: start });
        let last = items.item(*to);
        if last.kind == Kind::Node {
            let (left, _) = at(&places.layers, last.layer);
            route.points.push(Point { x: left, y: end });
            route.points.push(Point {
                x: at(boxes, *to).at.x,
                y: end,
            });
        }
    }
    route
}

/// From the bottom of a node round to its bottom.
fn self_loop(node: Rect, below: f64, label: Size) -> Route {
    let middle = node.at.x + node.size.width / 2.0;
    let bottom = node.at.y + node.size.height;
    let depth = bottom + below + LOOP - 6.0;
    // A curve comes three quarters near what it is drawn to.
    let control = bottom + (depth - bottom) * 4.0 / 3.0;
    let reach = if below > 0.0 {
        node.size.width / 2.0 - 6.0
    } else {
        (node.size.width / 4.0).min(28.0)
    };
    Route {
        points: vec![
            Point {
                x: middle + reach,
                y: bottom,
            },
            Point {
                x: middle + reach,
                y: control,
            },
            Point {
                x: middle - reach,
                y: control,
            },
            Point {
                x: middle - reach,
                y: bottom,
            },
        ],
        label: Rect {
            at: Point {
                x: middle - label.width / 2.0,
                y: depth + 3.0,
            },
            size: label,
        },
        is_loop: true,
    }
}
