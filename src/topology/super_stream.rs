//! Super streams: one stream in partitions, laid out as RabbitMQ's own tools do
//! (`rabbitmq-streams add_super_stream`), so that its clients find them.

use crate::error::Result;
use crate::field::{FieldTable, FieldValue};
use crate::topology::{
    Binding, Destination, Exchange, ExchangeName, ExchangeType, LeaderLocator, Queue, QueueName,
    RoutingKey, Topology,
};

/// A super stream as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct SuperStream {
    /// The name clients use; that of the exchange too.
    pub name: ExchangeName,
    /// The keys of its partitions, in their order: `0`, `1`, … or names.
    pub keys: Vec<RoutingKey>,
    /// What each partition is declared with.
    pub partition: Queue,
}

impl SuperStream {
    /// The plain objects: the direct exchange `NAME`, a stream `NAME-KEY` for
    /// each key, and their bindings in order.
    ///
    /// # Errors
    /// When one of the names becomes longer than 255 bytes.
    pub fn expand(self) -> Result<Topology> {
        let mut topology = Topology::default();
        let mut exchange = Exchange::durable(ExchangeType::Direct);
        exchange
            .arguments
            .insert("x-super-stream".to_owned(), FieldValue::Bool(true));
        for (order, key) in (0_i64..).zip(self.keys) {
            let queue = QueueName::new(format!("{}-{key}", self.name))?;
            topology.bindings.push(Binding {
                source: self.name.clone(),
                destination: Destination::Queue(queue.clone()),
                key,
                arguments: FieldTable::from([(
                    "x-stream-partition-order".to_owned(),
                    FieldValue::I64(order),
                )]),
            });
            // As the tools do: partitions on one node would gain nothing.
            let partition = Queue {
                leader_locator: self
                    .partition
                    .leader_locator
                    .or(Some(LeaderLocator::Balanced)),
                ..self.partition.clone()
            };
            topology.queues.insert(queue, partition);
        }
        topology.exchanges.insert(self.name, exchange);
        Ok(topology)
    }
}
