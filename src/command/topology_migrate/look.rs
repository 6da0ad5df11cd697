//! What is there, as far as the migration is about it.

use super::migration::Migration;
use crate::error::Result;
use crate::field::FieldTable;
use crate::management::NamedBinding;
use crate::plan::{Seen, SeenQueue, Temporary, queue_differences};
use crate::topology::{Destination, Queue, QueueName};

impl Migration<'_> {
    /// Looks at everything; changes nothing.
    pub(super) async fn look(&mut self) -> Result<Seen> {
        let routes = self.management.routes(&self.vhost).await?;
        self.bindings.clone_from(&routes.bindings);
        let names = &self.names;
        let there = |binding| routes.bindings.iter().any(|named| is_same(named, &binding));
        let leading_to = |destination: &Destination| {
            routes
                .bindings
                .iter()
                .filter(|named| named.binding.destination == *destination)
                .map(|named| named.binding.clone())
                .filter(|binding| binding.source != names.entry && binding.source != names.back)
                .collect()
        };
        let queue = match self.ready(&names.queue).await? {
            None => None,
            Some(ready) => Some(SeenQueue {
                differs: !self.differences().await?.is_empty(),
                ready,
            }),
        };
        Ok(Seen {
            queue,
            feeders: leading_to(&Destination::Queue(names.queue.clone())),
            moved: leading_to(&Destination::Exchange(names.entry.clone())),
            temporary: Temporary {
                entry: routes.exchanges.contains(&names.entry),
                aside: routes.exchanges.contains(&names.aside),
                out: routes.exchanges.contains(&names.out),
                back: routes.exchanges.contains(&names.back),
                new: self.ready(&names.new).await?,
                old: self.ready(&names.old).await?,
            },
            entry_bound: there(names.entry_binding()),
            back_bound: there(names.back_binding()),
            ways_bound: there(names.aside_binding()) && there(names.out_binding()),
        })
    }

    /// Ready messages, as AMQP tells them at once; `None`: no such queue.
    pub(super) async fn ready(&self, queue: &QueueName) -> Result<Option<u64>> {
        let status = self.connection.queue_status(queue).await?;
        Ok(status.map(|status| u64::from(status.ready)))
    }

    /// What the file would change about the queue, in words.
    pub(super) async fn differences(&self) -> Result<Vec<String>> {
        let facts = self.connection.facts();
        let observed = self
            .management
            .queue(&self.vhost, &self.names.queue, facts)
            .await?;
        let there = Queue {
            durable: observed.durable,
            auto_delete: observed.auto_delete,
            ..Queue::default()
        };
        let arguments: FieldTable = self.wanted.declared_arguments(facts);
        let differences = queue_differences(&self.wanted, &arguments, &there, &observed.arguments);
        Ok(differences.iter().map(ToString::to_string).collect())
    }
}

/// Temporary bindings have an empty key and no arguments.
fn is_same(named: &NamedBinding, binding: &crate::topology::Binding) -> bool {
    named.binding == *binding
}
