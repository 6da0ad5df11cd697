//! Leading bindings somewhere else without a gap: first bind, then unbind.

use super::migration::Migration;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::spellings;
use crate::topology::{Binding, Destination};

impl Migration<'_> {
    /// Leads bindings of the queue to the entry.
    pub(super) async fn move_bindings(&mut self, bindings: &[Binding]) -> Result<()> {
        for binding in bindings {
            let moved = self.names.to_entry(binding);
            self.replace(binding, &moved).await?;
        }
        Ok(())
    }

    /// Leads bindings of the entry to the queue.
    pub(super) async fn restore(&mut self, bindings: &[Binding]) -> Result<()> {
        for binding in bindings {
            let restored = self.names.to_queue(binding);
            self.replace(binding, &restored).await?;
        }
        Ok(())
    }

    /// A message that finds both ways is put into the queue once.
    async fn replace(&mut self, old: &Binding, new: &Binding) -> Result<()> {
        self.stop_asked()?;
        let (old, new) = self.spelled(old, new).await?;
        self.connection.bind(&new).await?;
        self.connection.unbind(&old).await
    }

    /// Both bindings with the types of arguments that the old one was made with.
    ///
    /// Unbinding with other types is accepted and does nothing, and the broker's
    /// answers do not show types; but its name for a binding holds a hash of
    /// them. So the new one is made in one spelling after the other until its
    /// name is that of the old one.
    async fn spelled(&mut self, old: &Binding, new: &Binding) -> Result<(Binding, Binding)> {
        let spellings = spellings(&old.arguments);
        if spellings.len() == 1 {
            return Ok((old.clone(), new.clone()));
        }
        let Some(key) = self.key_of(old) else {
            return Ok((old.clone(), new.clone()));
        };
        for arguments in spellings {
            let spelled = |binding: &Binding| Binding {
                arguments: arguments.clone(),
                ..binding.clone()
            };
            let before = self.keys_of(new);
            self.connection.bind(&spelled(new)).await?;
            self.bindings = self.management.routes(&self.vhost).await?.bindings;
            let after = self.keys_of(new);
            if after.contains(&key) {
                return Ok((spelled(old), spelled(new)));
            }
            // One that was there before was somebody's.
            if after != before {
                self.connection.unbind(&spelled(new)).await?;
            }
        }
        Err(Error::new(
            ErrorKind::Blocked,
            format!("binding {old}: the types of its arguments cannot be told, so it cannot be moved; no message was moved"),
        )
        .hint("bind the queue again with integer arguments of one type, unbind this one, and run this again"))
    }

    fn key_of(&self, binding: &Binding) -> Option<String> {
        self.keys_of(binding).into_iter().next()
    }

    /// The broker's names of all bindings that look like this one.
    fn keys_of(&self, binding: &Binding) -> Vec<String> {
        let destination: &Destination = &binding.destination;
        self.bindings
            .iter()
            .filter(|named| {
                named.binding.source == binding.source
                    && named.binding.destination == *destination
                    && named.binding.key == binding.key
                    && named.binding.arguments == binding.arguments
            })
            .map(|named| named.properties_key.clone())
            .collect()
    }
}
