//! Policies of both kinds: read, set, deleted.

use std::collections::BTreeMap;

use serde_json::json;

use crate::error::Result;
use crate::field::{table_from_json, table_to_json};
use crate::management::Management;
use crate::management::wire::WirePolicy;
use crate::topology::{ApplyTo, Pattern, Policy, PolicyKind, PolicyName, VhostName};

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
                policies.insert((kind, name), observed(wire));
            }
        }
        Ok(policies)
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
            "pattern": policy.pattern.as_str(),
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

fn observed(wire: WirePolicy) -> Policy {
    let apply_to = ApplyTo::ALL
        .iter()
        .find(|(word, _)| *word == wire.apply_to)
        .map_or(ApplyTo::All, |(_, apply_to)| *apply_to);
    Policy {
        description: None,
        pattern: Pattern::observed(wire.pattern),
        apply_to,
        priority: wire.priority,
        definition: table_from_json(&wire.definition),
    }
}
