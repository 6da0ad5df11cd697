//! The first screen: every dead-letter queue.

use crate::browse::filter::FilterLine;
use crate::browse::list::List;
use crate::browse::page::Page;
use crate::browse::{Key, Listed, Trouble};
use crate::output::{ListedQueue, printable};

/// The dead-letter queues, and which of them are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    pub(super) listed: Listed,
    /// Whether they are asked for right now.
    pub(super) is_awaited: bool,
    pub(super) trouble: Option<Page>,
    pub(super) filter: FilterLine,
    /// Those that the filter accepts, by their place.
    pub(super) shown: Vec<usize>,
    pub(super) list: List,
}

impl Queues {
    pub(super) fn waiting() -> Self {
        Self {
            is_awaited: true,
            ..Self::default()
        }
    }

    pub(super) fn listed(&mut self, result: Result<Listed, Trouble>, columns: usize, page: usize) {
        self.is_awaited = false;
        self.trouble = None;
        match result {
            Ok(listed) => {
                let before = self.selected().map(name);
                self.listed = listed;
                self.refresh(page);
                let same = |at: &usize| self.listed.queues.get(*at).map(name) == before;
                if let Some(at) = self.shown.iter().position(same) {
                    self.list.selected = at;
                    self.list.fit(self.shown.len(), page);
                }
            }
            Err(trouble) => {
                let text = format!("{}\n\nR tries again.", printable(&trouble.text));
                self.trouble = Some(Page::new(text, columns));
            }
        }
    }

    /// What is known of a queue by looking into it is newer than any statistics.
    pub(super) fn learned(&mut self, vhost: &str, queue: &str, ready: u64) {
        for listed in &mut self.listed.queues {
            if listed.vhost == vhost && listed.queue == queue {
                listed.observed.ready = Some(ready);
            }
        }
    }

    /// Those that the filter accepts.
    pub(super) fn refresh(&mut self, page: usize) {
        let words = self.filter.text.to_lowercase();
        let accepts = |queue: &ListedQueue| words.is_empty() || text(queue).contains(&words);
        let queues = self.listed.queues.iter().enumerate();
        self.shown = queues
            .filter(|(_, queue)| accepts(queue))
            .map(|(at, _)| at)
            .collect();
        self.list.fit(self.shown.len(), page);
    }

    pub(super) fn row(&self, row: usize) -> Option<&ListedQueue> {
        self.listed.queues.get(*self.shown.get(row)?)
    }

    pub(super) fn selected(&self) -> Option<&ListedQueue> {
        if self.trouble.is_some() {
            return None;
        }
        self.row(self.list.selected)
    }

    pub(super) fn moves(&mut self, key: Key, page: usize) -> bool {
        match &mut self.trouble {
            Some(text) => text.scrolls(key, page),
            None => self.list.moves(key, self.shown.len(), page),
        }
    }

    pub(super) fn resize(&mut self, columns: usize, page: usize, rows: usize) {
        self.list.fit(self.shown.len(), page);
        if let Some(trouble) = &mut self.trouble {
            trouble.resize(columns, rows);
        }
    }
}

fn name(queue: &ListedQueue) -> (String, String) {
    (queue.vhost.clone(), queue.queue.clone())
}

/// What a queue is found by, in lower case.
fn text(queue: &ListedQueue) -> String {
    let mut text = format!("{} {}", queue.vhost, queue.queue);
    for feed in &queue.fed_by {
        text.push(' ');
        text.push_str(feed.queue.as_str());
    }
    text.to_lowercase()
}
