//! How the screens look.

use insta::assert_snapshot;

use super::{Event, Seat, letter};
use crate::browse::{Loaded, Outcome};
use serde_json::json;

#[test]
fn each_screen_at_80_by_24() {
    let mut seat = Seat::new(80, 24);
    assert_snapshot!("queues", seat.screen());
    seat.keys("j\n");
    assert_snapshot!("loading", seat.screen());
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("j k");
    assert_snapshot!("groups", seat.screen());
    seat.keys("g\n");
    assert_snapshot!("messages", seat.screen());
    seat.keys("\n");
    assert_snapshot!("message", seat.screen());
    seat.keys("G\u{1b}G\n");
    assert_snapshot!("hostile", seat.screen());
    seat.keys("?");
    assert_snapshot!("help", seat.screen());
    seat.keys("x\u{1b}/=.attempts >");
    assert_snapshot!("filter", seat.screen());
}

#[test]
fn each_step_of_an_action() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("j p");
    assert_snapshot!("purge", seat.screen());
    seat.keys("\u{1b}e");
    assert_snapshot!("export", seat.screen());
    seat.keys("\u{1b}r");
    assert_snapshot!("preview", seat.screen());
    seat.happens(Event::Finished(Outcome {
        text: "orders.dlq: 3 of 100000 messages would be sent back\nCOUNT  FAILED IN  EXCHANGE  KEY        LANDS IN  COMES BACK\n    3  orders     shop      order.new  orders    if it fails".to_owned(),
        count: 3,
        trouble: None,
    }));
    assert_snapshot!("confirm", seat.screen());
}

#[test]
fn a_large_terminal_shows_more_and_a_tiny_one_says_so() {
    let mut seat = Seat::in_orders(200, 60);
    seat.keys("\n");
    assert_snapshot!("messages_200", seat.screen());
    seat.happens(Event::Resize(20, 5));
    assert_snapshot!("tiny", seat.screen());
    seat.happens(Event::Resize(40, 8));
    assert_snapshot!("small", seat.screen());
}

#[test]
fn the_readme_shows_a_screen_as_it_is() {
    let mut seat = Seat::in_orders(80, 12);
    seat.keys("j k");
    let screen = seat.screen();
    assert!(
        include_str!("../../../README.md").contains(&format!("```text\n{screen}\n```")),
        "the README does not show\n{screen}"
    );
}

/// Every size, every screen: nothing panics, and nothing is left of what could
/// drive a terminal.
#[test]
fn no_size_and_no_message_breaks_a_screen() {
    let bodies = [
        "\u{1b}[2J\u{7}\u{9b}31m",
        "\u{202e}abc\u{202c} عربى",
        "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f} 🇩🇪 👍🏽 日本語 e\u{301}\u{301}",
        "tab\tbed\r\n\n\u{0}",
        "\u{2028}a\u{2029}b\u{85}c\u{fff9}d\u{e0041}",
        &"日".repeat(500),
        "",
    ];
    let hostile = || {
        let letters = bodies.iter().map(|body| {
            letter(body, &json!({*body: *body, "mq-queue": *body, "mq-error-kind": *body, "mq-error-reason": *body}))
        });
        letters.collect::<Vec<_>>()
    };
    for (columns, rows) in [
        (0, 0),
        (1, 1),
        (20, 5),
        (39, 8),
        (40, 7),
        (40, 8),
        (41, 9),
        (80, 24),
        (300, 100),
    ] {
        let mut seat = Seat::new(80, 24);
        seat.happens(Event::Resize(columns, rows));
        seat.keys("j\n");
        seat.loads(hostile());
        for keys in [
            "",
            "\n",
            "\n",
            "n",
            "n",
            "n",
            "n",
            "G",
            "\u{1b}",
            "p",
            "\u{202e}日",
            "\u{1b}",
            "/日",
            "\n",
            "?",
        ] {
            seat.keys(keys);
            let screen = seat.screen();
            let odd = screen
                .chars()
                .find(|c| *c != '\n' && (c.is_control() || crate::printable::hides(*c)));
            assert_eq!(odd, None, "{columns}×{rows} {keys:?}\n{screen}");
        }
    }
}

#[test]
fn loaded_and_ready_are_told_apart() {
    for (ready, is_cut, shown) in [
        (5, false, "5 messages"),
        (100_000, false, "5 of 100,000 messages"),
        (100_000, true, "5 of 100,000 messages (more are too large)"),
    ] {
        let mut seat = Seat::new(80, 24);
        seat.keys("j\n");
        let [super::Effect::Load { number, .. }] = seat.effects[..] else {
            panic!("{:?}", seat.effects);
        };
        seat.happens(Event::Loaded(
            number,
            Ok(Loaded {
                ready,
                letters: super::letters(),
                is_cut_by_size: is_cut,
            }),
        ));
        seat.shows(&[shown]);
    }
    let mut seat = Seat::new(80, 24);
    seat.keys("\n");
    let [super::Effect::Load { number, .. }] = seat.effects[..] else {
        panic!("{:?}", seat.effects);
    };
    seat.happens(Event::Loaded(number, Ok(Loaded::default())));
    seat.shows(&["no message is ready"]);
    seat.keys("\n ar");
    seat.shows(&["there is no message to do this with"]);
}
