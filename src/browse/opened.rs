//! A queue that is open: its letters by group, one after the other, or one alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::browse::action::Action;
use crate::browse::filter::FilterLine;
use crate::browse::list::List;
use crate::browse::message::letter_page;
use crate::browse::page::Page;
use crate::browse::{BrowsedLetter, Effect, Key, Loaded};
use crate::deadletter::{Group, Marked, summarise};
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
    /// The number of the match that is awaited.
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
            // Until the answer comes nothing is known about new letters.
            if (self.accepted.as_ref()).is_some_and(|it| it.len() != self.letters.len()) {
                self.accepted = None;
            }
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
                self.accepted = Some(accepted);
                self.refresh(page);
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
        let key = group.map(|it| (it.origin.clone(), it.reason.clone(), it.error.clone()));
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
            Key::Char(' ') => {
                self.mark_selected(page);
                return Wish::Nothing;
            }
            Key::Char('a') => {
                let shown: Vec<Fingerprint> = match self.view {
                    View::Groups => prints(&self.of_group_row(0)),
                    View::Messages | View::Message(_) => self.row_prints(),
                };
                self.toggle(&shown);
                return Wish::Nothing;
            }
            Key::Char('u') => {
                self.marks.clear();
                return Wish::Nothing;
            }
            Key::Char(what @ ('r' | 'e' | 'p')) => return self.act(what),
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
                let chosen = self.group_list.selected.checked_sub(1);
                let chosen = chosen.and_then(|at| self.groups.get(at));
                self.group =
                    chosen.map(|it| (it.origin.clone(), it.reason.clone(), it.error.clone()));
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

    fn row_prints(&self) -> Vec<Fingerprint> {
        let letters = self.rows.iter().filter_map(|at| self.letters.get(*at));
        letters.map(|it| it.fingerprint).collect()
    }

    fn mark_selected(&mut self, page: usize) {
        let selected = match self.view {
            View::Groups => prints(&self.of_group_row(self.group_list.selected)),
            View::Messages | View::Message(_) => prints(&Vec::from_iter(self.selected())),
        };
        self.toggle(&selected);
        if self.is_a_list() {
            self.moves(Key::Down, page);
        }
    }

    /// Marks them; takes the marks away when all of them have one.
    fn toggle(&mut self, prints: &[Fingerprint]) {
        if prints.iter().all(|it| self.marks.contains(it)) {
            for print in prints {
                self.marks.remove(print);
            }
        } else {
            self.marks.extend(prints);
        }
    }

    fn act(&mut self, what: char) -> Wish {
        let chosen = if self.marks.is_empty() {
            match self.view {
                View::Groups => prints(&self.of_group_row(self.group_list.selected)),
                View::Messages | View::Message(_) => prints(&Vec::from_iter(self.selected())),
            }
        } else {
            let letters = self.letters.iter().filter(|it| self.is_marked(it));
            letters.map(|it| it.fingerprint).collect()
        };
        if chosen.is_empty() {
            return Wish::Note("there is no message to do this with".to_owned());
        }
        if self.awaited.is_some() {
            return Wish::Note("wait until the queue is loaded".to_owned());
        }
        let mut marked = Marked::default();
        for print in chosen {
            marked.add(print);
        }
        let (action, effect) = Action::new(what, &self.vhost, &self.queue, marked, self.ready);
        Wish::Act(Box::new(action), effect.map(Box::new))
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

fn prints(letters: &[&BrowsedLetter]) -> Vec<Fingerprint> {
    letters.iter().map(|it| it.fingerprint).collect()
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
