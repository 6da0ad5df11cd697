//! Policies of both kinds: read, set, deleted.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::error::{Error, ErrorKind, Result};
use crate::field::{table_from_json, table_to_json};
use crate::management::Management;
use crate::management::wire::WirePolicy;
use crate::topology::{ApplyTo, Policy, PolicyKind, PolicyName, VhostName};

/// Policies of both kinds by name.
pub type Policies = BTreeMap<(PolicyKind, PolicyName), Policy>;

impl Management {
    /// Every policy of a vhost.
    ///
    /// # Errors
    /// When the user is neither policymaker nor administrator.
    pub async fn policies(&self, vhost: &VhostName) -> Result<Policies> {
        let mut policies = Policies::new();
        for (_, kind) in PolicyKind::ALL {
            let doing = format!("read the policies of vhost '{vhost}'");
            let found: Vec<WirePolicy> = self.get(&[path(kind), vhost.as_str()], &doing).await?;
            for wire in found {
                let name = PolicyName::new(wire.name.clone())?;
                policies.insert((kind, name), observed(wire)?);
            }
        }
        Ok(policies)
    }

    /// Makes sure that the user may set a policy, before anything is changed:
    /// reading them takes less than setting them. User policies need the tag
    /// policymaker, operator policies administrator (management.md).
    ///
    /// # Errors
    /// [`ErrorKind::AccessRefused`], naming the tag.
    pub async fn may_set_policies(&self, kind: PolicyKind) -> Result<()> {
        let me: Json = self.get(&["whoami"], "ask who we are").await?;
        // A list since 3.9, before that one text with commas.
        let tags: Vec<&str> = match me.get("tags") {
            Some(Json::Array(tags)) => tags.iter().filter_map(Json::as_str).collect(),
            Some(Json::String(tags)) => tags.split(',').collect(),
            _ => Vec::new(),
        };
        let (what, needed, enough): (&str, &str, &[&str]) = match kind {
            PolicyKind::User => ("policies", "policymaker", &["policymaker", "administrator"]),
            PolicyKind::Operator => ("operator policies", "administrator", &["administrator"]),
        };
        if enough.iter().any(|tag| tags.contains(tag)) {
            return Ok(());
        }
        let user = &self.endpoint().user;
        Err(Error::new(
            ErrorKind::AccessRefused,
            format!("user '{user}' may not set {what}; nothing was changed"),
        )
        .hint(format!(
            "give it the tag: rabbitmqctl set_user_tags {user} {needed}"
        )))
    }

    /// Creates or changes a policy.
    ///
    /// # Errors
    /// When the broker refuses it, or the user may not set policies.
    pub async fn set_policy(
        &self,
        vhost: &VhostName,
        kind: PolicyKind,
        name: &PolicyName,
        policy: &Policy,
    ) -> Result<()> {
        let doing = format!("set {} '{name}' in vhost '{vhost}'", kind.word());
        let body = json!({
            "pattern": policy.pattern(),
            "apply-to": policy.apply_to.to_string(),
            "priority": policy.priority,
            "definition": table_to_json(&policy.definition),
        });
        let path = [path(kind), vhost.as_str(), name.as_str()];
        self.put(&path, &body, &doing).await
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// When it does not exist, or the user may not delete it.
    pub async fn delete_policy(
        &self,
        vhost: &VhostName,
        kind: PolicyKind,
        name: &PolicyName,
    ) -> Result<()> {
        let doing = format!("delete {} '{name}' in vhost '{vhost}'", kind.word());
        self.delete(&[path(kind), vhost.as_str(), name.as_str()], &doing)
            .await
    }
}

const fn path(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::User => "policies",
        PolicyKind::Operator => "operator-policies",
    }
}

fn observed(wire: WirePolicy) -> Result<Policy> {
    let apply_to = ApplyTo::ALL
        .iter()
        .find(|(word, _)| *word == wire.apply_to)
        .map_or(ApplyTo::All, |(_, apply_to)| *apply_to);
    Policy::new(
        wire.pattern,
        apply_to,
        i32::try_from(wire.priority).unwrap_or(i32::MAX),
        table_from_json(&wire.definition),
    )
}
