//! `mq topology export`: the broker as a file.

use super::session::Session;
use crate::cli::ExportArgs;
use crate::error::{Error, ErrorKind};
use crate::exit::Exit;
use crate::output;
use crate::topologyfile::export;

pub(super) async fn run(args: &ExportArgs, session: &Session) -> anyhow::Result<Exit> {
    let vhost = session.vhost()?;
    let management = session.management()?;
    let facts = management.facts().await?;
    let mut topology = management.declared(vhost, &facts).await?;
    if args.users {
        topology.users = management.users().await?;
        topology.permissions = management.permissions(vhost).await?;
        topology.topic_permissions = management.topic_permissions(vhost).await?;
    }
    let mut unread = Vec::new();
    match management.vhost_settings(vhost).await {
        Ok(settings) => topology.vhost_settings = Some(settings),
        Err(error) if error.kind() == ErrorKind::AccessRefused => unread.push(format!(
            "settings of the vhost, which only an administrator may read ({})",
            error.message()
        )),
        Err(error) => return Err(error.into()),
    }
    match management.policies(vhost).await {
        Ok(policies) => topology.policies = policies,
        Err(error) if error.kind() == ErrorKind::AccessRefused => unread.push(format!(
            "policies, which only a policymaker may read ({})",
            error.message()
        )),
        Err(error) => return Err(error.into()),
    }
    let exported = export(&topology).map_err(|why| {
        Error::new(
            ErrorKind::Internal,
            format!("the topology of vhost '{vhost}' cannot be written: {why}"),
        )
    })?;
    output::data(&exported.text)?;
    for left_out in exported.left_out.iter().chain(&unread) {
        output::talk(&format!("mq: left out: {}", output::printable(left_out)));
    }
    Ok(if exported.left_out.is_empty() && unread.is_empty() {
        Exit::Done
    } else {
        Exit::Partial
    })
}
