//! `mq topology test`: what the files say of their own messages, proved.

mod bench;
mod live;
mod provoke;
mod vhost;

use std::path::Path;

use live::Ended;

use super::session::Session;
use super::{print_json, topology_files};
use crate::broker::BrokerFacts;
use crate::cli::{Files, GlobalArgs, OutputFormat, TestArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, junit_xml, proof_json, proof_text};
use crate::proof::{ProofReport, simulate};
use crate::routing::Router;
use crate::topology::Topology;

pub(super) fn run(args: &TestArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let topology = load(&args.files)?;
    let facts = args.for_version.as_ref();
    let facts = facts.map(|version| BrokerFacts::new("RabbitMQ", version));
    let report = simulated(&topology, facts.as_ref());
    Ok(tell(
        &report,
        args.junit.as_deref(),
        global.output,
        global.quiet,
    )?)
}

pub(super) async fn run_live(
    args: &TestArgs,
    global: &GlobalArgs,
    mut session: Session,
) -> anyhow::Result<Exit> {
    let topology = load(&args.files)?;
    match live::prove(&topology, &mut session).await? {
        Ended::Proved(report) => Ok(tell(
            &report,
            args.junit.as_deref(),
            global.output,
            global.quiet,
        )?),
        Ended::Stopped(number) => Ok(Exit::Signal(number)),
    }
}

/// Files that say nothing of any message prove nothing.
fn load(files: &Files) -> Result<Topology> {
    let topology = topology_files::load_named(files)?;
    if topology.tests.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the files hold no tests, so nothing would be proved",
        )
        .hint("add `tests:`, such as\ntests:\n  - publish: { exchange: NAME, key: KEY }\n    reaches: [QUEUE]"));
    }
    Ok(topology)
}

fn simulated(topology: &Topology, facts: Option<&BrokerFacts>) -> ProofReport {
    let router = Router::on(topology, facts);
    let tests = topology.tests.iter();
    ProofReport {
        broker: None,
        proofs: tests.map(|test| simulate(&router, test, facts)).collect(),
    }
}

/// Tells the results on every way that was asked for.
fn tell(
    report: &ProofReport,
    junit: Option<&Path>,
    format: OutputFormat,
    quiet: bool,
) -> Result<Exit> {
    let written = junit.map_or(Ok(()), |path| output::write_junit(path, &junit_xml(report)));
    let failed = report.failed() > 0;
    match format {
        OutputFormat::Table if quiet && !failed => {}
        OutputFormat::Table => output::data(&proof_text(report, quiet))?,
        OutputFormat::Json | OutputFormat::Jsonl => print_json(format, &proof_json(report))?,
    }
    written?;
    Ok(if failed { Exit::No } else { Exit::Done })
}
