//! The state of the browser as cells.

mod action;
mod frame;
mod lists;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::browse::opened::View;
use crate::browse::page::Page;
use crate::browse::state::{Browser, Over};
use crate::browse::wrap::wrapped;
use frame::Frame;

/// Columns and rows below which nothing but a word about it is shown.
pub const MOST_SMALL: (u16, u16) = (40, 8);

/// Draws the state.
pub fn draw(browser: &Browser, area: Rect, buffer: &mut Buffer) {
    if area.width < MOST_SMALL.0 || area.height < MOST_SMALL.1 {
        return too_small(area, buffer);
    }
    let mut frame = Frame::new(area, buffer);
    match (&browser.over, &browser.opened) {
        (Some(Over::Help(page)), _) => {
            frame.title("mq dlq browse: help");
            text(&mut frame, page);
            frame.keys(&[("↑↓ PgDn", "scroll"), ("any other", "back")]);
        }
        (Some(Over::Action(action)), _) => action::draw(&mut frame, action),
        (None, None) => lists::queues(&mut frame, browser),
        (None, Some(opened)) => match (&opened.trouble, &opened.view) {
            (Some(page), _) => lists::trouble(&mut frame, opened, page),
            (None, View::Groups) => lists::groups(&mut frame, browser, opened),
            (None, View::Messages) => lists::messages(&mut frame, browser, opened),
            (None, View::Message(page)) => lists::message(&mut frame, browser, opened, page),
        },
    }
}

/// Under the title and the counts, as much of a page as there is room for.
fn text(frame: &mut Frame<'_>, page: &Page) {
    let top = page.place.top;
    for (row, line) in page
        .lines
        .iter()
        .skip(top)
        .take(frame.text_rows())
        .enumerate()
    {
        frame.line(row + 2, line);
    }
    let seen = top + frame.text_rows();
    if seen < page.lines.len() {
        let more = page.lines.len() - seen;
        frame.status(&format!("{more} more lines below"));
    }
}

fn too_small(area: Rect, buffer: &mut Buffer) {
    let words = format!(
        "mq: {}×{} is too small, {}×{} is needed; q quits",
        area.width, area.height, MOST_SMALL.0, MOST_SMALL.1
    );
    let mut frame = Frame::new(area, buffer);
    for (row, line) in wrapped(&words, area.width.into()).iter().enumerate() {
        frame.line(row, line);
    }
}
