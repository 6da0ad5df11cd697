//! Topology files from disk or standard input, read and checked.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where files, standard input and the environment are read"
)]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::cli::Files;
use crate::diagnostic::{Diagnostic, Source, render};
use crate::error::{Error, ErrorKind, Result};
use crate::secret::Secret;
use crate::topology::{Password, Topology};
use crate::topologyfile::{self, File};

/// Reads the files of a command as one topology, under the names it asks for.
pub(super) fn load_named(files: &Files) -> Result<Topology> {
    named(load(files.all())?, files)
}

/// The topology under the names that a command asks for.
pub(super) fn named(topology: Topology, files: &Files) -> Result<Topology> {
    if files.prefix.is_empty() {
        Ok(topology)
    } else {
        topology.prefixed(&files.prefix)
    }
}

/// Reads the passwords of users from where the file says they are.
pub(super) fn with_passwords(mut topology: Topology) -> Result<Topology> {
    for (name, user) in &mut topology.users {
        let secret = match &user.password {
            Some(Password::Environment(variable)) => std::env::var(variable).map_err(|_| {
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("the password of user '{name}' is not there: the environment variable {variable} is not set"),
                )
                .hint(format!("set {variable}, or give the user another source"))
            })?,
            Some(Password::File(path)) => std::fs::read_to_string(path)
                .map_err(|error| unreadable(path, &error).during(&format!("password of user '{name}'")))?
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            Some(Password::Known(_) | Password::Hash(_)) | None => continue,
        };
        if secret.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("the password of user '{name}' is empty"),
            )
            .hint("an empty password lets nobody in; leave `password` out to leave it as it is"));
        }
        user.password = Some(Password::Known(Secret::new(secret)));
    }
    Ok(topology)
}

/// Reads all of them as one topology.
pub(super) fn load<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<Topology> {
    parse(&load_sources(paths)?)
}

/// Reads the texts.
pub(super) fn load_sources<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut has_stdin = false;
    for path in paths {
        if path.as_os_str() == "-" {
            if has_stdin {
                return Err(
                    Error::new(ErrorKind::Usage, "standard input is given twice")
                        .hint("give `-` once; it can be read only once"),
                );
            }
            has_stdin = true;
        }
        sources.extend(read(path)?);
    }
    Ok(sources)
}

/// Reads texts as one topology.
pub(super) fn parse(sources: &[Source]) -> Result<Topology> {
    parse_file(sources).map(|file| file.topology)
}

/// The same, with the places of everything in it.
pub(super) fn parse_file(sources: &[Source]) -> Result<File> {
    read_file(sources).map_err(|diagnostics| mistakes(&diagnostics, sources))
}

/// All mistakes as one error.
pub(super) fn mistakes(diagnostics: &[Diagnostic], sources: &[Source]) -> Error {
    let count = diagnostics.len();
    let plural = if count == 1 { "mistake" } else { "mistakes" };
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "the topology has {count} {plural}\n\n{}\n",
            render(diagnostics, sources)
        ),
    )
}

/// The same, with all mistakes as they are.
pub(super) fn read_file(sources: &[Source]) -> std::result::Result<File, Vec<Diagnostic>> {
    topologyfile::read(sources, &|name| std::env::var(name).ok())
}

fn read(path: &Path) -> Result<Vec<Source>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable("standard input", &error))?;
        return Ok(vec![source("<stdin>".to_owned(), bytes)?]);
    }
    let name = path.display().to_string();
    if !path.is_dir() {
        let bytes = std::fs::read(path).map_err(|error| unreadable(&name, &error))?;
        return Ok(vec![source(name, bytes)?]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| unreadable(&name, &error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
        })
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(Error::new(
            ErrorKind::InputMissing,
            format!("the directory {name} holds no .yaml file"),
        )
        .hint("give a topology file, or a directory of them"));
    }
    files
        .into_iter()
        .map(|file| {
            let name = file.display().to_string();
            let bytes = std::fs::read(&file).map_err(|error| unreadable(&name, &error))?;
            source(name, bytes)
        })
        .collect()
}

/// Larger than any topology: a log or a dump given by mistake.
const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

fn source(name: String, bytes: Vec<u8>) -> Result<Source> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{name} has {} MiB, more than the {} MiB that a topology file may have",
                bytes.len() / (1024 * 1024),
                MAX_FILE_BYTES / (1024 * 1024)
            ),
        )
        .hint("is it the right file? several files are one topology"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error
                .as_bytes()
                .iter()
                .take(valid)
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            Err(
                Error::new(ErrorKind::InvalidInput, format!("{name}:{line}: not UTF-8"))
                    .hint("save the file as UTF-8"),
            )
        }
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(ErrorKind::InputMissing, format!("{name} does not exist"))
                .hint("check the path")
        }
        _ => Error::new(
            ErrorKind::InputOutput,
            format!("cannot read {name}: {error}"),
        )
        .hint("check its permissions"),
    }
}
