//! `mq topology validate`: files alone, no broker.

use serde_json::{Map, Value as Json, json};

use super::{message_schemas, print_json, topology_files};
use crate::broker::BrokerFacts;
use crate::cli::{GlobalArgs, OutputFormat, ValidateArgs};
use crate::diagnostic::{Diagnostic, Level, Source, line_and_column, render};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::lint::rule::UNSUPPORTED;
use crate::lint::{Finding, Subject, lint};
use crate::output;
use crate::plan::{Object, unsupported};
use crate::topology::Topology;
use crate::topologyfile::{self, File};

/// Findings beyond this are counted, not shown; JSON has all of them.
const MOST_SHOWN: usize = 100;

pub(super) fn run(args: &ValidateArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let sources = topology_files::load_sources(args.files.all())?;
    let file = match topology_files::read_file(&sources).and_then(message_schemas::checked) {
        Ok(file) => file,
        Err(mistakes) => {
            if global.output != OutputFormat::Table {
                print_json(
                    global.output,
                    &json!({"valid": false, "findings": findings_json(&mistakes, &sources)}),
                )?;
            }
            return Err(topology_files::mistakes(&mistakes, &sources).into());
        }
    };
    let renamed;
    let topology = if args.files.prefix.is_empty() {
        &file.topology
    } else {
        renamed = topology_files::named(file.topology.clone(), &args.files)?;
        &renamed
    };
    let found = found(args, &file);
    let count = |level| found.iter().filter(|one| one.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let expanded = if args.expand {
        Some(expanded(topology)?)
    } else {
        None
    };
    match global.output {
        OutputFormat::Table => {
            if !global.quiet || errors > 0 {
                show(&found, &sources);
            }
            match expanded {
                Some(text) => output::data(&text)?,
                None if global.quiet => {}
                None => output::data(&summary(topology, errors, warnings))?,
            }
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            let mut json = Map::from_iter([("valid".to_owned(), Json::from(errors == 0))]);
            for (count, what) in counts(topology) {
                json.insert(what.to_owned(), Json::from(count));
            }
            json.insert("findings".to_owned(), findings_json(&found, &sources));
            if let Some(text) = expanded {
                json.insert("expanded".to_owned(), Json::from(text));
            }
            print_json(global.output, &Json::Object(json))?;
        }
    }
    Ok(if errors > 0 || (args.strict && warnings > 0) {
        Exit::No
    } else {
        Exit::Done
    })
}

/// Everything the lint finds, as far as it was asked for.
fn found(args: &ValidateArgs, file: &File) -> Vec<Diagnostic> {
    let facts = args
        .for_version
        .as_ref()
        .map(|version| BrokerFacts::new("RabbitMQ", version));
    let mut findings = lint(&file.topology, facts.as_ref());
    let mut found = match &facts {
        // A comment may be for another version, so none is called useless.
        Some(facts) => {
            findings.extend(unsupported_by(&file.topology, facts));
            file.locate(findings)
        }
        None => file.locate_all(findings),
    };
    found.retain(|one| args.pedantic || one.level > Level::Advice);
    found.sort_by_key(|one| (one.place.source, one.place.bytes.start));
    found
}

/// What this version refuses or leaves out, as findings.
fn unsupported_by(topology: &Topology, facts: &BrokerFacts) -> Vec<Finding> {
    unsupported(topology, facts)
        .into_iter()
        .filter_map(|one| {
            let (subject, field) = match &one.object {
                Object::Queue(name) => (Subject::Queue(name.clone()), queue_field(&one.what)),
                Object::Exchange(name) => (Subject::Exchange(name.clone()), None),
                Object::Policy(kind, name) => (Subject::Policy(*kind, name.clone()), None),
                Object::Binding(binding) => {
                    let number = topology
                        .bindings
                        .iter()
                        .position(|other| other == binding)?;
                    (Subject::Binding(number), Some("key"))
                }
                Object::Vhost
                | Object::User(_)
                | Object::Permissions(_)
                | Object::TopicPermission(_) => (Subject::Vhost, None),
            };
            let finding = UNSUPPORTED
                .finding(subject, format!("{one} (checked for {facts})"))
                .help(one.way_out);
            Some(Finding { field, ..finding })
        })
        .collect()
}

/// The key of a queue that an unsupported setting stands under.
fn queue_field(what: &str) -> Option<&'static str> {
    [
        ("delayed_retry", "delayed_retry"),
        ("consumer_timeout", "consumer_timeout"),
        ("filter_size", "filter_size"),
        ("strategy", "dead_letter"),
        ("x-", "arguments"),
    ]
    .into_iter()
    .find(|(begin, _)| what.starts_with(begin))
    .map(|(_, field)| field)
}

fn show(found: &[Diagnostic], sources: &[Source]) {
    if found.is_empty() {
        return;
    }
    let shown = found.get(..MOST_SHOWN).unwrap_or(found);
    output::talk(&output::printable(&render(shown, sources)));
    if let Some(more) = found.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        output::talk(&format!("\nand {more} more: `-o json` has all of them"));
    }
    output::talk("");
}

fn summary(topology: &Topology, errors: usize, warnings: usize) -> String {
    let parts: Vec<String> = counts(topology)
        .iter()
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let plural = |count: usize, word: &str| {
        let s = if count == 1 { "" } else { "s" };
        format!("{count} {word}{s}")
    };
    let warned = if warnings > 0 {
        format!(", {}", plural(warnings, "warning"))
    } else {
        String::new()
    };
    let verdict = if errors > 0 {
        plural(errors, "mistake")
    } else {
        "fine".to_owned()
    };
    format!("{verdict}: {}{warned}", parts.join(", "))
}

fn counts(topology: &Topology) -> [(usize, &'static str); 3] {
    [
        (topology.exchanges.len(), "exchanges"),
        (topology.queues.len(), "queues"),
        (topology.bindings.len(), "bindings"),
    ]
}

fn findings_json(found: &[Diagnostic], sources: &[Source]) -> Json {
    found
        .iter()
        .map(|one| {
            let at = line_and_column(&one.place, sources);
            let file = sources.get(one.place.source).map(|source| &source.name);
            json!({
                "code": one.code,
                "level": one.level.word(),
                "message": one.message,
                "label": one.label,
                "help": one.help,
                "file": file,
                "line": at.map(|(line, _)| line),
                "column": at.map(|(_, column)| column),
            })
        })
        .collect()
}

/// The file without short forms.
fn expanded(topology: &Topology) -> Result<String> {
    let exported = topologyfile::expanded(topology).map_err(|why| {
        Error::new(
            ErrorKind::Internal,
            format!("the topology cannot be written: {why}"),
        )
    })?;
    for left_out in &exported.left_out {
        output::talk(&format!("mq: left out: {}", output::printable(left_out)));
    }
    Ok(exported.text)
}
