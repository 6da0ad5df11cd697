//! Vhosts and who may work in them.

use serde_json::{Value as Json, json};

use crate::error::{ErrorKind, Result};
use crate::management::Management;
use crate::topology::VhostName;

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

    async fn exists(&self, path: &[&str], doing: &str) -> Result<bool> {
        match self.get::<Json>(path, doing).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
