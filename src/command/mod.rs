//! Commands: gather, decide, do, report. One file for each.
//!
//! Functions here return [`anyhow::Result`]: an error that is one of ours has
//! its exit code; any other is a bug and becomes 70.

mod alarms;
mod consume;
mod consume_policy;
mod consume_stream;
mod dedupe_store;
mod dlq_browse;
mod dlq_check;
mod dlq_chosen;
mod dlq_export;
mod dlq_guard;
mod dlq_inspect;
mod dlq_list;
mod dlq_look;
mod dlq_purge;
mod dlq_queues;
mod dlq_replace;
mod dlq_replay;
mod dlq_take;
mod dlq_watch;
mod doctor;
mod headers;
mod message_schemas;
mod publish;
mod publish_additions;
mod publish_again;
mod publish_bulk;
mod publish_prototype;
mod reconnect;
mod retry_path;
mod session;
mod signals;
mod topology_apply;
mod topology_blocked;
mod topology_convert;
mod topology_destroy;
mod topology_export;
mod topology_files;
mod topology_graph;
mod topology_lint;
mod topology_migrate;
mod topology_plan;
mod topology_prune;
mod topology_route;
mod topology_schema;
mod topology_steps;
mod topology_survey;
mod topology_test;
mod topology_validate;
mod wait;
mod watching;

use std::ffi::OsString;
use std::io;

use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::runtime::Builder;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::{Cli, Command, DlqCommand, GlobalArgs, LogFormat, OutputFormat, TopologyCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{self, LogWriter};

use session::Session;

/// Runs mq with the given command line and gives its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let matches = match Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return not_run(&error),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return not_run(&error),
    };
    log_to_stderr(&cli.global);
    match dispatch(cli) {
        Ok(exit) => exit,
        Err(error) => failed(&error),
    }
}

/// Help and version are answers; everything else clap refuses is usage, and its
/// own exit code 2 means something else here.
fn not_run(error: &clap::Error) -> Exit {
    let _ = error.print();
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Done
    }
}

fn failed(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<Error>() {
        Some(error) => {
            let exit = error.kind().exit();
            if exit != Exit::Done {
                output::talk(&format!("mq: {}", output::printable(&error.to_string())));
            }
            exit
        }
        None => {
            output::talk(&format!("mq: this is a bug in mq: {error:#}"));
            Exit::Internal
        }
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    let session = |global: GlobalArgs| Session::new(global, &|name| environment(name));
    match cli.command {
        Command::Wait(args) => block_on(wait::run(&args, &session(cli.global)?)),
        Command::Topology(TopologyCommand::Plan(args)) => {
            block_on(topology_plan::run(&args, session(cli.global)?))
        }
        Command::Topology(TopologyCommand::Apply(args)) => {
            block_on(topology_apply::run(&args, session(cli.global)?))
        }
        Command::Topology(TopologyCommand::Validate(args)) => {
            topology_validate::run(&args, &cli.global)
        }
        Command::Topology(TopologyCommand::Graph(args)) => {
            let broker = args.live.then(|| session(cli.global.clone())).transpose()?;
            block_on(topology_graph::run(&args, &cli.global, broker))
        }
        Command::Topology(TopologyCommand::Route(args)) => topology_route::run(&args, &cli.global),
        Command::Topology(TopologyCommand::Test(args)) if args.live => {
            let global = cli.global.clone();
            block_on(topology_test::run_live(
                &args,
                &global,
                session(cli.global)?,
            ))
        }
        Command::Topology(TopologyCommand::Test(args)) => topology_test::run(&args, &cli.global),
        Command::Topology(TopologyCommand::Destroy(args)) => {
            block_on(topology_destroy::run(&args, session(cli.global)?))
        }
        Command::Topology(TopologyCommand::Migrate(args)) => {
            block_on(topology_migrate::run(&args, session(cli.global)?))
        }
        Command::Topology(TopologyCommand::Export(args)) => {
            block_on(topology_export::run(&args, &session(cli.global)?))
        }
        Command::Topology(TopologyCommand::Convert(args)) => {
            topology_convert::run(&args, cli.global.vhost)
        }
        Command::Topology(TopologyCommand::Schema(_)) => topology_schema::run(),
        Command::Publish(args) if args.dry_run => {
            publish_bulk::dry_run(&args, environment).map_err(Into::into)
        }
        Command::Publish(args) if args.bulk.is_asked_for() => {
            block_on_threads(publish_bulk::run(&args, environment, &session(cli.global)?))
        }
        Command::Publish(args) => block_on(publish::run(args, environment, &session(cli.global)?)),
        Command::Consume(args) => block_on_threads(consume::run(args, &session(cli.global)?)),
        Command::Dlq(DlqCommand::List(args)) => {
            block_on(dlq_list::run(&args, &session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Check(args)) => {
            block_on(dlq_check::run(&args, session(cli.global)))
        }
        Command::Dlq(DlqCommand::Watch(args)) => {
            let terminal = output::TerminalKind::of(&environment);
            block_on(dlq_watch::run(&args, terminal, &session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Inspect(args)) => {
            block_on(dlq_inspect::run(&args, &session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Browse(args)) => {
            let term = environment("TERM");
            block_on_threads(dlq_browse::run(args, term, session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Replay(args)) => {
            let editor = ["VISUAL", "EDITOR"].into_iter().find_map(environment);
            block_on_threads(dlq_replay::run(args, editor, &session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Export(args)) => {
            block_on_threads(dlq_export::run(&args, &session(cli.global)?))
        }
        Command::Dlq(DlqCommand::Purge(args)) => {
            block_on_threads(dlq_purge::run(&args, &session(cli.global)?))
        }
        Command::Doctor(args) => block_on(doctor::run(&args, &session(cli.global)?)),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "mq", &mut script);
            output::data(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Done)
        }
        Command::Man(_) => {
            output::data(&manual()?)?;
            Ok(Exit::Done)
        }
    }
}

/// The manual page of mq and of every command, one after the other.
fn manual() -> io::Result<String> {
    let mut page = Vec::new();
    render_manual(Cli::command(), "mq", &mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn render_manual(command: clap::Command, name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let command = command.display_name(name).name(name.to_owned());
    clap_mangen::Man::new(command.clone()).render(page)?;
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" {
            render_manual(inner.clone(), &format!("{name}-{}", inner.get_name()), page)?;
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read; everything else is given what it needs"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// JSON in the form asked for, by a command that needs no session.
fn print_json(format: OutputFormat, json: &serde_json::Value) -> crate::error::Result<()> {
    match format {
        OutputFormat::Jsonl => output::data(&output::json_line(json)),
        OutputFormat::Table | OutputFormat::Json => output::data(&output::json_pretty(json)),
    }
}

/// For a short command one thread is enough; starting more would cost it a
/// tenth of its time.
fn block_on(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    run_on(&mut Builder::new_current_thread(), command)
}

/// A worker may be held up by a slow reader of its output: then heartbeats need
/// a thread of their own, or the broker takes the worker for dead.
fn block_on_threads(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    run_on(Builder::new_multi_thread().worker_threads(2), command)
}

fn run_on(
    builder: &mut Builder,
    command: impl Future<Output = anyhow::Result<Exit>>,
) -> anyhow::Result<Exit> {
    let runtime = builder.enable_all().build()?;
    let result = runtime.block_on(command);
    // A read of standard input that nobody waits for any more must not hold us up.
    runtime.shutdown_background();
    result
}

fn log_to_stderr(global: &GlobalArgs) {
    let level = match global.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // lapin logs message bodies and failures of its own that we report ourselves.
    let only_ours = Targets::new().with_target("mq", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(false);
    let registry = tracing_subscriber::registry().with(only_ours);
    match global.log_format {
        LogFormat::Text => registry
            .with(lines.with_writer(|| LogWriter::Text).without_time())
            .init(),
        LogFormat::Json => registry
            .with(
                lines
                    .with_writer(|| LogWriter::Json)
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(false),
            )
            .init(),
    }
}
