//! `mq topology export`: the broker as a file.

use super::session::Session;
use crate::error::{Error, ErrorKind};
use crate::exit::Exit;
use crate::output;
use crate::topologyfile::export;

pub(super) async fn run(session: &Session) -> anyhow::Result<Exit> {
    let vhost = session.vhost()?;
    let management = session.management()?;
    let topology = management.topology(vhost).await?;
    let exported = export(&topology).map_err(|why| {
        Error::new(
            ErrorKind::Internal,
            format!("the topology of vhost '{vhost}' cannot be written: {why}"),
        )
    })?;
    output::data(&exported.text)?;
    let policies = management.policy_names(vhost).await?;
    if !policies.is_empty() {
        output::talk(&format!(
            "mq: not exported, because the file format has no policies yet: {}",
            output::one_line(&policies.join(", "), 400)
        ));
    }
    for left_out in &exported.left_out {
        output::talk(&format!("mq: left out: {}", output::printable(left_out)));
    }
    Ok(if exported.left_out.is_empty() {
        Exit::Done
    } else {
        Exit::Partial
    })
}
