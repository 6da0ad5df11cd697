//! What stands against a migration, seen before anything is touched.

use std::time::Duration;

use super::migration::{Migration, pause};
use crate::error::{Error, ErrorKind, Result};
use crate::field::FieldTable;
use crate::management::{ObservedQueue, Policies};
use crate::plan::{
    Existing, Feeder, Next, Seen, harmful_settings, migrate_objections, next, straight_feeders,
};
use crate::topology::{
    ApplyTo, Pattern, Policy, PolicyKind, PolicyName, Queue, QueueName, QueueType, Topology,
};

impl Migration<'_> {
    /// What stands against it, seen before anything is touched.
    pub(super) async fn survey(&mut self, seen: &Seen) -> Result<()> {
        match next(seen) {
            Next::Done => return Ok(()),
            Next::NoQueue => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("queue '{}' does not exist in vhost '{}'", self.names.queue, self.vhost),
                )
                .hint("`mq topology apply` creates what is missing; else check the name and the vhost"));
            }
            Next::OtherTarget => return Err(self.half_way_elsewhere()),
            Next::Take(_) => {}
        }
        let facts = self.connection.facts();
        let mut there = self.management.topology(&self.vhost, facts).await?;
        let observed = match seen.queue {
            None => None,
            Some(_) => Some(
                self.management
                    .queue(&self.vhost, &self.names.queue, facts)
                    .await?,
            ),
        };
        let policies = match self.management.policies(&self.vhost).await {
            Ok(policies) => Some(policies),
            // They may be read by policymakers only.
            Err(error) if error.kind() == ErrorKind::AccessRefused => None,
            Err(error) => return Err(error),
        };
        self.policies_unknown = policies.is_none();
        self.settle_kinds(seen, observed.as_ref()).await?;
        self.effective = self.with_policies(policies.as_ref(), observed.as_ref());
        let mut found = Vec::new();
        if let Some(policies) = &policies {
            there.policies.clone_from(policies);
            found.extend(self.harm(&there));
        }
        self.notes();
        if let Some(observed) = observed {
            self.report.changes = self.differences().await?;
            let status = self.connection.queue_status(&self.names.queue).await?;
            let ready = status.map_or(0, |status| u64::from(status.ready));
            self.showed_messages = observed.messages.is_some_and(|messages| messages > 0);
            let existing = Existing {
                messages: observed.messages.unwrap_or(0).max(ready)
                    + seen.temporary.old.unwrap_or(0)
                    + seen.temporary.new.unwrap_or(0),
                consumers: status.map_or(0, |status| u64::from(status.consumers)),
                kind: observed.kind,
                durable: observed.durable,
                auto_delete: observed.auto_delete,
                exclusive: observed.exclusive,
                arguments: observed.arguments,
                policy: observed.policy,
                message_bytes: observed.message_bytes,
            };
            found.extend(migrate_objections(
                &self.names,
                &self.effective,
                &existing,
                &there,
                self.options.with_consumers,
            ));
        }
        for feeder in self.feeders(&there).await? {
            found.push(format!(
                "queue '{}' holds {} messages whose dead letters go straight into it: while it is deleted and declared again they would vanish",
                feeder.queue, feeder.messages
            ));
        }
        if found.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{}' cannot be migrated now:\n{}",
                self.names.queue,
                found.join("\n")
            ),
        )
        .hint("no message was moved; see to what is named, then run this again"))
    }

    pub(super) fn half_way_elsewhere(&self) -> Error {
        Error::new(
            ErrorKind::Blocked,
            format!(
                "queue '{}' is half-way to other arguments than those of the file",
                self.names.queue
            ),
        )
        .hint("run this with the file of that migration first, then with this one")
    }

    /// Such a queue cannot even be looked at over AMQP.
    pub(super) async fn refuse_exclusive(&self) -> Result<()> {
        let facts = self.connection.facts();
        let queue = &self.names.queue;
        match self.management.queue(&self.vhost, queue, facts).await {
            Ok(observed) if observed.exclusive => Err(Error::new(
                ErrorKind::Blocked,
                format!(
                    "queue '{queue}' is exclusive: it belongs to a connection and goes with it"
                ),
            )
            .hint("declare another queue under another name")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The temporary queues are as safe as the queue is now, but for this: what
    /// waits is in a classic queue unless the queue has replicas. When a consumer
    /// of a quorum queue is killed while messages come in, one of them is handed
    /// out before the others (measured on 3.10.8, 4.0.5 and 4.3.6), and it hands
    /// out at the very moment at which it confirms, which leaves no gap to open
    /// the queue in. A classic queue keeps its order and hands out first.
    async fn settle_kinds(&mut self, seen: &Seen, observed: Option<&ObservedQueue>) -> Result<()> {
        if let Some(observed) = observed {
            self.old_kind = observed.kind.clone();
            if observed.kind == QueueType::Quorum && observed.members > 1 {
                self.new_kind = QueueType::Quorum;
            }
        }
        let facts = self.connection.facts();
        if seen.temporary.new.is_some() {
            let name = &self.names.new;
            self.new_kind = self.management.queue(&self.vhost, name, facts).await?.kind;
        }
        if seen.temporary.old.is_some() {
            let name = &self.names.old;
            self.old_kind = self.management.queue(&self.vhost, name, facts).await?.kind;
        }
        Ok(())
    }

    /// What a killed run held is back once none of its consumers is left: a
    /// queue forgets a consumer and takes its messages back in one step. Until
    /// then counts would say that there is nothing to move.
    pub(super) async fn let_the_dead_go(&self, seen: &Seen) -> Result<()> {
        for name in [&self.names.queue, &self.names.new, &self.names.old] {
            for _ in 0..50 {
                let status = self.connection.queue_status(name).await?;
                if status.is_none_or(|status| status.consumers == 0) {
                    break;
                }
                if *name == self.names.queue && self.options.with_consumers {
                    break;
                }
                pause(Duration::from_millis(100)).await;
            }
        }
        // A hold has no consumer any more: its messages are back when the counts
        // stand. While the queue is open its count never does, and nothing is held.
        let mut last = None;
        let mut steady = 0;
        for _ in 0..50 {
            pause(Duration::from_millis(200)).await;
            let held = if seen.entry_bound || self.options.with_consumers {
                None
            } else {
                self.ready(&self.names.queue).await?
            };
            let counts = (held, self.ready(&self.names.old).await?);
            steady = if last == Some(counts) { steady + 1 } else { 0 };
            last = Some(counts);
            if steady == 5 {
                break;
            }
        }
        Ok(())
    }

    /// The queue of the file with the policies of the broker in force. Where
    /// these cannot be read, those that the queue has now stand for them.
    fn with_policies(
        &self,
        policies: Option<&Policies>,
        observed: Option<&ObservedQueue>,
    ) -> Queue {
        let name = self.names.queue.clone();
        let mut topology = Topology::default();
        let mut wanted = self.wanted.clone();
        if let (None, Some(observed)) = (&wanted.kind, observed) {
            wanted.kind = Some(observed.kind.clone());
        }
        topology.queues.insert(name.clone(), wanted);
        match (policies, observed) {
            (Some(policies), _) => topology.policies.clone_from(policies),
            (None, Some(observed)) => {
                let all = Policy {
                    pattern: Pattern::observed(".*"),
                    apply_to: ApplyTo::All,
                    priority: 0,
                    definition: observed.policy.clone(),
                    description: None,
                };
                if let Ok(as_now) = PolicyName::new("as now") {
                    topology.policies.insert((PolicyKind::User, as_now), all);
                }
            }
            (None, None) => {}
        }
        topology
            .effective_queue(&name)
            .unwrap_or_else(|| self.wanted.clone())
    }

    /// Policies that would remove messages from the temporary queues.
    fn harm(&self, there: &Topology) -> Vec<String> {
        [
            (&self.names.new, &self.new_kind),
            (&self.names.old, &self.old_kind),
        ]
        .into_iter()
        .filter_map(|(name, kind)| {
            let settings = there.policy_settings(name, Some(kind));
            harmful(name.as_str(), &settings)
        })
        .collect()
    }

    /// Queues that are not empty and whose dead letters no binding can lead aside.
    pub(super) async fn feeders(&self, there: &Topology) -> Result<Vec<Feeder>> {
        let mut found = Vec::new();
        for queue in straight_feeders(&self.names, there) {
            let ready = self.ready(&queue).await?.unwrap_or(0);
            let counted = self
                .management
                .queue(&self.vhost, &queue, self.connection.facts())
                .await?
                .messages
                .unwrap_or(0);
            let messages = ready.max(counted);
            if messages > 0 {
                found.push(Feeder { queue, messages });
            }
        }
        Ok(found)
    }

    /// A killed run's lock goes as soon as the broker saw its connection end.
    pub(super) async fn take_lock(&self) -> Result<()> {
        for _ in 0..20 {
            if self.connection.lock(&self.names.lock).await? {
                return Ok(());
            }
            pause(Duration::from_millis(150)).await;
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!(
                "another migration of queue '{}' is running",
                self.names.queue
            ),
        )
        .hint(
            "wait for it; if its machine is gone, the broker drops its lock when heartbeats fail",
        ))
    }

    /// What whoever approves it should know.
    fn notes(&mut self) {
        self.report.notes.push(format!(
            "whoever publishes straight to queue '{}' through the default exchange must pause meanwhile",
            self.names.queue
        ));
        if self.effective.message_ttl.is_some() {
            self.report.notes.push(
                "the queue has a message TTL: the age of its messages starts anew".to_owned(),
            );
        }
    }

    /// What the policies of a temporary queue set, once the broker tells it.
    pub(super) async fn settings_of(&self, name: &QueueName) -> Result<FieldTable> {
        let facts = self.connection.facts();
        for _ in 0..40 {
            let observed = self.management.queue(&self.vhost, name, facts).await?;
            // Policies are shown with the first statistics, which take five seconds.
            if observed.messages.is_some() {
                return Ok(observed.policy);
            }
            pause(Duration::from_millis(500)).await;
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!("the management API does not tell which policies queue '{name}' has"),
        )
        .hint("use a user with the tag policymaker, or switch the broker's statistics on"))
    }
}

/// A harmful policy in words.
pub(super) fn harmful(name: &str, settings: &FieldTable) -> Option<String> {
    let settings = harmful_settings(settings);
    (!settings.is_empty()).then(|| {
        format!(
            "a policy sets {} for the temporary queue '{name}', which would remove messages from it: anchor its pattern",
            settings.join(", ")
        )
    })
}
