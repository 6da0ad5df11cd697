//! Users and what they may do.

use std::collections::BTreeMap;

use serde_json::json;

use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::management::wire::{WirePermissions, WireTopicPermission, WireUser};
use crate::secret::PasswordHash;
use crate::topology::{
    ExchangeName, Password, Pattern, Permissions, TopicPermission, TopicPermissionKey, User,
    UserName, VhostName,
};

impl Management {
    /// Every user of the cluster, with the hashes of their passwords.
    ///
    /// # Errors
    /// When the user who asks is no administrator.
    pub async fn users(&self) -> Result<BTreeMap<UserName, User>> {
        let found: Vec<WireUser> = self.get(&["users"], "read the users").await?;
        found
            .into_iter()
            .map(|wire| {
                let user = User {
                    description: None,
                    password: Some(Password::Hash(PasswordHash {
                        hash: wire.password_hash,
                        algorithm: wire.hashing_algorithm,
                    })),
                    tags: wire.tags.into_iter().collect(),
                };
                Ok((UserName::new(wire.name)?, user))
            })
            .collect()
    }

    /// Creates or changes a user. Only the hash of a password goes over the wire.
    ///
    /// # Errors
    /// When the password was not read, or the user who asks is no administrator.
    pub async fn set_user(&self, name: &UserName, user: &User) -> Result<()> {
        let hash = match &user.password {
            None => PasswordHash::of_nothing(),
            Some(Password::Hash(hash)) => hash.clone(),
            Some(Password::Known(secret)) => {
                PasswordHash::of(secret, fastrand::u32(..).to_be_bytes())
            }
            Some(Password::Environment(_) | Password::File(_)) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    format!("the password of user '{name}' was not read"),
                ));
            }
        };
        let tags: Vec<&str> = user.tags.iter().map(String::as_str).collect();
        let body = json!({
            "password_hash": hash.hash,
            "hashing_algorithm": hash.algorithm,
            "tags": tags.join(","),
        });
        let doing = format!("set user '{name}'");
        self.put(&["users", name.as_str()], &body, &doing).await
    }

    /// Deletes a user.
    ///
    /// # Errors
    /// When it does not exist, or the user who asks is no administrator.
    pub async fn delete_user(&self, name: &UserName) -> Result<()> {
        let doing = format!("delete user '{name}'");
        self.delete(&["users", name.as_str()], &doing).await
    }

    /// The vhosts in which a user has permissions.
    ///
    /// # Errors
    /// When the user does not exist, or the user who asks is no administrator.
    pub async fn vhosts_of_user(&self, name: &UserName) -> Result<Vec<String>> {
        let doing = format!("read the permissions of user '{name}'");
        let path = ["users", name.as_str(), "permissions"];
        let found: Vec<WirePermissions> = self.get(&path, &doing).await?;
        Ok(found.into_iter().map(|wire| wire.vhost).collect())
    }

    /// What every user may do in a vhost.
    ///
    /// # Errors
    /// When the user who asks is no administrator.
    pub async fn permissions(&self, vhost: &VhostName) -> Result<BTreeMap<UserName, Permissions>> {
        let doing = format!("read the permissions in vhost '{vhost}'");
        let path = ["vhosts", vhost.as_str(), "permissions"];
        let found: Vec<WirePermissions> = self.get(&path, &doing).await?;
        found
            .into_iter()
            .map(|wire| {
                let permissions = Permissions {
                    configure: Pattern::observed(wire.configure),
                    write: Pattern::observed(wire.write),
                    read: Pattern::observed(wire.read),
                };
                Ok((UserName::new(wire.user)?, permissions))
            })
            .collect()
    }

    /// Sets what a user may do in a vhost.
    ///
    /// # Errors
    /// When the user does not exist, or the user who asks is no administrator.
    pub async fn set_permissions(
        &self,
        vhost: &VhostName,
        user: &UserName,
        permissions: &Permissions,
    ) -> Result<()> {
        let body = json!({
            "configure": permissions.configure.as_str(),
            "write": permissions.write.as_str(),
            "read": permissions.read.as_str(),
        });
        let doing = format!("set the permissions of user '{user}' in vhost '{vhost}'");
        let path = ["permissions", vhost.as_str(), user.as_str()];
        self.put(&path, &body, &doing).await
    }

    /// Takes all permissions of a user in a vhost away.
    ///
    /// # Errors
    /// When it has none, or the user who asks is no administrator.
    pub async fn delete_permissions(&self, vhost: &VhostName, user: &UserName) -> Result<()> {
        let doing = format!("delete the permissions of user '{user}' in vhost '{vhost}'");
        let path = ["permissions", vhost.as_str(), user.as_str()];
        self.delete(&path, &doing).await
    }

    /// What users may do with the topic exchanges of a vhost.
    ///
    /// # Errors
    /// When the user who asks is no administrator.
    pub async fn topic_permissions(
        &self,
        vhost: &VhostName,
    ) -> Result<BTreeMap<TopicPermissionKey, TopicPermission>> {
        let doing = format!("read the topic permissions in vhost '{vhost}'");
        let path = ["vhosts", vhost.as_str(), "topic-permissions"];
        let found: Vec<WireTopicPermission> = self.get(&path, &doing).await?;
        found
            .into_iter()
            .map(|wire| {
                let key = (UserName::new(wire.user)?, ExchangeName::new(wire.exchange)?);
                let permission = TopicPermission {
                    write: Pattern::observed(wire.write),
                    read: Pattern::observed(wire.read),
                };
                Ok((key, permission))
            })
            .collect()
    }

    /// Sets what a user may do with a topic exchange.
    ///
    /// # Errors
    /// When user or exchange do not exist, or the user who asks is no administrator.
    pub async fn set_topic_permission(
        &self,
        vhost: &VhostName,
        (user, exchange): &TopicPermissionKey,
        permission: &TopicPermission,
    ) -> Result<()> {
        let body = json!({
            "exchange": exchange.as_str(),
            "write": permission.write.as_str(),
            "read": permission.read.as_str(),
        });
        let doing = format!(
            "set the permissions of user '{user}' on exchange '{exchange}' in vhost '{vhost}'"
        );
        let path = ["topic-permissions", vhost.as_str(), user.as_str()];
        self.put(&path, &body, &doing).await
    }

    /// Takes the permissions of a user on a topic exchange away.
    ///
    /// # Errors
    /// When there are none, or the user who asks is no administrator.
    pub async fn delete_topic_permission(
        &self,
        vhost: &VhostName,
        (user, exchange): &TopicPermissionKey,
    ) -> Result<()> {
        let doing = format!(
            "delete the permissions of user '{user}' on exchange '{exchange}' in vhost '{vhost}'"
        );
        let path = [
            "topic-permissions",
            vhost.as_str(),
            user.as_str(),
            exchange.as_str(),
        ];
        self.delete(&path, &doing).await
    }
}
