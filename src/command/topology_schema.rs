//! `mq topology schema`: the file format for editors.

use crate::exit::Exit;
use crate::output;
use crate::topologyfile;

pub(super) fn run() -> anyhow::Result<Exit> {
    output::data(&output::json_pretty(&topologyfile::schema()))?;
    Ok(Exit::Done)
}
