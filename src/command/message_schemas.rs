//! The schemas of messages: read from where flags and files say they are, and
//! compiled before anything else is done.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where schema files are read"
)]

use std::collections::BTreeMap;
use std::fs::File as OpenFile;
use std::io::{ErrorKind as IoKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::topology_files;
use crate::cli::ConsumeArgs;
use crate::contract::{Contracts, Schema};
use crate::diagnostic::{Diagnostic, Level};
use crate::error::{Error, ErrorKind, Result};
use crate::lint::{Finding, Subject};
use crate::topology::{QueueName, Topology};
use crate::topologyfile::File;

/// Larger than any schema: a log or a dump given by mistake.
const MAX_SCHEMA_BYTES: u64 = 4 * 1024 * 1024;

/// Which schemas a worker holds messages of `queue` against: the one that is
/// asked for, else those of the file.
pub(super) fn contracts(
    args: &ConsumeArgs,
    queue: &QueueName,
    file: Option<&Topology>,
) -> Result<Option<Contracts>> {
    if let Some(path) = &args.schema {
        return Ok(Some(Contracts::of_all(compiled(path)?)));
    }
    let declared = file.and_then(|topology| topology.queues.get(queue));
    let Some(schemas) = declared.and_then(|queue| queue.schemas.as_ref()) else {
        return Ok(None);
    };
    let mut contracts = Contracts::default();
    let mut known: BTreeMap<PathBuf, Arc<Schema>> = BTreeMap::new();
    for rule in &schemas.rules {
        let path = schemas.path(rule);
        let schema = match known.get(&path) {
            Some(schema) => Arc::clone(schema),
            None => {
                let doing = format!("`schema` of queue '{queue}' in {}", schemas.beside);
                let schema = Arc::new(compiled(&path).map_err(|error| error.during(&doing))?);
                known.insert(path, Arc::clone(&schema));
                schema
            }
        };
        contracts.add(rule.clone(), schema);
    }
    Ok(Some(contracts))
}

/// The file, if every schema that it names can be read and compiled; else what
/// is wrong with those, at the key that names them.
pub(super) fn checked(file: File) -> std::result::Result<File, Vec<Diagnostic>> {
    let mut findings = Vec::new();
    let mut known: BTreeMap<PathBuf, Option<Error>> = BTreeMap::new();
    for (name, queue) in &file.topology.queues {
        if let Some(schemas) = &queue.schemas {
            let mut told = None;
            for rule in &schemas.rules {
                let path = schemas.path(rule);
                let found = known
                    .entry(path.clone())
                    .or_insert_with(|| compiled(&path).err());
                // A queue may name one schema in several rules.
                if let Some(error) = found
                    && told.as_ref() != Some(&path)
                {
                    findings.push(finding(name, error));
                    told = Some(path);
                }
            }
        }
    }
    if findings.is_empty() {
        Ok(file)
    } else {
        Err(file.locate(findings))
    }
}

/// The same as one error.
pub(super) fn must_be_fine(file: File) -> Result<File> {
    let sources = file.sources().to_vec();
    checked(file).map_err(|found| topology_files::mistakes(&found, &sources))
}

fn finding(queue: &QueueName, error: &Error) -> Finding {
    Finding {
        code: "MQ116",
        level: Level::Error,
        subject: Subject::Queue(queue.clone()),
        field: Some("schema"),
        message: format!("queue '{queue}': {}", error.message()),
        label: "what its messages are held against".to_owned(),
        help: error.way_out().unwrap_or_default().to_owned(),
    }
}

/// Reads and compiles one schema; reasons call it by the name of its file.
pub(super) fn compiled(path: &Path) -> Result<Schema> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| match error.kind() {
        IoKind::NotFound => Error::new(
            ErrorKind::InputMissing,
            format!("the schema {shown} does not exist"),
        )
        .hint("check the path; one in a topology file begins in the folder of that file"),
        _ => Error::new(
            ErrorKind::InputOutput,
            format!("cannot read the schema {shown}: {error}"),
        )
        .hint("check that it is a file, and its permissions"),
    };
    let mut text = Vec::new();
    OpenFile::open(path)
        .and_then(|file| file.take(MAX_SCHEMA_BYTES + 1).read_to_end(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_SCHEMA_BYTES {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "the schema {shown} has more than {} MiB",
                MAX_SCHEMA_BYTES / (1024 * 1024)
            ),
        )
        .hint("is it the right file?"));
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    Schema::compile(&name.to_string_lossy(), &text).map_err(|invalid| {
        Error::new(
            ErrorKind::InvalidInput,
            format!("the schema {shown} is invalid: {invalid}"),
        )
        .hint("a schema is one file of JSON Schema 2020-12, or draft-07 if its `$schema` says so; put what it refers to under its `$defs`")
    })
}
