//! A filter that is not in force: nothing is done with what it does not mean.

use super::{Effect, Event, Seat, letter, letters};
use serde_json::json;

/// The number of the match that is asked for.
fn asked(seat: &Seat) -> u64 {
    match seat.effects[..] {
        [Effect::Match { number, .. }] => number,
        ref other => panic!("no match: {other:?}"),
    }
}

const WAITS: &str = "the filter is not applied yet: wait for it, or clear it (/ Esc)";
const FAILED: &str = "the filter failed: correct or clear it (/)";
const NO_PROGRAM: &str = "the filter has no program after =: type one, or clear it (/)";

#[test]
fn nothing_is_touched_while_more_is_shown_than_the_filter_means() {
    // What is typed; the answer; what keys say; what stands there without them.
    for (typed, answer, says, stands) in [
        ("=.x", None, WAITS, "filter: =.x  [asking …]"),
        (
            "=.x",
            Some("it is no boolean"),
            FAILED,
            "filter: it is no boolean",
        ),
        ("=", None, NO_PROGRAM, "filter: =  [no program]"),
        ("=  ", None, NO_PROGRAM, "[no program]"),
    ] {
        for view in ["", "\n", "\n\n"] {
            for marks in ["", " "] {
                let mut seat = Seat::in_orders(80, 24);
                seat.keys(marks);
                seat.keys("/");
                seat.keys(typed);
                if let Some(error) = answer {
                    let number = asked(&seat);
                    seat.happens(Event::Matched(number, Err(error.to_owned())));
                }
                seat.keys("\n");
                seat.shows(&[stands]);
                seat.keys(view);
                let marked = seat.screen().contains("5 marked");
                assert_eq!(marked, marks == " ", "marks stay");
                for key in ["r", "e", "p", "a", " "] {
                    seat.keys(key);
                    assert!(seat.effects.is_empty(), "{typed} {view:?} {key}");
                    seat.shows(&[says]);
                    assert_eq!(seat.screen().contains("5 marked"), marked, "{key}");
                }
            }
        }
    }
}

#[test]
fn a_filter_that_is_in_force_again_lets_keys_do_their_work() {
    for (then, asks) in [("\u{1b}", false), ("y\n", true)] {
        let mut seat = Seat::in_orders(80, 24);
        seat.keys("/=.x");
        let number = asked(&seat);
        seat.happens(Event::Matched(number, Err("no".to_owned())));
        for key in then.chars() {
            seat.keys(&key.to_string());
            if key == 'y' {
                let number = asked(&seat);
                let accepted = vec![false, true, false, false, false];
                seat.happens(Event::Matched(number, Ok(accepted)));
            }
        }
        seat.keys("p");
        seat.shows(&[if asks {
            "purge 1 message "
        } else {
            "purge 5 messages "
        }]);
    }
    // Among queues it is text.
    let mut seat = Seat::new(80, 24);
    seat.keys("/=\n");
    assert!(!seat.screen().contains("program"), "{}", seat.screen());
}

#[test]
fn an_answer_about_letters_of_before_is_never_one_about_those_of_now() {
    let mut seat = Seat::in_orders(80, 24);
    seat.keys("/=.x");
    let before = asked(&seat);
    let first = vec![true, false, false, false, false];
    seat.happens(Event::Matched(before, Ok(first.clone())));
    seat.keys("\n");
    seat.shows(&["1 match"]);
    // As many, but others.
    seat.keys("R");
    let mut others = letters();
    others.reverse();
    seat.loads(others);
    let now = asked(&seat);
    seat.shows(&["[asking …]"]);
    assert!(!seat.screen().contains("match"), "{}", seat.screen());
    seat.keys("p");
    seat.shows(&[WAITS]);
    // The answer of before comes late, and again.
    seat.happens(Event::Matched(before, Ok(first)));
    assert!(!seat.screen().contains("match"), "{}", seat.screen());
    seat.keys("x");
    seat.shows(&["[asking …]"]);
    seat.happens(Event::Matched(now, Ok(vec![false, true, true, true, true])));
    seat.shows(&["4 match"]);
    seat.keys("p");
    seat.shows(&["purge 4 messages "]);
}

#[test]
fn an_answer_does_not_move_the_cursor_to_another_message() {
    let five = |accepted: &[usize]| (0..5).map(|at| accepted.contains(&at)).collect::<Vec<_>>();
    for (keys, accepted, shown) in [
        // Among messages, and in one.
        ("\njjj", vec![1, 3, 4], "> 4 "),
        ("\nj\n", vec![1, 3, 4], "message 1 of 3"),
        // What is not meant is not looked at any more.
        ("\njj\n", vec![1, 3, 4], "› messages"),
        // Among groups: the one of an error, that was the last of three.
        ("jjj", vec![2, 4], ">       1       -  poison"),
    ] {
        let mut seat = Seat::in_orders(80, 24);
        seat.keys("/=.x");
        let number = asked(&seat);
        seat.keys("\n");
        seat.keys(keys);
        seat.happens(Event::Matched(number, Ok(five(&accepted))));
        seat.shows(&[shown]);
    }
}

#[test]
fn a_long_filter_leaves_room_for_what_is_said_about_it() {
    let mut seat = Seat::new(80, 24);
    seat.keys("j\n");
    seat.loads(vec![letter("a", &json!({}))]);
    seat.keys("/=");
    seat.keys(&"日x".repeat(100));
    seat.shows(&["▏  [asking …]"]);
    seat.keys("\n");
    seat.shows(&["filter: =日x", "…  [asking …]"]);
}
