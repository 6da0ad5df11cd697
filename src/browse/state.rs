//! The whole state of the browser, and who gets each event.

use crate::browse::action::{Action, Next};
use crate::browse::help::HELP;
use crate::browse::opened::{Opened, Wish};
use crate::browse::page::Page;
use crate::browse::queues::Queues;
use crate::browse::{Effect, Event, Key, Trouble};
use crate::output::{one_line, printable};

/// Most characters of what is said at once above the keys.
const LONGEST_NOTE: usize = 1_000;

/// What the browser begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Whether queues of several vhosts are shown.
    pub with_vhost: bool,
    /// The vhost and the queue to open at once.
    pub queue: Option<(String, String)>,
}

/// The state of the browser.
#[derive(Clone, Debug)]
pub struct Browser {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) with_vhost: bool,
    pub(super) queues: Queues,
    pub(super) opened: Option<Opened>,
    /// Whether keys go to the filter.
    pub(super) types: bool,
    pub(super) over: Option<Over>,
    /// One line that goes with the next key.
    pub(super) note: String,
    /// Numbers of what is asked for: answers to older questions are dropped.
    number: u64,
}

/// What hides the lists for a while.
#[derive(Clone, Debug)]
pub(super) enum Over {
    Help(Page),
    Action(Box<Action>),
}

impl Browser {
    /// The state at the beginning, and what is to be done first.
    #[must_use]
    pub fn new(start: Start) -> (Self, Vec<Effect>) {
        let (columns, rows) = start.size;
        let mut browser = Self {
            columns: columns.into(),
            rows: rows.into(),
            with_vhost: start.with_vhost,
            queues: Queues::waiting(),
            opened: None,
            types: false,
            over: None,
            note: String::new(),
            number: 0,
        };
        let mut effects = Vec::new();
        if let Some((vhost, queue)) = start.queue {
            effects.extend(browser.open(vhost, queue));
        }
        effects.push(Effect::List);
        (browser, effects)
    }

    /// Whether something is awaited whose progress is worth showing.
    #[must_use]
    pub fn runs_a_job(&self) -> bool {
        matches!(&self.over, Some(Over::Action(action)) if action.is_running())
    }

    /// What an event does to the state, and what is to be done then.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.key(key),
            Event::Paste(text) => self.pasted(&text),
            Event::Resize(columns, rows) => {
                self.resize(columns.into(), rows.into());
                Vec::new()
            }
            Event::Listed(result) => {
                let page = self.table_rows();
                self.queues.listed(result, self.columns, page);
                Vec::new()
            }
            Event::Loaded(number, result) => self.loaded(number, result),
            Event::Matched(number, result) => {
                let page = self.table_rows();
                if let Some(opened) = &mut self.opened {
                    opened.matched(number, result, page);
                }
                Vec::new()
            }
            Event::Progress(looked) => {
                if let Some(Over::Action(action)) = &mut self.over {
                    action.progress(looked);
                }
                Vec::new()
            }
            Event::Finished(outcome) => {
                let columns = self.columns;
                if let Some(Over::Action(action)) = &mut self.over {
                    action.finished(outcome, columns);
                }
                Vec::new()
            }
            Event::Said(lines) => {
                // What is there already was not seen yet: it goes with a key only.
                let said = one_line(&lines.join(" "), LONGEST_NOTE);
                if self.note.is_empty() {
                    self.note = said;
                } else if !self.note.contains(&said) {
                    self.note = format!("{}; {said}", self.note);
                }
                Vec::new()
            }
        }
    }

    /// Rows of a list: without title, counts, header, note and keys.
    pub(super) fn table_rows(&self) -> usize {
        self.rows.saturating_sub(5)
    }

    /// Rows of a text: without title, counts, note and keys.
    pub(super) fn text_rows(&self) -> usize {
        self.rows.saturating_sub(4)
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Suspend if self.runs_a_job() => {
                return Vec::new();
            }
            Key::Suspend => return vec![Effect::Suspend],
            Key::Redraw => return vec![Effect::Redraw],
            _ => {}
        }
        self.note.clear();
        if self.over.is_some() {
            return self.key_over(key);
        }
        if self.types {
            return self.key_of_filter(key);
        }
        match key {
            Key::Interrupt | Key::Char('q') => return vec![Effect::Quit],
            Key::Char('?') => {
                self.over = Some(Over::Help(Page::new(HELP.to_owned(), self.columns)));
                return Vec::new();
            }
            Key::Char('/') => {
                self.types = self.may_filter();
                return Vec::new();
            }
            _ => {}
        }
        match &self.opened {
            None => self.key_of_queues(key),
            Some(_) => self.key_of_opened(key),
        }
    }

    fn may_filter(&self) -> bool {
        match &self.opened {
            None => self.queues.trouble.is_none(),
            Some(opened) => opened.is_a_list(),
        }
    }

    fn key_over(&mut self, key: Key) -> Vec<Effect> {
        let rows = self.text_rows();
        match &mut self.over {
            Some(Over::Help(page)) => {
                if !page.scrolls(key, rows) {
                    self.over = None;
                }
                Vec::new()
            }
            Some(Over::Action(action)) => match action.key(key, rows) {
                Next::Stay => Vec::new(),
                Next::Do(effect) => vec![*effect],
                Next::Close { reload } => {
                    self.over = None;
                    if reload { self.reload() } else { Vec::new() }
                }
            },
            None => Vec::new(),
        }
    }

    fn key_of_filter(&mut self, key: Key) -> Vec<Effect> {
        let page = self.table_rows();
        match key {
            Key::Enter | Key::Interrupt => {
                self.types = false;
                return Vec::new();
            }
            // Letters are typed; these move.
            Key::Up | Key::Down | Key::PageUp | Key::PageDown => {
                match &mut self.opened {
                    None => self.queues.moves(key, page),
                    Some(opened) => opened.moves(key, page),
                };
                return Vec::new();
            }
            _ => {}
        }
        let ends = key == Key::Escape;
        let key = if ends { Key::ClearLine } else { key };
        self.types = !ends;
        match &mut self.opened {
            None => {
                if self.queues.filter.types(key) {
                    self.queues.refresh(page);
                }
                Vec::new()
            }
            Some(opened) => {
                if !opened.filter.types(key) {
                    return Vec::new();
                }
                self.number += 1;
                let wish = opened.filter_changed(self.number, page);
                wish.into_iter().collect()
            }
        }
    }

    /// What was pasted is typed where something can be typed, and nothing else:
    /// a line of it that begins with `q` ends nothing.
    fn pasted(&mut self, text: &str) -> Vec<Effect> {
        let is_typing = match &self.over {
            None => self.types,
            Some(Over::Action(action)) => action.is_typing(),
            Some(Over::Help(_)) => false,
        };
        if !is_typing {
            return Vec::new();
        }
        let line = text.lines().next().unwrap_or_default();
        let mut effects = Vec::new();
        for c in line.chars() {
            effects.extend(self.key(Key::Char(c)));
        }
        effects
    }

    fn key_of_queues(&mut self, key: Key) -> Vec<Effect> {
        let page = self.table_rows();
        if self.queues.moves(key, page) {
            return Vec::new();
        }
        match key {
            Key::Enter => match self.queues.selected() {
                Some(queue) => {
                    let (vhost, queue) = (queue.vhost.clone(), queue.queue.clone());
                    self.open(vhost, queue)
                }
                None => Vec::new(),
            },
            Key::Char('R') | Key::Reload => self.reload(),
            Key::Escape | Key::Backspace => {
                if self.queues.filter.types(Key::ClearLine) {
                    self.queues.refresh(page);
                }
                Vec::new()
            }
            Key::Char('r' | 'e' | 'p' | ' ' | 'a') => {
                "open a queue first: Enter".clone_into(&mut self.note);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn key_of_opened(&mut self, key: Key) -> Vec<Effect> {
        let (columns, page, rows) = (self.columns, self.table_rows(), self.text_rows());
        let Some(opened) = &mut self.opened else {
            return Vec::new();
        };
        match opened.key(key, columns, page, rows) {
            Wish::Nothing => Vec::new(),
            Wish::Reload => self.reload(),
            Wish::Close => {
                if opened.is_loaded {
                    self.queues
                        .learned(&opened.vhost, &opened.queue, opened.ready);
                }
                self.opened = None;
                Vec::new()
            }
            Wish::Refilter => {
                self.number += 1;
                let wish = opened.filter_changed(self.number, page);
                wish.into_iter().collect()
            }
            Wish::Note(note) => {
                self.note = note;
                Vec::new()
            }
            Wish::Act(action, effect) => {
                self.over = Some(Over::Action(action));
                effect.into_iter().map(|effect| *effect).collect()
            }
        }
    }

    fn open(&mut self, vhost: String, queue: String) -> Vec<Effect> {
        self.opened = Some(Opened::new(vhost, queue));
        self.reload()
    }

    /// Asks anew for what is shown, unless that is awaited already.
    fn reload(&mut self) -> Vec<Effect> {
        self.number += 1;
        match &mut self.opened {
            None if self.queues.is_awaited => Vec::new(),
            Some(opened) if opened.awaited.is_some() => Vec::new(),
            None => {
                self.queues.is_awaited = true;
                vec![Effect::List]
            }
            Some(opened) => {
                opened.awaited = Some(self.number);
                vec![Effect::Load {
                    number: self.number,
                    vhost: opened.vhost.clone(),
                    queue: opened.queue.clone(),
                }]
            }
        }
    }

    fn loaded(
        &mut self,
        number: u64,
        result: Result<crate::browse::Loaded, Trouble>,
    ) -> Vec<Effect> {
        let (columns, page) = (self.columns, self.table_rows());
        let Some(opened) = &mut self.opened else {
            return Vec::new();
        };
        if opened.awaited != Some(number) {
            return Vec::new();
        }
        opened.awaited = None;
        match result {
            Ok(loaded) => {
                self.number += 1;
                let wish = opened.loaded(loaded, self.number, page);
                wish.into_iter().collect()
            }
            Err(trouble) if trouble.is_gone => {
                let text = trouble.text.replace("\n  help: ", "; ").replace('\n', " ");
                self.note = one_line(&text, LONGEST_NOTE);
                self.opened = None;
                self.over = None;
                self.types = false;
                self.reload()
            }
            Err(trouble) => {
                let text = format!("{}\n\nR tries again.", printable(&trouble.text));
                opened.trouble = Some(Page::new(text, columns));
                Vec::new()
            }
        }
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns, rows);
        let (page, rows) = (self.table_rows(), self.text_rows());
        self.queues.resize(columns, page, rows);
        if let Some(opened) = &mut self.opened {
            opened.resize(columns, page, rows);
        }
        match &mut self.over {
            Some(Over::Help(text)) => text.resize(columns, rows),
            Some(Over::Action(action)) => action.resize(columns, rows),
            None => {}
        }
    }
}
