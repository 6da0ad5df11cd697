//! Something that is done with messages: asked, confirmed, run, reported.

use crate::browse::filter::types;
use crate::browse::page::Page;
use crate::browse::{Doing, Effect, Job, Key, Outcome};
use crate::deadletter::{Marked, ReplayTo};
use crate::output::{one_line, printable};

/// What is to be done, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct Action {
    vhost: String,
    pub(super) queue: String,
    marked: Marked,
    /// How many messages are meant.
    pub(super) count: u64,
    /// Ready messages of the queue when it was loaded.
    pub(super) ready: u64,
    pub(super) what: What,
    pub(super) step: Step,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Replay(ReplayTo),
    Export,
    Purge,
}

/// How far it is.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A file's or the queue's name is typed.
    Types { line: String, error: &'static str },
    /// Work is under way; `stops` times somebody asked for its end.
    Runs {
        is_preview: bool,
        looked: u64,
        stops: u8,
    },
    /// What would be done, for a yes or no.
    Confirm(Page),
    /// What was done.
    /// `can_turn`: another way may do better.
    Report {
        page: Page,
        changed: bool,
        can_turn: bool,
    },
}

/// What comes after a key.
pub(super) enum Next {
    Stay,
    Do(Box<Effect>),
    Close { reload: bool },
}

impl Action {
    /// Begins with `r`, `e` or `p`.
    pub(super) fn new(
        key: char,
        vhost: &str,
        queue: &str,
        marked: Marked,
        ready: u64,
    ) -> (Self, Option<Effect>) {
        let mut action = Self {
            vhost: vhost.to_owned(),
            queue: queue.to_owned(),
            count: marked.count(),
            marked,
            ready,
            what: match key {
                'r' => What::Replay(ReplayTo::Original),
                'e' => What::Export,
                _ => What::Purge,
            },
            step: Step::Types {
                line: String::new(),
                error: "",
            },
        };
        let effect = match action.what.clone() {
            What::Replay(to) => Some(action.run(Doing::Preview(to))),
            What::Export | What::Purge => None,
        };
        (action, effect)
    }

    pub(super) const fn is_running(&self) -> bool {
        matches!(self.step, Step::Runs { .. })
    }

    pub(super) const fn is_typing(&self) -> bool {
        matches!(self.step, Step::Types { .. })
    }

    pub(super) fn progress(&mut self, so_far: u64) {
        if let Step::Runs { looked, .. } = &mut self.step {
            *looked = so_far;
        }
    }

    pub(super) fn finished(&mut self, outcome: Outcome, columns: usize) {
        let Step::Runs { is_preview, .. } = self.step else {
            return;
        };
        let mut text = outcome.text;
        if let Some(trouble) = &outcome.trouble {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&printable(&trouble.text));
        }
        let page = Page::new(text, columns);
        self.step = if is_preview && outcome.trouble.is_none() && outcome.count > 0 {
            Step::Confirm(page)
        } else {
            let is_gone = (outcome.trouble.as_ref()).is_some_and(|trouble| trouble.is_gone);
            let takes = !is_preview && self.what != What::Export;
            Step::Report {
                page,
                changed: takes || is_gone,
                can_turn: is_preview
                    && outcome.trouble.is_none()
                    && self.what == What::Replay(ReplayTo::Original),
            }
        };
    }

    pub(super) fn key(&mut self, key: Key, rows: usize) -> Next {
        match &mut self.step {
            Step::Runs { stops, .. } => match key {
                Key::Escape | Key::Interrupt => {
                    *stops = stops.saturating_add(1);
                    Next::Do(Box::new(Effect::Stop))
                }
                _ => Next::Stay,
            },
            Step::Types { line, error } => {
                *error = "";
                match key {
                    Key::Escape | Key::Interrupt => Next::Close { reload: false },
                    Key::Enter => self.typed(),
                    key => {
                        types(line, key);
                        Next::Stay
                    }
                }
            }
            Step::Confirm(page) => match (key, &mut self.what) {
                (Key::Char('y'), What::Replay(to)) => {
                    let to = to.clone();
                    Next::Do(Box::new(self.run(Doing::Replay(to))))
                }
                (Key::Char('t'), What::Replay(to)) => {
                    *to = match to {
                        ReplayTo::Original => ReplayTo::OriginQueue,
                        _ => ReplayTo::Original,
                    };
                    let to = to.clone();
                    Next::Do(Box::new(self.run(Doing::Preview(to))))
                }
                (Key::Escape | Key::Backspace | Key::Interrupt | Key::Char('n' | 'q'), _) => {
                    Next::Close { reload: false }
                }
                (key, _) => {
                    page.scrolls(key, rows);
                    Next::Stay
                }
            },
            Step::Report {
                page,
                changed,
                can_turn,
            } => match key {
                Key::Enter | Key::Escape | Key::Backspace | Key::Interrupt | Key::Char('q') => {
                    Next::Close { reload: *changed }
                }
                // Straight to the queue, where the way through exchanges leads nowhere.
                Key::Char('t') if *can_turn => {
                    self.what = What::Replay(ReplayTo::OriginQueue);
                    Next::Do(Box::new(self.run(Doing::Preview(ReplayTo::OriginQueue))))
                }
                key => {
                    page.scrolls(key, rows);
                    Next::Stay
                }
            },
        }
    }

    fn typed(&mut self) -> Next {
        let Step::Types { line, error } = &mut self.step else {
            return Next::Stay;
        };
        let typed = line.trim().to_owned();
        if self.what == What::Export {
            return Next::Do(Box::new(self.run(Doing::Export(typed))));
        }
        // A name that cannot be typed is typed as it is shown.
        if *line == self.queue || typed == shown_name(&self.queue) {
            return Next::Do(Box::new(self.run(Doing::Purge)));
        }
        line.clear();
        *error = "that is not the queue's name; nothing was removed";
        Next::Stay
    }

    fn run(&mut self, doing: Doing) -> Effect {
        self.step = Step::Runs {
            is_preview: matches!(doing, Doing::Preview(_)),
            looked: 0,
            stops: 0,
        };
        Effect::Run(Job {
            vhost: self.vhost.clone(),
            queue: self.queue.clone(),
            marked: self.marked.clone(),
            doing,
        })
    }

    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        match &mut self.step {
            Step::Confirm(page) | Step::Report { page, .. } => page.resize(columns, rows),
            Step::Types { .. } | Step::Runs { .. } => {}
        }
    }
}

/// A queue's name as it is shown where it is to be typed.
pub(super) fn shown_name(queue: &str) -> String {
    one_line(queue, 255)
}
