//! Marks, and what is done with letters: only with those that are meant for sure.

use super::{Opened, View, Wish};
use crate::browse::action::Action;
use crate::browse::{BrowsedLetter, Key};
use crate::deadletter::Marked;
use crate::message::Fingerprint;

impl Opened {
    /// What Space, `a`, `r`, `e` and `p` do; nothing while more is shown than the
    /// filter means.
    pub(super) fn touch(&mut self, what: char, page: usize) -> Wish {
        if let Some(why) = self.filter.not_in_force() {
            return Wish::Note(why.to_owned());
        }
        match what {
            ' ' => self.mark_selected(page),
            'a' => {
                let shown: Vec<Fingerprint> = match self.view {
                    View::Groups => prints(&self.of_group_row(0)),
                    View::Messages | View::Message(_) => self.row_prints(),
                };
                self.toggle(&shown);
            }
            what => return self.act(what),
        }
        Wish::Nothing
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
}

fn prints(letters: &[&BrowsedLetter]) -> Vec<Fingerprint> {
    letters.iter().map(|it| it.fingerprint).collect()
}
