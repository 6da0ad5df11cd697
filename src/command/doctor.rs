//! `mq doctor`: the broker as it is now, judged before a release.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, future, stream};

use super::dlq_queues::{now, oldest};
use super::session::Session;
use crate::broker::BrokerFacts;
use crate::cli::DoctorArgs;
use crate::deadletter::{PeekRisk, peek_risk};
use crate::doctor::{
    BrokerSeen, Clients, NotTold, Report, Status, Told, VhostContents, VhostSeen, examine,
};
use crate::error::{ErrorKind, Result};
use crate::exit::Exit;
use crate::field::FieldTable;
use crate::management::Management;
use crate::output::{
    self, Examined, Format, doctor_check_json, doctor_json, doctor_junit, doctor_text,
};
use crate::printable::shell_word;
use crate::topology::{QueueName, VhostName};

/// Looks under way at a time.
const LOOKS: usize = 8;

pub(super) async fn run(args: &DoctorArgs, session: &Session) -> anyhow::Result<Exit> {
    let management = session.management()?;
    let facts = management.facts().await?;
    let vhosts = if args.all_vhosts {
        management.vhost_names().await?
    } else {
        vec![session.vhost()?.clone()]
    };
    let broker = broker(&management, &facts).await?;
    let only = (!args.all_vhosts).then(|| session.vhost()).transpose()?;
    let contents = match only {
        // One vhost that may not be read is no vhost that was judged.
        Some(vhost) => vec![Ok(management.contents(vhost, &facts).await?)],
        None => all_contents(&management, &vhosts, &facts).await?,
    };
    let clients = clients(&management, &broker, only).await?;
    let mut seen = Vec::new();
    for (name, mut contents) in vhosts.into_iter().zip(contents) {
        if let Ok(contents) = &mut contents {
            contents.oldest_seconds = ages(&management, &name, contents, &facts, broker.now).await;
        }
        let of_vhost = |all: &BTreeMap<String, Clients>| all.get(name.as_str()).cloned();
        seen.push(VhostSeen {
            clients: clients
                .as_ref()
                .map(|all| of_vhost(all).unwrap_or_default())
                .map_err(Clone::clone),
            contents,
            name,
        });
    }
    let examined = Examined {
        report: examine(&broker, &seen, &args.skip),
        broker,
        vhosts: seen.into_iter().map(|vhost| vhost.name).collect(),
    };
    let written = args.junit.as_deref().map_or(Ok(()), |path| {
        output::write_junit(path, &doctor_junit(&examined))
    });
    match session.format {
        Format::Table => session.say(|| doctor_text(&examined))?,
        Format::Json => output::data(&output::json_pretty(&doctor_json(&examined)))?,
        Format::JsonLines => {
            for check in &examined.report.checks {
                output::data(&output::json_line(&doctor_check_json(check)))?;
            }
        }
    }
    written?;
    Ok(exit(args, &examined.report))
}

fn exit(args: &DoctorArgs, report: &Report) -> Exit {
    if !args.check {
        Exit::Done
    } else if report.has(Status::Fail) || args.strict && report.has(Status::Warn) {
        Exit::No
    } else if report.has(Status::Unknown) {
        Exit::Partial
    } else {
        Exit::Done
    }
}

async fn broker(management: &Management, facts: &BrokerFacts) -> Result<BrokerSeen> {
    let (cluster, counts_clients) = management.counting().await?;
    Ok(BrokerSeen {
        facts: facts.clone(),
        cluster,
        counts_clients,
        nodes: told(management.nodes().await, "monitoring", management)?,
        deprecated: told(
            management.deprecated_features().await,
            "monitoring",
            management,
        )?,
        now: now(),
    })
}

/// A vhost that may not be read, or is gone, leaves the others to be judged.
async fn all_contents(
    management: &Management,
    vhosts: &[VhostName],
    facts: &BrokerFacts,
) -> Result<Vec<Told<VhostContents>>> {
    let mut all = Vec::new();
    for vhost in vhosts {
        let found = management.contents(vhost, facts).await;
        all.push(told_of_vhost(found, vhost)?);
    }
    Ok(all)
}

async fn clients(
    management: &Management,
    broker: &BrokerSeen,
    only: Option<&VhostName>,
) -> Result<Told<BTreeMap<String, Clients>>> {
    let found = match management.must_see_all_clients().await {
        Ok(()) => management.clients(only).await,
        Err(error) => Err(error),
    };
    match found {
        // A broker without statistics refuses these lists (400, measured on 4.0.5).
        Err(error) if !broker.counts_clients && error.kind() == ErrorKind::InvalidInput => {
            Ok(Err(NotTold {
                why: error.message().to_owned(),
                fix: "switch statistics on for the time of the check".to_owned(),
            }))
        }
        found => told(found, "monitoring", management),
    }
}

/// Refusals are answers; everything else ends the command.
fn told<T>(found: Result<T>, tag: &str, management: &Management) -> Result<Told<T>> {
    let user = &management.endpoint().user;
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(error) if error.kind() == ErrorKind::AccessRefused => Ok(Err(NotTold {
            why: error.message().to_owned(),
            fix: format!(
                "give user '{user}' the tag {tag}: rabbitmqctl set_user_tags {} {tag}",
                shell_word(user)
            ),
        })),
        Err(error) => Err(error),
    }
}

fn told_of_vhost<T>(found: Result<T>, vhost: &VhostName) -> Result<Told<T>> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(error) if matches!(error.kind(), ErrorKind::AccessRefused | ErrorKind::NotFound) => {
            Ok(Err(NotTold {
                why: error.message().to_owned(),
                fix: format!(
                    "the user needs the tag monitoring and permissions in the vhost: rabbitmqctl set_permissions --vhost {} USER '^$' '^$' '.*'",
                    vhost.shell_quoted()
                ),
            }))
        }
        Err(error) => Err(error),
    }
}

/// How long ago the first message of each dead-letter queue died, where a look
/// costs nothing and takes nothing from a consumer.
async fn ages(
    management: &Management,
    vhost: &VhostName,
    contents: &VhostContents,
    facts: &BrokerFacts,
    now: u64,
) -> BTreeMap<QueueName, u64> {
    let holds_back = |table: &FieldTable, name: &str| table.contains_key(name);
    let may_look = contents.resting.queues.keys().filter(|name| {
        contents.queues.get(*name).is_some_and(|seen| {
            let policy = seen.policy.as_ref();
            seen.messages > Some(0)
                && seen.consumers == Some(0)
                && peek_risk(&seen.kind, seen.limit, facts) == PeekRisk::Safe
                && !holds_back(&seen.arguments, "x-delayed-retry-type")
                && !policy.is_none_or(|policy| holds_back(policy, "delayed-retry-type"))
        })
    });
    let looks = may_look.map(|name| async move {
        let died = oldest(management, vhost, name).await?;
        Some((name.clone(), now.saturating_sub(died)))
    });
    stream::iter(looks)
        .buffered(LOOKS)
        .filter_map(future::ready)
        .collect()
        .await
}
