//! What is said to whoever looks.

use super::{Effect, Event, Listed, Seat, listed_queue, trouble};

#[test]
fn a_queue_that_is_not_there_is_told_in_full_until_a_key() {
    let text = "queue 'a.queue.with.a.rather.long.name' in vhost 'shop' does not exist, or you may not see it\n  help: the list shows the queues there are";
    for (columns, rows) in [(40, 8), (80, 24), (200, 50)] {
        let mut seat = Seat::new(columns, rows);
        seat.keys("j\n");
        let [Effect::Load { number, .. }] = seat.effects[..] else {
            panic!("{:?}", seat.effects);
        };
        seat.happens(Event::Loaded(number, Err(trouble(text, true))));
        // Neither an answer nor what is said meanwhile takes it away.
        seat.happens(Event::Listed(Ok(Listed {
            queues: vec![listed_queue("orders.dlq", 3)],
            skipped: false,
        })));
        seat.happens(Event::Said(vec!["mq: slow".to_owned()]));
        seat.happens(Event::Said(vec!["mq: slow".to_owned()]));
        let screen = seat.screen();
        let words: Vec<&str> = screen.split_whitespace().collect();
        let said = "queue 'a.queue.with.a.rather.long.name' in vhost 'shop' does not exist, or you may not see it; the list shows the queues there are; mq: slow";
        assert!(
            words.join("").contains(&said.replace(' ', "")),
            "{columns}×{rows}\n{screen}"
        );
        assert_eq!(screen.matches("slow").count(), 1, "{screen}");
        seat.keys("x");
        assert!(!seat.screen().contains("exist"), "{}", seat.screen());
    }
}

#[test]
fn what_is_said_stands_above_the_keys_until_the_next_one() {
    let mut seat = Seat::new(80, 24);
    seat.happens(Event::Said(vec![
        "mq: waiting for\u{1b}[2J the broker".to_owned(),
    ]));
    seat.shows(&["mq: waiting for\\u{1b}[2J the broker"]);
    seat.keys("j");
    assert!(!seat.screen().contains("waiting"));
}

#[test]
fn one_message_is_one() {
    for (keys, says, not) in [
        (
            "\np",
            "Remove 1 message from the queue. It is written",
            "them",
        ),
        ("\np", "can bring it back", "They"),
        ("\ne", "it stays in the queue", "they"),
        (
            "p",
            "Remove 5 messages from the queue. They are written",
            "It is",
        ),
        ("e", "they stay in the queue", "it stays"),
    ] {
        let mut seat = Seat::in_orders(200, 24);
        seat.keys(keys);
        seat.shows(&[says]);
        assert!(!seat.screen().contains(not), "{}", seat.screen());
    }
}
