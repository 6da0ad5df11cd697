//! The names of a migration's temporary objects, derived from the queue's.

use crate::error::{Error, ErrorKind, Result};
use crate::topology::{
    Binding, Destination, ExchangeName, MAX_NAME_BYTES, Name, QueueName, RoutingKey,
};

/// The longest of the endings.
const LONGEST: &str = ".mq-migrate.aside";

/// All names of one migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrateNames {
    /// The queue that is migrated.
    pub queue: QueueName,
    /// Where the queue's bindings lead meanwhile.
    pub entry: ExchangeName,
    /// The alternate exchange of the entry.
    pub aside: ExchangeName,
    /// Copies for the old queue go through it.
    pub out: ExchangeName,
    /// Copies for the queue itself go through it.
    pub back: ExchangeName,
    /// What is published meanwhile.
    pub new: QueueName,
    /// What the queue held.
    pub old: QueueName,
    /// Declared and deleted at once, to see whether the broker takes the arguments.
    pub trial: QueueName,
    /// Exclusive to the connection of the run: two runs at once cannot be.
    pub lock: QueueName,
}

impl MigrateNames {
    /// The names for a queue.
    ///
    /// # Errors
    /// [`ErrorKind::Blocked`] when the queue's own name leaves no room for them.
    pub fn of(queue: &QueueName) -> Result<Self> {
        let room = MAX_NAME_BYTES - LONGEST.len();
        if queue.as_str().len() > room {
            return Err(Error::new(
                ErrorKind::Blocked,
                format!(
                    "the name of queue '{queue}' has {} bytes: the names of the temporary objects need {} more, and AMQP allows {MAX_NAME_BYTES}",
                    queue.as_str().len(),
                    LONGEST.len()
                ),
            )
            .hint(format!("only queues with names of up to {room} bytes can be migrated")));
        }
        Ok(Self {
            queue: queue.clone(),
            entry: with(queue, "")?,
            aside: with(queue, ".aside")?,
            out: with(queue, ".out")?,
            back: with(queue, ".back")?,
            new: with(queue, ".new")?,
            old: with(queue, ".old")?,
            trial: with(queue, ".trial")?,
            lock: with(queue, ".lock")?,
        })
    }

    /// The binding that lets messages from the entry into the queue.
    #[must_use]
    pub fn entry_binding(&self) -> Binding {
        binding(&self.entry, &self.queue)
    }

    /// From the alternate exchange to its queue.
    #[must_use]
    pub fn aside_binding(&self) -> Binding {
        binding(&self.aside, &self.new)
    }

    /// From the way out to the old queue.
    #[must_use]
    pub fn out_binding(&self) -> Binding {
        binding(&self.out, &self.old)
    }

    /// Changes nothing, for the way out is bound already: a mark that messages
    /// are about to be put into the old queue which stand before others.
    #[must_use]
    pub fn late_binding(&self) -> Binding {
        Binding {
            key: RoutingKey::of_queue(&self.old),
            ..self.out_binding()
        }
    }

    /// From the way back to the queue.
    #[must_use]
    pub fn back_binding(&self) -> Binding {
        binding(&self.back, &self.queue)
    }

    /// The same binding, leading to the entry.
    #[must_use]
    pub fn to_entry(&self, feeder: &Binding) -> Binding {
        Binding {
            destination: Destination::Exchange(self.entry.clone()),
            ..feeder.clone()
        }
    }

    /// The same binding, leading to the queue.
    #[must_use]
    pub fn to_queue(&self, moved: &Binding) -> Binding {
        Binding {
            destination: Destination::Queue(self.queue.clone()),
            ..moved.clone()
        }
    }
}

fn with<K: crate::topology::NameKind>(queue: &QueueName, ending: &str) -> Result<Name<K>> {
    Name::new(format!("{queue}.mq-migrate{ending}"))
}

fn binding(source: &ExchangeName, queue: &QueueName) -> Binding {
    Binding {
        source: source.clone(),
        destination: Destination::Queue(queue.clone()),
        key: RoutingKey::empty(),
        arguments: crate::field::FieldTable::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_leaves_room_is_taken_and_the_next_is_refused() {
        let of = |bytes: usize| MigrateNames::of(&QueueName::new("q".repeat(bytes)).expect("name"));
        let names = of(238).expect("names");
        assert_eq!(names.aside.as_str().len(), 255);
        let error = of(239).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Blocked);
        assert!(error.to_string().contains("up to 238 bytes"), "{error}");
    }
}
