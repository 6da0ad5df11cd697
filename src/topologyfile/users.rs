//! The `users:` and `permissions:` of a file.

use crate::diagnostic::Diagnostic;
use crate::secret::{PasswordHash, SHA_256};
use crate::topology::{
    ExchangeName, Password, Pattern, Permissions, TopicPermission, Topology, User, UserName,
};
use crate::topologyfile::bindings::required;
use crate::topologyfile::check::Places;
use crate::topologyfile::fields::{Fields, Reader};
use crate::topologyfile::tree::{Node, Value};

/// Every key a user can have.
pub(super) const USER_KEYS: [&str; 3] = ["password", "tags", "description"];

/// Every key of a password.
pub(super) const PASSWORD_KEYS: [&str; 4] = ["env", "file", "hash", "algorithm"];

/// Every key of what a user may do.
pub(super) const PERMISSION_KEYS: [&str; 4] = ["configure", "write", "read", "topics"];

/// Every key of what a user may do on one exchange.
pub(super) const TOPIC_KEYS: [&str; 2] = ["write", "read"];

pub(super) fn read_users(node: &Node, reader: &mut Reader, topology: &mut Topology) {
    for (key, value) in reader.entries(node, "users") {
        let Some(name) = reader.key_name(key, UserName::new) else {
            continue;
        };
        let what = format!("user '{name}'");
        let known = &USER_KEYS;
        hide_what_may_be_a_password(value, known, reader);
        let Some(fields) = reader.fields(value, &what, known) else {
            continue;
        };
        let user = User {
            password: fields
                .get("password")
                .and_then(|node| password(node, &what, reader)),
            tags: fields
                .get("tags")
                .map(|node| reader.tags(node, &format!("`tags` of {what}")))
                .unwrap_or_default()
                .into_iter()
                .collect(),
            description: fields.get("description").and_then(|node| {
                reader
                    .text(node, &format!("`description` of {what}"))
                    .map(str::to_owned)
            }),
        };
        if topology.users.insert(name, user).is_some() {
            reader.declared_twice(key, &what);
        }
    }
}

/// A password in the wrong place is still a password: under another key, or
/// instead of the map.
fn hide_what_may_be_a_password(user: &Node, known: &[&str], reader: &mut Reader) {
    match &user.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                if key.text == "password" || !known.contains(&key.text.as_str()) {
                    reader.secret(value.place());
                }
            }
        }
        Value::Null => {}
        _ => reader.secret(user.place()),
    }
}

fn password(node: &Node, what: &str, reader: &mut Reader) -> Option<Password> {
    let of = format!("`password` of {what}");
    if !matches!(node.value, Value::Map(_)) {
        reader.report(
            Diagnostic::new("MQ115", node.place(), format!("{of} is in the file itself"))
                .help("take it from the environment, `password: { env: NAME }`, or from a file, `password: { file: PATH }`"),
        );
        return None;
    }
    let fields = reader.fields(node, &of, &PASSWORD_KEYS)?;
    let mut text = |field: &str| {
        let node = fields.get(field)?;
        reader
            .text(node, &format!("`{field}` of {of}"))
            .map(str::to_owned)
    };
    let (environment, file, hash) = (text("env"), text("file"), text("hash"));
    let algorithm = text("algorithm").unwrap_or_else(|| SHA_256.to_owned());
    match (environment, file, hash) {
        (Some(name), None, None) => Some(Password::Environment(name)),
        (None, Some(path), None) => Some(Password::File(path)),
        (None, None, Some(hash)) => Some(Password::Hash(PasswordHash { hash, algorithm })),
        _ => {
            reader.report(
                Diagnostic::new("MQ115", node.start(), format!("{of} needs one source"))
                    .help("write exactly one of `env: NAME`, `file: PATH` and `hash: TEXT`"),
            );
            None
        }
    }
}

pub(super) fn read_permissions(
    node: &Node,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) {
    for (key, value) in reader.entries(node, "permissions") {
        let Some(user) = reader.key_name(key, UserName::new) else {
            continue;
        };
        let what = format!("permissions of user '{user}'");
        let Some(fields) = reader.fields(value, &what, &PERMISSION_KEYS) else {
            continue;
        };
        if let Some(node) = fields.get("topics") {
            topics(node, &user, reader, topology, places);
        }
        let of = |field: &str| required(reader, value, fields, field, &what, Pattern::new);
        let [configure, write, read] = ["configure", "write", "read"].map(of);
        let (Some(configure), Some(write), Some(read)) = (configure, write, read) else {
            continue;
        };
        let permissions = Permissions {
            configure,
            write,
            read,
        };
        if topology.permissions.insert(user, permissions).is_some() {
            reader.declared_twice(key, &what);
        }
    }
}

fn topics(
    node: &Node,
    user: &UserName,
    reader: &mut Reader,
    topology: &mut Topology,
    places: &mut Places,
) {
    let what = format!("`topics` in the permissions of user '{user}'");
    for (key, value) in reader.entries(node, &what) {
        let Some(exchange) = reader.key_name(key, ExchangeName::new) else {
            continue;
        };
        let what = format!("permissions of user '{user}' on exchange '{exchange}'");
        let Some(fields) = reader.fields(value, &what, &TOPIC_KEYS) else {
            continue;
        };
        places.exchange(
            &exchange,
            key.place.clone(),
            format!("user '{user}' has permissions on it"),
        );
        let of = |field: &str| required(reader, value, fields, field, &what, Pattern::new);
        let [Some(write), Some(read)] = ["write", "read"].map(of) else {
            continue;
        };
        let permission = TopicPermission { write, read };
        topology
            .topic_permissions
            .insert((user.clone(), exchange), permission);
    }
}

/// The `owns:` of a file.
pub(super) fn read_owns(fields: Fields<'_>, reader: &mut Reader, topology: &mut Topology) {
    let Some(node) = fields.get("owns") else {
        return;
    };
    for item in reader.items(node, "owns") {
        if let Some(pattern) = reader.name(item, "a pattern under `owns`", Pattern::new)
            && !topology.owns.contains(&pattern)
        {
            topology.owns.push(pattern);
        }
    }
}
