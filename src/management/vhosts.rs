//! Vhosts and who may work in them.

use serde_json::{Value as Json, json};

use crate::error::{ErrorKind, Result};
use crate::management::Management;
use crate::management::wire::{WireVhost, WireVhostLimits};
use crate::topology::{QueueType, VhostLimit, VhostName, VhostSettings};

impl Management {
    /// Creates a vhost; one that exists stays as it is.
    ///
    /// # Errors
    /// When the user is no administrator.
    pub async fn create_vhost(&self, vhost: &VhostName) -> Result<()> {
        let doing = format!("create vhost '{vhost}'");
        // An existing vhost would lose its description and tags to an empty body.
        let path = ["vhosts", vhost.as_str()];
        if self.exists(&path, &doing).await? {
            return Ok(());
        }
        self.put(&path, &json!({}), &doing).await
    }

    /// Lets a user configure, write and read everything in a vhost, unless the
    /// user has permissions there already: those are left as they are.
    ///
    /// # Errors
    /// When the user who asks is no administrator.
    pub async fn grant_if_none(&self, vhost: &VhostName, user: &str) -> Result<()> {
        let doing = format!("grant user '{user}' all permissions in vhost '{vhost}'");
        let path = ["permissions", vhost.as_str(), user];
        if self.exists(&path, &doing).await? {
            return Ok(());
        }
        let everything = json!({ "configure": ".*", "write": ".*", "read": ".*" });
        self.put(&path, &everything, &doing).await
    }

    /// The vhosts that the user may know of: all of them for a `monitoring` user
    /// or an administrator, also those that the user has no permissions in.
    ///
    /// # Errors
    /// When the broker does not answer.
    pub async fn vhost_names(&self) -> Result<Vec<VhostName>> {
        let columns = [("columns", "name")];
        let vhosts: Vec<WireVhost> = self.list(&["vhosts"], &columns, "list the vhosts").await?;
        let names = vhosts.into_iter().map(|vhost| VhostName::new(vhost.name));
        names.collect()
    }

    /// What a vhost is set to; everything is said.
    ///
    /// # Errors
    /// When it does not exist, or the user may not read its limits.
    pub async fn vhost_settings(&self, vhost: &VhostName) -> Result<VhostSettings> {
        let doing = format!("read the settings of vhost '{vhost}'");
        let wire: WireVhost = self.get(&["vhosts", vhost.as_str()], &doing).await?;
        let path = ["vhost-limits", vhost.as_str()];
        let limits: Vec<WireVhostLimits> = self.get(&path, &doing).await?;
        // A negative limit is none (vhosts.md).
        let limit = |name: &str| {
            let number = limits.iter().find_map(|limits| limits.value.get(name));
            let number = number
                .and_then(Json::as_i64)
                .and_then(|n| u64::try_from(n).ok());
            Some(number.map_or(VhostLimit::Unlimited, VhostLimit::AtMost))
        };
        Ok(VhostSettings {
            description: Some(wire.description),
            tags: Some(wire.tags),
            default_queue_type: wire
                .default_queue_type
                .filter(|name| name != "undefined")
                .map(|name| QueueType::from_name(&name)),
            max_connections: limit("max-connections"),
            max_queues: limit("max-queues"),
        })
    }

    /// Sets a vhost. `settings` must say what stays too: brokers reset some of
    /// what a request leaves out.
    ///
    /// # Errors
    /// When the user is no administrator.
    pub async fn set_vhost(&self, vhost: &VhostName, settings: &VhostSettings) -> Result<()> {
        let doing = format!("set vhost '{vhost}'");
        let mut body = serde_json::Map::new();
        if let Some(description) = &settings.description {
            body.insert("description".to_owned(), json!(description));
        }
        if let Some(tags) = &settings.tags {
            body.insert("tags".to_owned(), json!(tags.join(",")));
        }
        if let Some(kind) = &settings.default_queue_type {
            body.insert("default_queue_type".to_owned(), json!(kind.to_string()));
        }
        let path = ["vhosts", vhost.as_str()];
        self.put(&path, &Json::Object(body), &doing).await?;
        for (name, limit) in [
            ("max-connections", settings.max_connections),
            ("max-queues", settings.max_queues),
        ] {
            let path = ["vhost-limits", vhost.as_str(), name];
            match limit {
                None => {}
                Some(VhostLimit::AtMost(number)) => {
                    self.put(&path, &json!({ "value": number }), &doing).await?;
                }
                Some(VhostLimit::Unlimited) => match self.delete(&path, &doing).await {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Deletes a vhost with everything in it.
    ///
    /// # Errors
    /// When it does not exist, is protected (4.x), or the user is no administrator.
    pub async fn delete_vhost(&self, vhost: &VhostName) -> Result<()> {
        let doing = format!("delete vhost '{vhost}'");
        self.delete(&["vhosts", vhost.as_str()], &doing).await
    }

    async fn exists(&self, path: &[&str], doing: &str) -> Result<bool> {
        match self.get::<Json>(path, doing).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
