//! What becomes of dead letters equals what the simulation says, on random
//! topologies of wait queues, loops, full queues and missing exchanges.

mod case;
mod drive;
mod expected;

use mq::routing::Router;
use mq::topology::Topology;

use crate::random::batches;
use crate::vhost::{Vhost, block_on};
use case::{Case, case};
use drive::{Run, drive};

const TOPOLOGIES: usize = 50;

/// Lets these die together; gives what differs, and how many copies there were
/// in the end.
fn differences(cases: &[Case]) -> (Vec<String>, usize) {
    let vhost = Vhost::new();
    let mut topology = Topology::default();
    for case in cases {
        let part = case.topology.clone();
        topology.exchanges.extend(part.exchanges);
        topology.queues.extend(part.queues);
        topology.bindings.extend(part.bindings);
    }
    let router = Router::on(&topology, &vhost.facts());
    let mut runs: Vec<Run<'_>> = cases
        .iter()
        .filter_map(|case| Some(Run::new(case, case.expected(&router)?)))
        .collect();
    // Few may be left out, or this proves nothing.
    assert!(
        runs.len() * 10 > cases.len() * 8,
        "{} of {}",
        runs.len(),
        cases.len()
    );
    block_on(drive(&vhost, &mut runs));
    let mut copies = 0;
    let mut differences = Vec::new();
    for run in &runs {
        if let Some(last) = run.expected.last() {
            copies += last.origin + last.resting.values().sum::<usize>();
        }
        if let Some((round, found)) = &run.difference {
            differences.push(format!(
                "after death {round}:\n  mq {:?}\n  broker {found:?}\n{}",
                run.expected, run.case
            ));
        }
    }
    (differences, copies)
}

#[test]
fn dead_letters_go_where_the_simulation_says() {
    let mut all = Vec::new();
    for batch in batches(TOPOLOGIES, 50) {
        let cases: Vec<Case> = batch.clone().map(case).collect();
        let (differences, copies) = differences(&cases);
        // Neither side may be right by losing everything.
        assert!(copies > batch.len() / 3, "{copies} copies");
        all.extend(differences);
    }
    let count = all.len();
    all.truncate(5);
    assert!(count == 0, "{count} differ:\n{}", all.join("\n"));
}
