//! `mq topology route`: where a message goes, by the files alone.

use super::{headers, print_json, topology_files};
use crate::broker::BrokerFacts;
use crate::cli::{GlobalArgs, OutputFormat, RouteArgs};
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{self, outlook_json, outlook_text};
use crate::routing::{Message, Outlook, Router};
use crate::topology::{ExchangeName, RoutingKey, Topology};
use crate::topologyfile::closest;

pub(super) fn run(args: &RouteArgs, global: &GlobalArgs) -> anyhow::Result<Exit> {
    let exchange = ExchangeName::new(&args.exchange)?;
    let key = RoutingKey::new(&args.key)?;
    let message = Message::new(exchange, key, headers::table(&args.headers)?);
    let facts = args.for_version.as_ref();
    let facts = facts.map(|version| BrokerFacts::new("RabbitMQ", version));
    let topology = topology_files::load_named(&args.files)?;
    must_take_it(&message.exchange, &topology)?;
    let router = Router::on(&topology, facts.as_ref());
    let outlook = router.outlook(message, facts.as_ref());
    match global.output {
        OutputFormat::Table => output::data(&outlook_text(&outlook, &topology))?,
        format @ (OutputFormat::Json | OutputFormat::Jsonl) => {
            print_json(format, &outlook_json(&outlook, &topology))?;
        }
    }
    Ok(verdict(&outlook)?)
}

/// A broker would refuse a message to any other exchange.
fn must_take_it(exchange: &ExchangeName, topology: &Topology) -> Result<()> {
    if topology.elsewhere.contains(exchange.as_str()) {
        return Ok(());
    }
    let Some(declared) = topology.exchange(exchange) else {
        let names = topology.exchanges.keys().map(ExchangeName::as_str);
        let near = closest(exchange.as_str(), names);
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("the files declare no exchange '{exchange}'"),
        )
        .hint(match near {
            Some(near) => format!("did you mean '{near}'?"),
            None => "declare it, or give the file that does as well".to_owned(),
        }));
    };
    if declared.internal {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!("exchange '{exchange}' is internal: a broker refuses what is published to it"),
        )
        .hint("ask with the exchange that leads to it"));
    }
    Ok(())
}

fn verdict(outlook: &Outlook<'_>) -> Result<Exit> {
    if !outlook.reached.is_empty() {
        return Ok(Exit::Done);
    }
    let message = &outlook.message;
    let key = message.keys.first().map_or("", RoutingKey::as_str);
    let error = Error::new(
        ErrorKind::Unroutable,
        format!(
            "a message to exchange '{}' with key '{key}' reaches no queue",
            message.exchange
        ),
    );
    Err(if !outlook.unknown.is_empty() {
        error.hint("not all of its way is known: see above")
    } else if message.exchange.is_empty() {
        error.hint("the default exchange leads to the queue that the key names; the files declare no such queue")
    } else {
        error.hint("bind a queue to the exchange with a matching key, give the exchange an `alternate`, or check the key")
    })
}
