//! A vhost that is there only while tests run in it.

use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::output;
use crate::topology::{Topology, VhostName};

/// A vhost of our own.
pub(super) struct TemporaryVhost<'m> {
    name: VhostName,
    management: &'m Management,
}

impl<'m> TemporaryVhost<'m> {
    /// Chooses a name that nobody else has.
    pub(super) fn choose(management: &'m Management) -> Result<Self> {
        let random: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(12)
            .collect();
        Ok(Self {
            name: VhostName::new(format!("mq-test-{random}"))?,
            management,
        })
    }

    pub(super) const fn name(&self) -> &VhostName {
        &self.name
    }

    /// Creates it, and lets the user work in it.
    pub(super) async fn create(&self, topology: &Topology, user: &str) -> Result<()> {
        self.management.create_vhost(&self.name).await?;
        // Before anything is declared, so that it counts.
        if let Some(settings) = &topology.vhost_settings {
            self.management.set_vhost(&self.name, settings).await?;
        }
        self.management.grant_if_none(&self.name, user).await
    }

    /// Deletes it with everything in it. What cannot be deleted is told with the
    /// command that does it.
    pub(super) async fn delete(self) -> Result<()> {
        let mut deleted = self.management.delete_vhost(&self.name).await;
        if deleted
            .as_ref()
            .is_err_and(|error| error.kind() != ErrorKind::NotFound)
        {
            // A broker that was busy for a moment is not given up at once.
            deleted = self.management.delete_vhost(&self.name).await;
        }
        match deleted {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::new(
                ErrorKind::Partial,
                format!(
                    "the temporary vhost '{}' is left: {}",
                    self.name,
                    error.message()
                ),
            )
            .hint(format!(
                "delete it: rabbitmqctl delete_vhost {}",
                self.name.shell_quoted()
            ))),
            Ok(()) | Err(_) => {
                tracing::info!(vhost = ?self.name, "the temporary vhost is deleted");
                Ok(())
            }
        }
    }

    /// Deletes it when something else is told already.
    pub(super) async fn delete_after_all(self) {
        if let Err(error) = self.delete().await {
            output::talk(&format!("mq: {}", output::printable(&error.to_string())));
        }
    }
}
