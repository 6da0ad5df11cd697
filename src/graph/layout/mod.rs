//! Where nodes, edges and labels of a picture lie: in layers from left to right.
//!
//! Edges that close a cycle count the other way round, every node has the layer
//! behind its last predecessor, and every edge a place of its own in each layer
//! that it passes: so none runs through a node or a label. No step recurses, so
//! no chain is too long; none rolls dice, so the same graph is the same picture.

mod component;
mod items;
mod order;
mod place;
mod ranks;
mod route;

use component::Component;

/// Width and height.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A place; `y` grows downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A box by its top left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rect {
    pub(super) at: Point,
    pub(super) size: Size,
}

/// An edge to be laid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Room for what is written along it.
    pub(super) label: Size,
    /// Whether it is the one of a cycle that should lead back.
    pub(super) comes_back: bool,
}

/// The way of an edge: the points are joined by straight lines and, between
/// layers, by curves that begin and end level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Route {
    pub(super) points: Vec<Point>,
    /// The room of its label.
    pub(super) label: Rect,
    /// Whether it is one curve from a node to itself: its points are the ends
    /// and what they are drawn to.
    pub(super) is_loop: bool,
}

/// Everything has its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layout {
    pub(super) size: Size,
    /// As the nodes given; a node with many edges is higher than asked for.
    pub(super) nodes: Vec<Rect>,
    /// As the links given.
    pub(super) routes: Vec<Route>,
}

/// Between parts of a graph that nothing connects.
const BETWEEN: f64 = 36.0;

/// How far rows of unconnected nodes go at least.
const ROW: f64 = 900.0;

/// Lays out everything, connected parts below each other and what is connected
/// to nothing in rows at the end.
pub(super) fn lay_out(nodes: &[Size], links: &[Link]) -> Layout {
    let mut layout = Layout {
        size: Size::default(),
        nodes: nodes
            .iter()
            .map(|size| Rect {
                at: Point::default(),
                size: *size,
            })
            .collect(),
        routes: vec![Route::default(); links.len()],
    };
    let mut alone = Vec::new();
    for component in component::split(nodes, links) {
        if component.links.is_empty() {
            alone.extend(component.nodes);
        } else {
            add(&mut layout, &component);
        }
    }
    if !alone.is_empty() {
        rows(&mut layout, &alone);
    }
    layout
}

fn add(layout: &mut Layout, component: &Component) {
    let top = match layout.size.height {
        height if height > 0.0 => height + BETWEEN,
        _ => 0.0,
    };
    let part = part(component);
    for (node, mut rect) in component.nodes.iter().zip(part.nodes) {
        rect.at.y += top;
        if let Some(slot) = layout.nodes.get_mut(*node) {
            *slot = rect;
        }
    }
    for (link, mut route) in component.links.iter().zip(part.routes) {
        for point in &mut route.points {
            point.y += top;
        }
        route.label.at.y += top;
        if let Some(slot) = layout.routes.get_mut(*link) {
            *slot = route;
        }
    }
    layout.size.width = layout.size.width.max(part.size.width);
    layout.size.height = top + part.size.height;
}

/// One connected part, in its own coordinates.
fn part(component: &Component) -> Layout {
    let sizes = &component.sizes;
    let links = &component.own_links;
    let ranks = ranks::rank(sizes.len(), links);
    let mut items = items::Items::of(sizes, links, &ranks);
    order::order(&mut items);
    let places = place::place(&mut items);
    route::route(&items, &places, links, sizes.len())
}

fn rows(layout: &mut Layout, alone: &[usize]) {
    let right = layout.size.width.max(ROW);
    let mut at = Point {
        x: 0.0,
        y: match layout.size.height {
            height if height > 0.0 => height + BETWEEN,
            _ => 0.0,
        },
    };
    let mut below = at.y;
    for node in alone {
        let Some(rect) = layout.nodes.get_mut(*node) else {
            continue;
        };
        if at.x > 0.0 && at.x + rect.size.width > right {
            at = Point {
                x: 0.0,
                y: below + BETWEEN / 2.0,
            };
        }
        rect.at = at;
        below = below.max(at.y + rect.size.height);
        at.x += rect.size.width + BETWEEN / 2.0;
        layout.size.width = layout.size.width.max(rect.at.x + rect.size.width);
    }
    layout.size.height = layout.size.height.max(below);
}

/// An element of a list, its default beyond the end.
fn at<T: Copy + Default>(list: &[T], place: usize) -> T {
    list.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
