use super::*;

fn outage(after: u32) -> Outage {
    Outage::new(Some(Pausing {
        after,
        probe_wait: Duration::from_mins(1),
    }))
}

fn failed() -> Outcome {
    Outcome::Failed {
        why: "w".into(),
        wait: None,
    }
}

fn down() -> Outcome {
    Outcome::DownstreamDown { why: "w".into() }
}

#[test]
fn failures_in_a_row_are_an_outage_and_only_success_breaks_the_row() {
    let poison = || Outcome::Poison { why: "w".into() };
    for (outcomes, begins) in [
        (vec![failed(), failed(), failed()], true),
        (vec![failed(), failed(), Outcome::Done, failed()], false),
        (
            vec![failed(), poison(), failed(), Outcome::Interrupted, failed()],
            true,
        ),
        (vec![failed(), poison(), failed(), poison()], false),
        (vec![down()], true),
    ] {
        let mut outage = outage(3);
        let last = (outcomes.iter().enumerate())
            .map(|(tag, outcome)| outage.judge(tag as u64, outcome, true))
            .last();
        let began = matches!(last, Some(Sign::Outage { .. }));
        assert_eq!(began, begins, "{outcomes:?}");
    }
}

#[test]
fn without_the_flag_nothing_is_an_outage() {
    let mut outage = Outage::new(None);
    for outcome in [failed(), down(), failed()] {
        assert_eq!(outage.judge(1, &outcome, true), Sign::Nothing);
    }
}

#[test]
fn waits_double_up_to_the_longest_and_no_probe_is_held_for_longer_than_allowed() {
    let mut outage = outage(1);
    outage.begin(1);
    let mut waits = Vec::new();
    let mut held = Duration::ZERO;
    loop {
        match outage.next(true) {
            Some(Next::Rest { released, wait }) => {
                waits.push(wait.as_secs());
                if !released.is_empty() {
                    assert_eq!(released, [1]);
                    break;
                }
                held += wait;
                outage.rested();
            }
            Some(Next::Probe(tag)) => {
                assert_eq!(outage.judge(tag, &failed(), true), Sign::ProbeFailed);
            }
            None => panic!("nothing is under way"),
        }
    }
    assert_eq!(&waits[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
    assert!(held <= LONGEST_HOLD && held > LONGEST_HOLD / 2, "{held:?}");
    assert!(outage.has_no_candidate() && outage.takes_one_more());
}

#[test]
fn the_first_wait_is_no_longer_than_the_longest() {
    let mut outage = Outage::new(Some(Pausing {
        after: 1,
        probe_wait: Duration::from_millis(100),
    }));
    outage.begin(1);
    let wait = Duration::from_millis(100);
    let released = Vec::new();
    assert_eq!(outage.next(true), Some(Next::Rest { released, wait }));
}

#[test]
fn two_take_turns_and_the_new_one_comes_first() {
    let mut outage = outage(1);
    outage.begin(1);
    assert!(!outage.takes_one_more(), "one is enough for the first try");
    let mut tried = Vec::new();
    for _ in 0..6 {
        outage.next(true);
        outage.rested();
        let Some(Next::Probe(tag)) = outage.next(true) else {
            panic!("a probe is due");
        };
        tried.push(tag);
        outage.judge(tag, &failed(), true);
        if outage.takes_one_more() {
            outage.probe_came(2);
        }
    }
    assert_eq!(tried, [1, 2, 1, 2, 1, 2]);
}

#[test]
fn one_failure_of_a_suspect_is_its_own() {
    let mut outage = outage(1);
    outage.begin(1);
    assert_eq!(outage.end(), [1]);
    assert_eq!(outage.judge(1, &failed(), true), Sign::Nothing);
    assert!(matches!(
        outage.judge(1, &failed(), true),
        Sign::Outage { .. }
    ));
}
