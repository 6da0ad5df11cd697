//! Tables of what keys do, and pictures of the screens.

mod force;
mod keys;
mod pictures;
mod said;

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value as Json, json};

use super::{BrowsedLetter, Browser, Effect, Event, Key, Listed, Loaded, Start, Trouble, draw};
use crate::deadletter::EffectiveLimit;
use crate::field::table_from_json;
use crate::lint::Feed;
use crate::management::ObservedQueue;
use crate::message::{Delivery, Properties};
use crate::output::ListedQueue;
use crate::routing::Death;
use crate::topology::{QueueName, QueueType};

/// A dead letter with this body.
fn letter(body: &str, headers: &Json) -> BrowsedLetter {
    let message = Delivery {
        exchange: "dlx".to_owned(),
        routing_key: "dead".to_owned(),
        redelivered: false,
        properties: Properties {
            headers: table_from_json(headers.as_object().expect("object")),
            ..Properties::default()
        },
        body: body.as_bytes().to_vec(),
    };
    BrowsedLetter::new(message, 1_000)
}

fn died(reason: &str, count: u64) -> Json {
    json!({"tenant": "acme", "x-death": [{
        "queue": "orders", "reason": reason, "count": count, "time": 1_764_460_800,
        "exchange": "shop", "routing-keys": ["order.new"],
    }]})
}

fn parked(error: &str) -> Json {
    json!({
        "mq-queue": "orders", "mq-error-kind": "poison", "mq-error-reason": error,
        "mq-attempts": 2, "mq-exchange": "shop", "mq-routing-key": "order.paid",
        "mq-error-time": 1_764_467_200,
    })
}

fn listed_queue(name: &str, ready: u64) -> ListedQueue {
    ListedQueue {
        vhost: "shop".to_owned(),
        queue: name.to_owned(),
        observed: ObservedQueue {
            taken: None,
            kind: QueueType::Classic,
            limit: EffectiveLimit::None,
            messages: Some(ready),
            ready: Some(ready),
            unacknowledged: None,
            consumers: Some(0),
            arguments: BTreeMap::new(),
            policy: BTreeMap::new(),
            message_bytes: Some(ready * 100),
            members: 0,
            durable: true,
            auto_delete: false,
            exclusive: false,
        },
        look: "safe",
        look_why: None,
        oldest_seconds: Some(90_000),
        fed_by: vec![Feed {
            queue: QueueName::new(name.trim_end_matches(".dlq")).expect("name"),
            reasons: vec![Death::Rejected],
            waits: false,
        }],
    }
}

/// Five letters of three groups; two are the same.
fn letters() -> Vec<BrowsedLetter> {
    vec![
        letter(r#"{"id":1,"customer":7}"#, &died("rejected", 3)),
        letter(r#"{"id":2,"customer":8}"#, &died("expired", 1)),
        letter("twin", &died("rejected", 1)),
        letter("twin", &died("rejected", 1)),
        letter(
            "Timeout \u{1b}[2J\u{202e}",
            &parked("cannot reach\n\tthe \u{1b}[31mshop"),
        ),
    ]
}

fn trouble(text: &str, is_gone: bool) -> Trouble {
    Trouble {
        text: text.to_owned(),
        is_gone,
    }
}

/// A browser with two queues, after these keys.
struct Seat {
    browser: Browser,
    effects: Vec<Effect>,
}

impl Seat {
    fn new(columns: u16, rows: u16) -> Self {
        let (browser, effects) = Browser::new(Start {
            size: (columns, rows),
            with_vhost: false,
            queue: None,
        });
        let mut seat = Self { browser, effects };
        assert!(matches!(seat.effects[..], [Effect::List]));
        seat.happens(Event::Listed(Ok(Listed {
            queues: vec![
                listed_queue("mails.dlq", 0),
                listed_queue("orders.dlq", 100_000),
            ],
            skipped: false,
        })));
        seat
    }

    /// The same with the second queue open.
    fn in_orders(columns: u16, rows: u16) -> Self {
        let mut seat = Self::new(columns, rows);
        seat.keys("j\n");
        seat.loads(letters());
        seat
    }

    fn happens(&mut self, event: Event) {
        self.effects = self.browser.update(event);
    }

    fn loads(&mut self, letters: Vec<BrowsedLetter>) {
        let [Effect::Load { number, .. }] = self.effects[..] else {
            panic!("no load: {:?}", self.effects);
        };
        self.happens(Event::Loaded(
            number,
            Ok(Loaded {
                ready: 100_000,
                letters,
                is_cut_by_size: false,
            }),
        ));
    }

    /// `\n` is Enter, `\u{1b}` Escape, `\u{8}` Backspace, `\u{3}` Ctrl-C.
    fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            self.happens(Event::Key(match c {
                '\n' => Key::Enter,
                '\u{1b}' => Key::Escape,
                '\u{8}' => Key::Backspace,
                '\u{3}' => Key::Interrupt,
                c => Key::Char(c),
            }));
        }
    }

    /// The screen as text.
    fn screen(&self) -> String {
        let size = Rect::new(
            0,
            0,
            u16::try_from(self.browser.columns).expect("columns"),
            u16::try_from(self.browser.rows).expect("rows"),
        );
        let mut buffer = Buffer::empty(size);
        draw(&self.browser, size, &mut buffer);
        let mut lines = Vec::new();
        for y in 0..size.height {
            let mut line = String::new();
            let mut x = 0;
            while x < size.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                let wide = unicode_width::UnicodeWidthStr::width(symbol).max(1);
                x += u16::try_from(wide).expect("width");
            }
            lines.push(line.trim_end().to_owned());
        }
        lines.join("\n")
    }

    #[track_caller]
    fn shows(&self, words: &[&str]) {
        let screen = self.screen();
        for word in words {
            assert!(screen.contains(word), "no {word:?} in\n{screen}");
        }
    }
}
