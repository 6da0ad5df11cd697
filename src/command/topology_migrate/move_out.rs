//! The steps that change what exists, and the way out of the queue.

use std::time::Duration;

use super::fill::End;
use super::migration::{Migration, pause};
use super::survey::harmful;
use crate::amqp::{Copier, Declared, Intake, QueueGuard};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{MigrateStep, Seen};
use crate::topology::{
    DeliveryLimit, Exchange, ExchangeName, ExchangeType, Queue, QueueName, QueueType,
};

/// Statistics come every five seconds, and on 3.10.8 a count was seen 6.3
/// seconds after the fact.
const STATISTICS_ARE_CURRENT: Duration = Duration::from_secs(7);

/// How long messages that somebody holds are waited for.
const HELD_BY_OTHERS: Duration = Duration::from_mins(1);

impl Migration<'_> {
    /// Takes one step; gives the messages that it moved.
    pub(super) async fn take(&mut self, step: &MigrateStep, seen: &Seen) -> Result<u64> {
        match step {
            MigrateStep::Declare => self.declare(seen).await?,
            MigrateStep::Open => self.connection.bind(&self.names.entry_binding()).await?,
            MigrateStep::MoveBindings(bindings) => self.move_bindings(bindings).await?,
            MigrateStep::Close | MigrateStep::Detach => {
                self.connection.unbind(&self.names.entry_binding()).await?;
            }
            MigrateStep::Empty => return self.empty().await,
            MigrateStep::Delete => self.replace_queue().await?,
            MigrateStep::Create => self.create().await?,
            MigrateStep::BindBack => {
                self.declare_exchange(&self.names.back, None).await?;
                self.connection.bind(&self.names.back_binding()).await?;
            }
            MigrateStep::Refill => return self.refill().await,
            MigrateStep::CatchUp => return self.catch_up(seen).await,
            MigrateStep::TurnBack => return self.turn_back().await,
            MigrateStep::Restore(bindings) => self.restore(bindings).await?,
            MigrateStep::Clear => self.clear(seen).await?,
        }
        Ok(0)
    }

    /// The entry comes last: it is what later steps go by.
    async fn declare(&mut self, seen: &Seen) -> Result<()> {
        let there = &seen.temporary;
        if seen.queue.is_some_and(|queue| queue.differs) {
            self.try_arguments().await?;
        }
        if !there.aside {
            self.declare_exchange(&self.names.aside, None).await?;
        }
        if !there.out {
            self.declare_exchange(&self.names.out, None).await?;
        }
        if there.new.is_none() {
            self.declare_temporary(&self.names.new, &self.new_kind)
                .await?;
        }
        if there.old.is_none() {
            self.declare_temporary(&self.names.old, &self.old_kind)
                .await?;
        }
        self.connection.bind(&self.names.aside_binding()).await?;
        self.connection.bind(&self.names.out_binding()).await?;
        if self.policies_unknown {
            for name in [self.names.new.clone(), self.names.old.clone()] {
                let settings = self.settings_of(&name).await?;
                if let Some(harm) = harmful(name.as_str(), &settings) {
                    return Err(Error::new(ErrorKind::Blocked, harm)
                        .hint("no message was moved; change the policy, then run this again"));
                }
            }
        }
        if !there.entry {
            let aside = self.names.aside.clone();
            self.declare_exchange(&self.names.entry, Some(aside))
                .await?;
        }
        Ok(())
    }

    /// Whether the broker takes the arguments must be known before the queue is gone.
    async fn try_arguments(&self) -> Result<()> {
        let trial = &self.names.trial;
        self.connection
            .delete_queue(trial, QueueGuard::None)
            .await?;
        let declared = self.connection.declare_queue(trial, &self.wanted).await?;
        self.connection
            .delete_queue(trial, QueueGuard::None)
            .await?;
        match declared {
            Declared::AsAsked => Ok(()),
            Declared::Refused(said) => Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the broker does not take the arguments of queue '{}': {said}",
                    self.names.queue
                ),
            )
            .hint("correct them in the file; nothing was changed")),
        }
    }

    /// Fanout, so that a copy keeps its routing key and still finds its queue.
    async fn declare_exchange(
        &self,
        name: &ExchangeName,
        alternate: Option<ExchangeName>,
    ) -> Result<()> {
        let exchange = Exchange {
            alternate,
            ..Exchange::durable(ExchangeType::Fanout)
        };
        let declared = self.connection.declare_exchange(name, &exchange).await?;
        Self::must_be_ours(&format!("exchange '{name}'"), declared)
    }

    /// No TTL and no limits; but a message that expires by its own `expiration`
    /// while it waits must still become a dead letter where the queue makes one.
    async fn declare_temporary(&self, name: &QueueName, kind: &QueueType) -> Result<()> {
        let queue = Queue {
            kind: Some(kind.clone()),
            delivery_limit: (*kind == QueueType::Quorum).then_some(DeliveryLimit::Unlimited),
            dead_lettering: self.effective.dead_lettering.clone(),
            ..Queue::default()
        };
        let declared = self.connection.declare_queue(name, &queue).await?;
        Self::must_be_ours(&format!("queue '{name}'"), declared)
    }

    fn must_be_ours(what: &str, declared: Declared) -> Result<()> {
        match declared {
            Declared::AsAsked => Ok(()),
            Declared::Refused(said) => Err(Error::new(
                ErrorKind::Blocked,
                format!("{what} is needed for the migration but cannot be declared: {said}"),
            )
            .hint("if somebody else's object has that name, delete or rename it")),
        }
    }

    /// Moves what the queue holds into the old queue.
    async fn empty(&mut self) -> Result<u64> {
        let (from, to) = (self.names.queue.clone(), self.names.old.clone());
        let mut intake = Intake::open(self.connection, &from).await?;
        let mut copier = Copier::open(self.connection, &self.names.out, &self.user).await?;
        let moved = self
            .pour(&mut intake, &mut copier, &from, End::Of(&to))
            .await;
        self.report.user_ids_dropped += copier.user_ids_dropped();
        intake.close().await?;
        moved
    }

    /// Deletes the queue and declares the new one at once. Nothing but a publish
    /// through the default exchange can come between.
    async fn replace_queue(&mut self) -> Result<()> {
        let facts = self.connection.facts();
        let there = self.management.topology(&self.vhost, facts).await?;
        if let Some(feeder) = self.feeders(&there).await?.first() {
            return Err(Error::new(
                ErrorKind::Partial,
                format!(
                    "queue '{}' holds {} messages whose dead letters go straight into queue '{}'",
                    feeder.queue, feeder.messages, self.names.queue
                ),
            )
            .hint("wait until it is empty"));
        }
        if !self.nobody_holds_any().await? {
            return Ok(());
        }
        let queue = &self.names.queue;
        let Some(status) = self.connection.queue_status(queue).await? else {
            return self.create().await;
        };
        if status.ready > 0 {
            return Ok(());
        }
        if status.consumers > 0 && !self.options.with_consumers {
            return Err(Error::new(
                ErrorKind::Partial,
                format!("queue '{queue}' has {} consumers now", status.consumers),
            )
            .hint("stop them, or give --with-consumers"));
        }
        let kind = self.management.queue(&self.vhost, queue, facts).await?.kind;
        // Only classic queues can guard themselves.
        let guard = if kind == QueueType::Classic && status.consumers == 0 {
            QueueGuard::EmptyAndUnused
        } else {
            QueueGuard::None
        };
        match self.connection.delete_queue(queue, guard).await {
            Ok(_) => self.create().await,
            // It came into use this very moment: the next look says what to do.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until no client holds an unacknowledged message of the queue, for it
    /// would be gone with the queue. Gives `false` when messages came back.
    ///
    /// Only the statistics tell, and they are old: a zero counts when they showed
    /// more before, or when it lasted long enough.
    async fn nobody_holds_any(&mut self) -> Result<bool> {
        let queue = self.names.queue.clone();
        let pace = Duration::from_millis(250);
        let mut quiet = Duration::ZERO;
        let mut waited = Duration::ZERO;
        let mut held = None;
        while waited < HELD_BY_OTHERS {
            self.stop_asked()?;
            if self.ready(&queue).await?.is_none_or(|ready| ready > 0) {
                return Ok(false);
            }
            let facts = self.connection.facts();
            let observed = self.management.queue(&self.vhost, &queue, facts).await?;
            held = observed.unacknowledged;
            if observed.messages == Some(0) && held == Some(0) {
                if self.showed_messages || quiet >= STATISTICS_ARE_CURRENT {
                    return Ok(true);
                }
                quiet += pace;
            } else {
                self.showed_messages |= observed.messages.is_some_and(|messages| messages > 0);
                quiet = Duration::ZERO;
            }
            pause(pace).await;
            waited += pace;
        }
        let who = held.map_or_else(
            || "the broker does not tell how many messages are out for delivery".to_owned(),
            |held| format!("{held} messages of it are out for delivery to somebody"),
        );
        Err(Error::new(
            ErrorKind::Partial,
            format!("queue '{queue}' cannot be deleted: {who}"),
        )
        .hint("they would be lost with the queue; stop who took them, or switch the broker's statistics on"))
    }

    async fn create(&self) -> Result<()> {
        let queue = &self.names.queue;
        match self.connection.declare_queue(queue, &self.wanted).await? {
            Declared::AsAsked => Ok(()),
            Declared::Refused(said) => Err(Error::new(
                ErrorKind::Partial,
                format!("queue '{queue}' cannot be declared: {said}"),
            )
            .hint("somebody else declared it meanwhile, or the file was changed; the messages wait in the temporary queues")),
        }
    }

    /// Deletes what was for the migration only. The binding of the way back goes
    /// last: it says that the queue is filled.
    async fn clear(&mut self, seen: &Seen) -> Result<()> {
        if let Some(waiting) = self.waiting.take() {
            waiting.close().await?;
        }
        let there = &seen.temporary;
        if there.entry {
            self.connection
                .delete_unused_exchange(&self.names.entry)
                .await?;
        }
        for (queue, kind, exchange) in [
            (&self.names.new, &self.new_kind, &self.names.aside),
            (&self.names.old, &self.old_kind, &self.names.out),
        ] {
            if !self.delete_if_empty(queue, kind).await? {
                // The next look finds what came into it.
                return Ok(());
            }
            self.connection.delete_unused_exchange(exchange).await?;
        }
        self.connection.unbind(&self.names.back_binding()).await?;
        self.connection
            .delete_unused_exchange(&self.names.back)
            .await
    }

    async fn delete_if_empty(&self, queue: &QueueName, kind: &QueueType) -> Result<bool> {
        let Some(status) = self.connection.queue_status(queue).await? else {
            return Ok(true);
        };
        if status.ready > 0 {
            return Ok(false);
        }
        let guard = match kind {
            QueueType::Classic => QueueGuard::EmptyAndUnused,
            QueueType::Quorum | QueueType::Stream | QueueType::Other(_) => QueueGuard::None,
        };
        match self.connection.delete_queue(queue, guard).await {
            Ok(_) => Ok(true),
            // Something came into it this very moment.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(false),
            Err(error) => Err(error),
        }
    }
}
