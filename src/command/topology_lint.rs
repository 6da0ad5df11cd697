//! Files and what the lint has to say about them: shared by the commands that
//! are about to act on them.

use super::session::Session;
use super::{message_schemas, topology_files};
use crate::broker::BrokerFacts;
use crate::cli::Files;
use crate::diagnostic::{Diagnostic, Level, render};
use crate::error::{Error, ErrorKind, Result};
use crate::lint::{lint, lint_for_all};
use crate::output;
use crate::topology::Topology;
use crate::topologyfile::File;

/// Files that were read and linted as far as can be done without a broker.
pub(super) struct Linted {
    file: File,
    off: bool,
    /// What they declare, under the names that the command asks for.
    pub(super) topology: Topology,
}

impl Linted {
    /// Reads the files; stops at what is a mistake on every broker, unless the
    /// lint is `off`.
    pub(super) fn load(files: &Files, off: bool) -> Result<Self> {
        let file = topology_files::parse_file(&topology_files::load_sources(files.all())?)?;
        let topology = topology_files::named(file.topology.clone(), files)?;
        let file = if off {
            file
        } else {
            message_schemas::must_be_fine(file)?
        };
        if !off {
            stop_at_errors(&file, &file.locate(lint_for_all(&file.topology)))?;
        }
        Ok(Self {
            file,
            off,
            topology,
        })
    }

    /// Stops at what is a mistake on a broker like `facts`, and tells what
    /// looks like one.
    pub(super) fn judge(&self, facts: &BrokerFacts, session: &Session) -> Result<()> {
        if self.off {
            return Ok(());
        }
        let found = self.file.locate(lint(&self.file.topology, Some(facts)));
        let warnings = of_level(Level::Warning, &found);
        session.warn(|| told(&self.file, &warnings));
        stop_at_errors(&self.file, &found)
    }
}

fn of_level(level: Level, found: &[Diagnostic]) -> Vec<Diagnostic> {
    let of_it = found.iter().filter(|one| one.level == level);
    of_it.cloned().collect()
}

fn told(file: &File, found: &[Diagnostic]) -> String {
    if found.is_empty() {
        return String::new();
    }
    format!("{}\n", output::printable(&render(found, file.sources())))
}

fn stop_at_errors(file: &File, found: &[Diagnostic]) -> Result<()> {
    let errors = of_level(Level::Error, found);
    let Some(example) = errors.first().map(|one| one.code) else {
        return Ok(());
    };
    let count = errors.len();
    let plural = if count == 1 { "mistake" } else { "mistakes" };
    Err(Error::new(
        ErrorKind::Found,
        format!(
            "the topology has {count} {plural} that would lose messages; nothing was changed\n\n{}\n",
            render(&errors, file.sources())
        ),
    )
    .hint(format!(
        "if it is meant so, write `# mq: allow {example}` on the line above, or pass --no-lint"
    )))
}
