//! A queue that is open: its letters by group, one after the other, or one alone.

mod touch;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::browse::action::Action;
use crate::browse::filter::FilterLine;
use crate::browse::list::List;
use crate::browse::message::letter_page;
use crate::browse::page::Page;
use crate::browse::{BrowsedLetter, Effect, Key, Loaded};
use crate::deadletter::{Group, summarise};
use crate::message::Fingerprint;

/// Origin, reason and error of a group.
type GroupKey = (Option<String>, Option<String>, Option<String>);

/// A queue that is open.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) vhost: String,
    pub(super) queue: String,
    /// The number of the load that is under way.
    pub(super) awaited: Option<u64>,
    /// Whether anything was loaded yet.
    pub(super) is_loaded: bool,
    pub(super) trouble: Option<Page>,
    pub(super) ready: u64,
    pub(super) is_cut_by_size: bool,
    pub(super) letters: Arc<Vec<BrowsedLetter>>,
    pub(super) filter: FilterLine,
    /// What the filter says of each letter; `None`: it accepts all.
    accepted: Option<Vec<bool>>,
    /// The number of the match that is awaited: each load begins a new one, so that
    /// an answer about other letters never counts.
    matching: u64,
    /// Letters that the filter accepts, by their place.
    pub(super) shown: Vec<usize>,
    pub(super) groups: Vec<Group>,
    pub(super) group_list: List,
    /// The group whose messages are shown; `None`: all are.
    group: Option<GroupKey>,
    /// Letters of the group that the filter accepts.
    pub(super) rows: Vec<usize>,
    pub(super) message_list: List,
    pub(super) view: View,
    pub(super) marks: BTreeSet<Fingerprint>,
}

/// How the letters are shown.
#[derive(Clone, Debug)]
pub(super) enum View {
    Groups,
    Messages,
    Message(Page),
}

/// What a key asks of the whole browser.
pub(super) enum Wish {
    Nothing,
    Reload,
    Close,
    Refilter,
    Note(String),
    Act(Box<Action>, Option<Box<Effect>>),
}

impl Opened {
    pub(super) fn new(vhost: String, queue: String) -> Self {
        Self {
            vhost,
            queue,
            awaited: None,
            is_loaded: false,
            trouble: None,
            ready: 0,
            is_cut_by_size: false,
            letters: Arc::default(),
            filter: FilterLine::default(),
            accepted: None,
            matching: 0,
            shown: Vec::new(),
            groups: Vec::new(),
            group_list: List::default(),
            group: None,
            rows: Vec::new(),
            message_list: List::default(),
            view: View::Groups,
            marks: BTreeSet::new(),
        }
    }

    /// Takes what was loaded; marks of what is not there any more go.
    pub(super) fn loaded(&mut self, loaded: Loaded, number: u64, page: usize) -> Option<Effect> {
        self.is_loaded = true;
        self.trouble = None;
        self.ready = loaded.ready;
        self.is_cut_by_size = loaded.is_cut_by_size;
        self.letters = Arc::new(loaded.letters);
        // It is about the places of letters that are not there any more.
        self.accepted = None;
        let there: BTreeSet<Fingerprint> = self.letters.iter().map(|it| it.fingerprint).collect();
        self.marks.retain(|mark| there.contains(mark));
        if let View::Message(_) = self.view {
            self.view = View::Messages;
        }
        self.filter_changed(number, page)
    }

    /// The filter is another one, or is asked about other letters.
    pub(super) fn filter_changed(&mut self, number: u64, page: usize) -> Option<Effect> {
        self.matching = number;
        self.filter.error = None;
        self.filter.waits = false;
        if let Some(program) = self.filter.program() {
            let program = program.to_owned();
            self.filter.waits = true;
            self.refresh(page);
            return Some(Effect::Match {
                number,
                program,
                letters: Arc::clone(&self.letters),
            });
        }
        self.accepted = self.filter.words().map(|words| {
            let letters = self.letters.iter();
            letters.map(|it| it.text.contains(&words)).collect()
        });
        self.refresh(page);
        None
    }

    pub(super) fn matched(&mut self, number: u64, result: Result<Vec<bool>, String>, page: usize) {
        if number != self.matching {
            return;
        }
        self.filter.waits = false;
        match result {
            Ok(accepted) => {
                let letter = self.rows.get(self.message_list.selected).copied();
                let group = self.selected_group();
                self.accepted = Some(accepted);
                self.refresh(page);
                self.select_again(letter, group.as_ref(), page);
            }
            Err(error) => self.filter.error = Some(error),
        }
    }

    fn refresh(&mut self, page: usize) {
        let accepts = |at: &usize| match &self.accepted {
            None => true,
            Some(accepted) => accepted.get(*at).copied().unwrap_or(false),
        };
        self.shown = (0..self.letters.len()).filter(accepts).collect();
        let letters = self.shown.iter().filter_map(|at| self.letters.get(*at));
        self.groups = summarise(letters.map(|it| &it.letter)).groups;
        self.choose_rows();
        self.group_list.fit(self.group_rows(), page);
        self.message_list.fit(self.rows.len(), page);
    }

    /// An answer comes at any time: the cursor stays where it was seen, and a
    /// message that is not among the rows any more is not shown either.
    fn select_again(&mut self, letter: Option<usize>, group: Option<&GroupKey>, page: usize) {
        let place = group.and_then(|group| self.groups.iter().position(|it| key_of(it) == *group));
        if let Some(place) = place {
            self.group_list.selected = place + 1;
            self.group_list.fit(self.group_rows(), page);
        }
        let place = letter.and_then(|it| self.rows.iter().position(|at| *at == it));
        match place {
            Some(place) => {
                self.message_list.selected = place;
                self.message_list.fit(self.rows.len(), page);
            }
            None if matches!(self.view, View::Message(_)) => self.view = View::Messages,
            None => {}
        }
    }

    /// The group that is selected; `None`: the row of all messages is.
    fn selected_group(&self) -> Option<GroupKey> {
        let at = self.group_list.selected.checked_sub(1)?;
        self.groups.get(at).map(key_of)
    }

    fn choose_rows(&mut self) {
        let is_of_it = |at: &usize| match &self.group {
            None => true,
            Some(group) => self
                .letters
                .get(*at)
                .is_some_and(|it| group_of(it) == *group),
        };
        self.rows = self.shown.iter().copied().filter(is_of_it).collect();
    }

    /// Rows of the screen of groups: all messages, then each group.
    pub(super) fn group_rows(&self) -> usize {
        if self.shown.is_empty() {
            0
        } else {
            self.groups.len() + 1
        }
    }

    /// Whether a list is shown that can be filtered.
    pub(super) fn is_a_list(&self) -> bool {
        self.trouble.is_none() && !matches!(self.view, View::Message(_))
    }

    /// The letter that is selected among the messages.
    pub(super) fn selected(&self) -> Option<&BrowsedLetter> {
        self.letters
            .get(*self.rows.get(self.message_list.selected)?)
    }

    /// Letters that are marked; twins count.
    pub(super) fn marked_count(&self) -> usize {
        if self.marks.is_empty() {
            return 0;
        }
        let letters = self.letters.iter();
        letters.filter(|it| self.is_marked(it)).count()
    }

    pub(super) fn is_marked(&self, letter: &BrowsedLetter) -> bool {
        self.marks.contains(&letter.fingerprint)
    }

    /// The letters of a row of the screen of groups.
    pub(super) fn of_group_row(&self, row: usize) -> Vec<&BrowsedLetter> {
        let group = row.checked_sub(1).and_then(|at| self.groups.get(at));
        let key = group.map(key_of);
        let letters = self.shown.iter().filter_map(|at| self.letters.get(*at));
        letters
            .filter(|it| key.as_ref().is_none_or(|key| group_of(it) == *key))
            .collect()
    }

    pub(super) fn moves(&mut self, key: Key, page: usize) -> bool {
        match self.view {
            View::Groups => {
                let length = self.group_rows();
                self.group_list.moves(key, length, page)
            }
            View::Messages | View::Message(_) => {
                self.message_list.moves(key, self.rows.len(), page)
            }
        }
    }

    pub(super) fn key(&mut self, key: Key, columns: usize, page: usize, rows: usize) -> Wish {
        if matches!(key, Key::Char('R') | Key::Reload) {
            return Wish::Reload;
        }
        if let Some(trouble) = &mut self.trouble {
            trouble.scrolls(key, rows);
            return match key {
                Key::Escape | Key::Backspace => Wish::Close,
                _ => Wish::Nothing,
            };
        }
        match key {
            Key::Escape | Key::Backspace => return self.back(),
            Key::Enter => {
                self.enter(columns, page);
                return Wish::Nothing;
            }
            Key::Char(what @ (' ' | 'a' | 'r' | 'e' | 'p')) => return self.touch(what, page),
            Key::Char('u') => {
                self.marks.clear();
                return Wish::Nothing;
            }
            _ => {}
        }
        if let View::Message(text) = &mut self.view {
            match key {
                Key::Char(step @ ('n' | 'b')) => {
                    let key = if step == 'n' { Key::Down } else { Key::Up };
                    self.message_list.moves(key, self.rows.len(), page);
                    self.enter(columns, page);
                }
                key => {
                    text.scrolls(key, rows);
                }
            }
        } else {
            self.moves(key, page);
        }
        Wish::Nothing
    }

    fn back(&mut self) -> Wish {
        match self.view {
            View::Message(_) => self.view = View::Messages,
            View::Messages => self.view = View::Groups,
            View::Groups if !self.filter.text.is_empty() => {
                self.filter.text.clear();
                return Wish::Refilter;
            }
            View::Groups => return Wish::Close,
        }
        Wish::Nothing
    }

    fn enter(&mut self, columns: usize, page: usize) {
        match self.view {
            View::Groups => {
                if self.group_rows() == 0 {
                    return;
                }
                self.group = self.selected_group();
                self.choose_rows();
                self.message_list = List::default();
                self.message_list.fit(self.rows.len(), page);
                self.view = View::Messages;
            }
            View::Messages | View::Message(_) => {
                let place = self.rows.get(self.message_list.selected);
                let found = place.and_then(|at| Some((*at, self.letters.get(*at)?)));
                if let Some((at, letter)) = found {
                    self.view = View::Message(letter_page(at + 1, letter, columns));
                }
            }
        }
    }

    pub(super) fn resize(&mut self, columns: usize, page: usize, rows: usize) {
        self.group_list.fit(self.group_rows(), page);
        self.message_list.fit(self.rows.len(), page);
        if let View::Message(text) = &mut self.view {
            text.resize(columns, rows);
        }
        if let Some(trouble) = &mut self.trouble {
            trouble.resize(columns, rows);
        }
    }
}

fn key_of(group: &Group) -> GroupKey {
    (
        group.origin.clone(),
        group.reason.clone(),
        group.error.clone(),
    )
}

fn group_of(letter: &BrowsedLetter) -> GroupKey {
    let letter = &letter.letter;
    let error = letter.error.as_deref();
    (
        letter.origin.clone(),
        letter.reason.clone(),
        error.and_then(crate::deadletter::first_line),
    )
}
