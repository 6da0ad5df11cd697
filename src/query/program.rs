//! A compiled program and the thread that runs it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use jaq_core::load::{Arena, File, Loader, import};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Compiler, Ctx, Vars, compile, data, load};
use jaq_json::Val;

use crate::error::{Error, ErrorKind, Result};
use crate::printable::one_line;
use crate::query::{place, value};

/// So long a program may think about one message.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// jaq calls itself for everything that is nested: more than a thread usually
/// has, and only as much as is used. In bytes.
const STACK: usize = 256 * 1024 * 1024;

/// What reaches outside: the environment, further inputs, standard error, and
/// the end of the process.
const NOT_FOR_PROGRAMS: [&str; 9] = [
    "env",
    "input",
    "inputs",
    "halt",
    "halt_error",
    "debug",
    "debug_empty",
    "stderr",
    "stderr_empty",
];

type Kind = data::JustLut<Val>;
type Answer = std::result::Result<Vec<Val>, String>;
type Job = Box<dyn FnOnce(&Compiled) + Send>;

/// A program that can be asked.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is called in errors: `--filter '…'`.
    name: String,
    jobs: mpsc::Sender<Job>,
}

/// What runs on the thread.
pub(super) struct Compiled(jaq_core::Filter<Kind>);

impl Program {
    /// Compiles `code`, which stood behind `flag`; it may use `variables`.
    pub(super) fn parse(flag: &str, code: &str, variables: &[&str]) -> Result<Self> {
        let compiled = Compiled(compiled(flag, code, variables)?);
        let (jobs, waiting) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("query".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                for job in waiting {
                    job(&compiled);
                }
            })
            .map_err(|error| {
                Error::new(
                    ErrorKind::Internal,
                    format!("cannot start a thread for {flag}: {error}"),
                )
            })?;
        Ok(Self {
            name: format!("{flag} '{}'", one_line(code, 100)),
            jobs,
        })
    }

    /// What `job` makes of it, on the program's thread.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Compiled) -> std::result::Result<T, String> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let sent = self.jobs.send(Box::new(move |compiled| {
            let _ = answer.send(job(compiled));
        }));
        let failed =
            |why: &str| Error::new(ErrorKind::InvalidInput, format!("{}: {why}", self.name));
        if sent.is_err() {
            return Err(failed("it broke down").as_kind(ErrorKind::Internal));
        }
        match answered.recv_timeout(ANSWER_LIMIT) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(failed(&one_line(&why, 300))
                .hint("`?` passes over what fails: .body | fromjson? | .order?.id")),
            Err(RecvTimeoutError::Timeout) => Err(failed(&format!(
                "no answer within {}",
                humantime::format_duration(ANSWER_LIMIT)
            ))
            .hint("does it ever end?")),
            Err(RecvTimeoutError::Disconnected) => {
                Err(failed("it broke down").as_kind(ErrorKind::Internal))
            }
        }
    }
}

impl Compiled {
    /// The first `most` outputs for `input`.
    pub(super) fn run(&self, input: Val, variables: Vec<Val>, most: usize) -> Answer {
        let context = Ctx::<Kind>::new(&self.0.lut, Vars::new(variables));
        let outputs = self.0.id.run((context, input));
        outputs
            .take(most)
            .map(|output| {
                output.map_err(|stopped| match stopped.get_err() {
                    Ok(error) => error.to_string(),
                    Err(_) => "it stopped".to_owned(),
                })
            })
            .collect()
    }
}

fn compiled(flag: &str, code: &str, variables: &[&str]) -> Result<jaq_core::Filter<Kind>> {
    let arena = Arena::default();
    let at = |found: place::Found<'_>| place::error(flag, code, &found);
    let loaded = Loader::new(definitions())
        .load(&arena, File { code, path: () })
        .map_err(|errors| at(place::of_loading(&errors)))?;
    import(&loaded, |_| Err("files cannot be read".to_owned()))
        .map_err(|errors| at(place::of_loading(&errors)))?;
    Compiler::default()
        .with_funs(functions())
        .with_global_vars(variables.iter().copied())
        .compile(loaded)
        .map_err(|errors: compile::Errors<&str, ()>| at(place::of_compiling(&errors)))
}

fn definitions() -> impl Iterator<Item = load::parse::Def<&'static str>> {
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|definition| !NOT_FOR_PROGRAMS.contains(&definition.name))
}

fn functions() -> impl Iterator<Item = Fun<Kind>> {
    let ours = run::<Kind>(("fromjson", v(0), |(_, text)| bome(value::from_json(&text))));
    jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| *name != "fromjson" && !NOT_FOR_PROGRAMS.contains(name))
        .chain([ours])
}
