//! What keys do.

use super::{Effect, Event, Key, Seat, letters, trouble};
use crate::browse::{Doing, Job, Outcome};
use crate::deadletter::ReplayTo;

fn job(seat: &Seat) -> &Job {
    match &seat.effects[..] {
        [Effect::Run(job)] => job,
        other => panic!("no job: {other:?}"),
    }
}

fn done(text: &str, count: u64) -> Event {
    Event::Finished(Outcome {
        text: text.to_owned(),
        count,
        trouble: None,
    })
}

#[test]
fn one_goes_in_and_out_again() {
    let mut seat = Seat::in_orders(80, 24);
    for (keys, shown) in [
        ("", "all messages"),
        ("\n", "› messages"),
        ("j\n", "message 2 of 5"),
        ("n", "message 3 of 5"),
        ("bb", "message 1 of 5"),
        ("\u{1b}", "› messages"),
        ("\u{8}", "all messages"),
        // The largest group: its letters alone.
        ("j\n", "\"id\":1"),
        ("G\n", "message 3 of 3"),
        ("?", "Keys"),
        ("x", "message 3 of 3"),
        ("\u{1b}\u{1b}\u{1b}", "2 dead-letter queues"),
        ("r", "open a queue first"),
        // What was seen in it is newer than what was listed.
        ("", "100000"),
        ("k\n", "loading …"),
    ] {
        seat.keys(keys);
        seat.shows(&[shown]);
    }
    seat.keys("q");
    assert!(matches!(seat.effects[..], [Effect::Quit]));
}

#[test]
fn the_filter_is_asked_about_everything_in_a_message() {
    for (typed, matches) in [
        ("expired", 1),
        ("EXPIRED", 1),
        ("order.paid", 1),
        ("cannot reach", 1),
        ("acme", 4),
        ("tenant", 4),
        ("customer\":7", 1),
        ("timeout", 1),
        ("nowhere", 0),
    ] {
        let mut seat = Seat::in_orders(80, 24);
        seat.keys("/");
        seat.keys(typed);
        seat.shows(&[&format!("{matches} match"), &format!("filter: {typed}▏")]);
        // Enter keeps it, letters are keys again; Escape takes it away.
        seat.keys("\n");
        seat.shows(&[&format!("filter: {typed}\n")]);
        seat.keys("\u{1b}");
        assert!(!seat.screen().contains("match"), "{}", seat.screen());
    }
}

#[test]
fn a_program_is_asked_in_the_background_and_only_its_newest_answer_counts() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("/=.x");
    let [
        Effect::Match {
            number: old,
            ref program,
            ref letters,
        },
    ] = seat.effects[..]
    else {
        panic!("{:?}", seat.effects);
    };
    assert_eq!((program.as_str(), letters.len()), (".x", 5));
    seat.keys("y");
    let [Effect::Match { number, .. }] = seat.effects[..] else {
        panic!("{:?}", seat.effects);
    };
    seat.happens(Event::Matched(old, Ok(vec![false; 5])));
    seat.shows(&["5 of 100,000 messages", "[asking …]"]);
    seat.happens(Event::Matched(
        number,
        Ok(vec![true, false, true, true, false]),
    ));
    seat.shows(&["3 match", "filter: =.xy▏"]);
    // A mistake is told, and neither what is typed nor what is shown goes.
    seat.keys("(");
    let [Effect::Match { number, .. }] = seat.effects[..] else {
        panic!("{:?}", seat.effects);
    };
    seat.happens(Event::Matched(number, Err("it ends too soon".to_owned())));
    seat.shows(&["it ends too soon", "filter: =.xy(▏", ">       3"]);
}

#[test]
fn marks_are_of_content_and_twins_go_together() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("\n");
    for (keys, shown) in [
        (" ", "1 marked"),
        ("j ", "3 marked"),
        ("/expired\n", "3 marked"),
        ("a", "4 marked"),
        ("a", "3 marked"),
        ("\u{1b}\u{1b}", "5 of 100,000 messages; 3 marked"),
        // On a group: all of it, or none of it where all are marked.
        ("gjj ", "4 marked"),
        ("gj ", "1 marked"),
        ("k ", "4 marked"),
    ] {
        seat.keys(keys);
        seat.shows(&[shown]);
    }
    seat.keys("u");
    assert!(!seat.screen().contains("marked"), "{}", seat.screen());
    // What is gone after a reload is marked no more.
    seat.keys("gj ");
    seat.shows(&["3 marked"]);
    seat.keys("R");
    let mut fewer = letters();
    fewer.remove(0);
    seat.loads(fewer);
    seat.shows(&["4 of 100,000", "2 marked"]);
}

#[test]
fn a_replay_shows_where_before_it_asks_and_asks_before_it_sends() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("\nj r");
    // The one that is marked, not the one that is selected.
    assert_eq!(job(&seat).doing, Doing::Preview(ReplayTo::Original));
    assert_eq!(
        (job(&seat).queue.as_str(), job(&seat).marked.count()),
        ("orders.dlq", 1)
    );
    seat.shows(&["nothing is sent"]);
    seat.keys("y");
    assert!(
        seat.effects.is_empty(),
        "not before it is known what would happen"
    );
    seat.happens(done("1 would be sent back", 1));
    seat.shows(&["1 would be sent back", "y do it"]);
    seat.keys("t");
    assert_eq!(job(&seat).doing, Doing::Preview(ReplayTo::OriginQueue));
    seat.happens(done("straight", 1));
    seat.keys("y");
    assert_eq!(job(&seat).doing, Doing::Replay(ReplayTo::OriginQueue));
    seat.happens(Event::Progress(17));
    seat.shows(&["17 of 100,000 messages"]);
    seat.happens(done("1 sent back", 1));
    seat.shows(&["1 sent back", "Enter go on"]);
    seat.keys("\n");
    assert!(matches!(seat.effects[..], [Effect::Load { .. }]));
}

#[test]
fn where_nothing_would_be_sent_nothing_can_be_agreed_to() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("\nr");
    seat.happens(done("0 would be sent back\n1 stay: no exchange", 0));
    seat.keys("y");
    assert!(seat.effects.is_empty());
    seat.shows(&["no exchange", "t straight to the queue"]);
    seat.keys("\u{1b}");
    assert!(seat.effects.is_empty(), "nothing changed, nothing to load");
    seat.shows(&["› messages"]);
}

#[test]
fn a_purge_needs_the_name_of_the_queue() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("jp");
    seat.shows(&[
        "Remove 3 messages",
        "Type the queue's name to go on: orders.dlq",
    ]);
    for wrong in ["", "y", "orders", "orders.dlq2"] {
        seat.keys(wrong);
        seat.keys("\n");
        assert!(seat.effects.is_empty(), "{wrong}");
        seat.shows(&["that is not the queue's name; nothing was removed"]);
    }
    seat.keys("orders.dlq\n");
    assert_eq!(job(&seat).doing, Doing::Purge);
    assert_eq!(job(&seat).marked.count(), 3);
    // A twin more than were marked is left alone: the job knows how many.
    seat.happens(done("purged 3", 3));
    seat.keys("\n");
    assert!(matches!(seat.effects[..], [Effect::Load { .. }]));
}

#[test]
fn an_export_takes_a_name_or_none() {
    for (typed, name) in [("", ""), ("a b.jsonl", "a b.jsonl"), ("q", "q")] {
        let mut seat = Seat::in_orders(80, 24);
        seat.keys("\ne");
        seat.keys(typed);
        seat.keys("\n");
        assert_eq!(job(&seat).doing, Doing::Export(name.to_owned()));
        seat.happens(done("exported", 1));
        seat.keys("\n");
        assert!(seat.effects.is_empty(), "nothing left the queue");
    }
}

#[test]
fn a_job_is_stopped_and_not_left() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("\nr");
    seat.keys("q");
    assert!(seat.effects.is_empty());
    seat.happens(Event::Key(Key::Suspend));
    assert!(seat.effects.is_empty());
    for said in ["stopping in order", "stopping at once"] {
        seat.keys("\u{3}");
        assert!(matches!(seat.effects[..], [Effect::Stop]));
        seat.shows(&[said]);
    }
    seat.happens(Event::Finished(Outcome {
        text: "0 sent back".to_owned(),
        count: 0,
        trouble: Some(trouble(
            "the connection is lost\n  help: run it again",
            false,
        )),
    }));
    seat.shows(&[
        "0 sent back",
        "the connection is lost",
        "help: run it again",
    ]);
}

#[test]
fn what_is_pasted_is_text_and_never_keys() {
    let mut seat = Seat::in_orders(80, 24);
    seat.happens(Event::Paste("q\nppp".to_owned()));
    assert!(seat.effects.is_empty());
    seat.shows(&["all messages"]);
    seat.keys("/");
    seat.happens(Event::Paste("expired\nq".to_owned()));
    seat.shows(&["filter: expired▏", "1 match"]);
    seat.keys("\u{1b}jp");
    seat.happens(Event::Paste("orders.dlq\n".to_owned()));
    assert!(
        seat.effects.is_empty(),
        "a line end that was pasted agrees to nothing"
    );
    seat.keys("\n");
    assert_eq!(job(&seat).doing, Doing::Purge);
}

#[test]
fn a_filter_that_is_pasted_is_asked_whatever_it_ends_in() {
    let long = format!("=.{}", "x".repeat(3_000));
    for (pasted, asked) in [
        ("=.x", ".x"),
        ("=.x\u{7}", ".x"),
        ("=.x\t\n", ".x"),
        ("\u{1b}=.x\u{1b}[201~", ".x[201~"),
        (long.as_str(), long.get(1..2_000).expect("ASCII")),
    ] {
        let mut seat = Seat::in_orders(80, 24);
        seat.keys("/");
        seat.happens(Event::Paste(pasted.to_owned()));
        let Some(Effect::Match { program, .. }) = seat.effects.last() else {
            panic!("{pasted:?}: {:?}", seat.effects);
        };
        assert_eq!(program, asked, "{pasted:?}");
        seat.shows(&["[asking …]"]);
    }
}

#[test]
fn a_queue_that_is_deleted_leads_back_to_the_queues() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("R");
    let [Effect::Load { number, .. }] = seat.effects[..] else {
        panic!("{:?}", seat.effects);
    };
    let gone = trouble(
        "queue 'orders.dlq' does not exist\n  help: check its name",
        true,
    );
    seat.happens(Event::Loaded(number, Err(gone)));
    assert!(matches!(seat.effects[..], [Effect::List]));
    seat.shows(&["2 dead-letter queues", "queue 'orders.dlq' does not exist"]);
    // An answer to what nobody waits for any more.
    seat.happens(Event::Loaded(number, Err(trouble("late", false))));
    assert!(!seat.screen().contains("late"));
}

#[test]
fn what_does_not_answer_can_be_asked_again() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("\n R");
    let [Effect::Load { number, .. }] = seat.effects[..] else {
        panic!("{:?}", seat.effects);
    };
    seat.keys("r");
    seat.shows(&["wait until the queue is loaded"]);
    let away = trouble("cannot reach the management API\n  help: enable it", false);
    seat.happens(Event::Loaded(number, Err(away)));
    seat.shows(&[
        "cannot reach the management API",
        "help: enable it",
        "R try again",
    ]);
    seat.keys("R");
    seat.loads(letters());
    seat.shows(&["› messages", "1 marked"]);

    let mut seat = Seat::new(80, 24);
    seat.keys("R");
    assert!(matches!(seat.effects[..], [Effect::List]));
    seat.happens(Event::Listed(Err(trouble("no answer", false))));
    seat.shows(&["no answer", "R try again"]);
    seat.keys("\nR");
    assert!(matches!(seat.effects[..], [Effect::List]));
}
