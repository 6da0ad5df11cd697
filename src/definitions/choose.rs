//! Which of the vhosts of a definitions file is meant.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Result};
use crate::topology::VhostName;

/// The vhost that is meant.
pub(super) struct Chosen {
    /// `None` when the file is about one vhost and does not name it.
    pub(super) vhost: Option<String>,
    /// Those that were not asked for.
    pub(super) others: Vec<String>,
}

/// Which of the vhosts in the file is meant.
pub(super) fn choose(json: &Json, wanted: Option<&VhostName>) -> Result<Chosen> {
    let items = |list: &str| {
        json.get(list)
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
    };
    let named = |list: &'static str| {
        items(list).filter_map(|item| Some(item.get("vhost")?.as_str()?.to_owned()))
    };
    let with_objects: BTreeSet<String> = ["queues", "exchanges", "bindings", "policies"]
        .into_iter()
        .flat_map(named)
        .collect();
    let mut all: BTreeSet<String> = items("vhosts")
        .filter_map(|item| Some(item.get("name")?.as_str()?.to_owned()))
        .collect();
    all.extend(with_objects.iter().cloned());
    for list in ["parameters", "permissions", "topic_permissions"] {
        all.extend(named(list));
    }
    if all.is_empty() {
        return Ok(Chosen {
            vhost: None,
            others: Vec::new(),
        });
    }
    let candidates = if with_objects.is_empty() {
        &all
    } else {
        &with_objects
    };
    let name = match wanted {
        Some(wanted) if all.contains(wanted.as_str()) => wanted.as_str().to_owned(),
        Some(wanted) => {
            return Err(not_chosen(
                &format!("the file does not hold vhost '{wanted}'"),
                &all,
            ));
        }
        None => match candidates.iter().collect::<Vec<_>>().as_slice() {
            [only] => (*only).clone(),
            _ => return Err(not_chosen("the file holds several vhosts", candidates)),
        },
    };
    let others = all.into_iter().filter(|other| *other != name).collect();
    Ok(Chosen {
        vhost: Some(name),
        others,
    })
}

fn not_chosen(what: &str, there: &BTreeSet<String>) -> Error {
    let names: Vec<String> = there.iter().map(|name| format!("'{name}'")).collect();
    Error::new(ErrorKind::InvalidInput, what)
        .hint(format!("choose one with --vhost: {}", names.join(", ")))
}
