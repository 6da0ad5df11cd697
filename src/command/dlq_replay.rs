//! `mq dlq replay`: dead letters go back to be worked again.

mod ask;
mod edit;
mod moving;
mod order;
mod rules;

use std::sync::Arc;

use super::dlq_chosen::Chosen;
use super::session::Session;
use super::signals;
use crate::cli::{ReplayArgs, ReplayTarget};
use crate::deadletter::ReplayTo;
use crate::error::{Error, ErrorKind, Result};
use crate::exit::Exit;
use crate::output::{replay_json, replay_text};
use crate::query::Transform;
use crate::topology::{ExchangeName, QueueName, RoutingKey};

use ask::Person;
use edit::Editor;
pub(super) use order::{ReplayOrder, replay};
pub(super) use rules::Repair;

pub(super) async fn run(
    args: ReplayArgs,
    editor: Option<String>,
    session: &Session,
) -> anyhow::Result<Exit> {
    let queue = QueueName::of_existing(&args.queue)?;
    let to = target(&args, &queue)?;
    let chosen = Chosen::by(args.filter.as_deref())?;
    let repair = match (&args.transform, args.edit || args.interactive) {
        (Some(program), _) => Repair::By(Transform::parse(program)?),
        (None, true) if args.edit => Repair::InEditor(Editor::new(editor.clone())?),
        _ => Repair::None,
    };
    let person = args.interactive.then(|| Person::new(editor)).transpose()?;
    let vhost = session.vhost()?.clone();
    let mut signals = signals::listen()?;
    let order = ReplayOrder {
        vhost: vhost.clone(),
        queue: queue.clone(),
        to,
        chosen,
        repair,
        person,
        dry_run: args.dry_run,
        limit: args.limit,
        rate: args.rate,
        max_replays: args.max_replays,
        restore_expiration: args.restore_expiration,
        confirm_timeout: args.confirm_timeout,
        even_if_it_counts: args.even_if_it_counts,
        looked: Arc::default(),
    };
    let replayed = replay(order, session, &mut signals).await?;
    let report = &replayed.report;
    let back = |to: &QueueName| replayed.comes_back(to);
    session.report(
        || replay_text(&queue, report, args.dry_run, &back),
        || replay_json(&vhost, &queue, report, args.dry_run, &back),
    )?;
    match replayed.ended? {
        Some(signal) => Ok(Exit::Signal(signal)),
        None => Ok(replayed.report.exit()),
    }
}

fn target(args: &ReplayArgs, queue: &QueueName) -> Result<ReplayTo> {
    let into_itself = |to: &QueueName| {
        if to == queue {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("queue '{queue}' is where the messages are"),
            )
            .hint("name another queue"));
        }
        Ok(())
    };
    Ok(match (&args.exchange, &args.to_queue, args.to) {
        (Some(exchange), _, _) => {
            let exchange = ExchangeName::new(exchange.clone())?;
            let key = args.key.clone().map(RoutingKey::new).transpose()?;
            ReplayTo::Exchange(exchange, key)
        }
        (None, Some(to), _) => {
            let to = QueueName::of_existing(to)?;
            into_itself(&to)?;
            ReplayTo::Queue(to)
        }
        (None, None, ReplayTarget::Original) => ReplayTo::Original,
        (None, None, ReplayTarget::Queue) => ReplayTo::OriginQueue,
    })
}
