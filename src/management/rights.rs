//! What the user of the management API may set: asked before anything is
//! changed, because reading takes less than setting.

use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;

/// Something that only some users may set (management.md, "Permissions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Policies.
    Policies,
    /// Operator policies.
    OperatorPolicies,
    /// Vhosts.
    Vhosts,
    /// Users and permissions.
    Users,
}

impl Right {
    const fn what(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::OperatorPolicies => "operator policies",
            Self::Vhosts => "vhosts",
            Self::Users => "users and permissions",
        }
    }

    /// The tags that are enough, the smallest first.
    const fn tags(self) -> &'static [&'static str] {
        match self {
            Self::Policies => &["policymaker", "administrator"],
            Self::OperatorPolicies | Self::Vhosts | Self::Users => &["administrator"],
        }
    }
}

impl Management {
    /// The tags of the user.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn own_tags(&self) -> Result<Vec<String>> {
        let me: Json = self.get(&["whoami"], "ask who we are").await?;
        // A list since 3.9, before that one text with commas.
        Ok(match me.get("tags") {
            Some(Json::Array(tags)) => tags
                .iter()
                .filter_map(Json::as_str)
                .map(str::to_owned)
                .collect(),
            Some(Json::String(tags)) => tags.split(',').map(str::to_owned).collect(),
            _ => Vec::new(),
        })
    }

    /// Makes sure that the user has a right.
    ///
    /// # Errors
    /// [`ErrorKind::AccessRefused`], naming the tag.
    pub async fn must_have(&self, right: Right) -> Result<()> {
        let tags = self.own_tags().await?;
        let enough = right.tags();
        if enough.iter().any(|tag| tags.iter().any(|own| own == tag)) {
            return Ok(());
        }
        let user = &self.endpoint().user;
        let what = right.what();
        Err(Error::new(
            ErrorKind::AccessRefused,
            format!("user '{user}' may not set {what}; nothing was changed"),
        )
        .hint(format!(
            "give it the tag: rabbitmqctl set_user_tags {user} {}",
            enough.first().unwrap_or(&"administrator")
        )))
    }
}
