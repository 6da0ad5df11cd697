//! The part of an exported file that is about the vhost itself and its users.

use serde_json::{Map, Value as Json, json};

use super::insert;
use crate::topology::{Password, Topology, VhostLimit, VhostSettings};

/// The vhost: its name, or a map if it is set to something.
/// `defaults` too, where somebody wrote them.
pub(super) fn vhost_json(topology: &Topology, defaults: bool) -> Option<Json> {
    let name = topology.vhost.as_ref().map(|vhost| json!(vhost.as_str()));
    let settings = topology
        .vhost_settings
        .as_ref()
        .map(|settings| settings_json(settings, defaults));
    match settings.filter(|settings| !settings.is_empty()) {
        None => name,
        Some(settings) => {
            let mut vhost = Map::new();
            if let Some(name) = name {
                vhost.insert("name".to_owned(), name);
            }
            vhost.extend(settings);
            Some(Json::Object(vhost))
        }
    }
}

fn settings_json(settings: &VhostSettings, defaults: bool) -> Map<String, Json> {
    let mut json = Map::new();
    if let Some(description) = settings
        .description
        .as_ref()
        .filter(|text| defaults || !text.is_empty())
    {
        json.insert("description".to_owned(), json!(description));
    }
    if let Some(tags) = settings
        .tags
        .as_ref()
        .filter(|tags| defaults || !tags.is_empty())
    {
        json.insert("tags".to_owned(), json!(tags));
    }
    if let Some(kind) = &settings.default_queue_type {
        json.insert("default_queue_type".to_owned(), json!(kind.to_string()));
    }
    let mut limits = Map::new();
    for (name, limit) in [
        ("max_connections", settings.max_connections),
        ("max_queues", settings.max_queues),
    ] {
        let limit = match limit {
            Some(VhostLimit::AtMost(number)) => json!(number),
            Some(VhostLimit::Unlimited) if defaults => json!("unlimited"),
            Some(VhostLimit::Unlimited) | None => continue,
        };
        limits.insert(name.to_owned(), limit);
    }
    insert(&mut json, "limits", Json::Object(limits));
    json
}

/// Users, with the hashes of their passwords where they are known.
pub(super) fn users_json(topology: &Topology) -> Json {
    let users = topology.users.iter().map(|(name, user)| {
        let mut json = Map::new();
        let password = match &user.password {
            Some(Password::Hash(hash)) => {
                Some(json!({ "hash": hash.hash, "algorithm": hash.algorithm }))
            }
            Some(Password::Environment(variable)) => Some(json!({ "env": variable })),
            Some(Password::File(path)) => Some(json!({ "file": path })),
            // A password itself is never written.
            Some(Password::Known(_)) | None => None,
        };
        if let Some(password) = password {
            json.insert("password".to_owned(), password);
        }
        insert(&mut json, "tags", json!(user.tags));
        if let Some(description) = &user.description {
            json.insert("description".to_owned(), json!(description));
        }
        (name.to_string(), Json::Object(json))
    });
    Json::Object(users.collect())
}

/// What users may do, on topic exchanges too.
pub(super) fn permissions_json(topology: &Topology) -> Json {
    let mut permissions = Map::new();
    for (user, allowed) in &topology.permissions {
        let topics = topology
            .topic_permissions
            .iter()
            .filter(|((of, _), _)| of == user)
            .map(|((_, exchange), allowed)| {
                let json = json!({
                    "write": allowed.write.as_str(),
                    "read": allowed.read.as_str(),
                });
                (exchange.to_string(), json)
            });
        let mut json = Map::new();
        json.insert("configure".to_owned(), json!(allowed.configure.as_str()));
        json.insert("write".to_owned(), json!(allowed.write.as_str()));
        json.insert("read".to_owned(), json!(allowed.read.as_str()));
        insert(&mut json, "topics", Json::Object(topics.collect()));
        permissions.insert(user.to_string(), Json::Object(json));
    }
    Json::Object(permissions)
}
