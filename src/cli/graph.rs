//! `mq topology graph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::Files;

/// Draw what leads where: exchanges, queues, bindings, dead letters and retries.
///
/// Policies count: a queue's dead letters go where they really go. What is named
/// and declared nowhere is drawn as missing. With --live the broker is drawn as it
/// is, with the messages and consumers of every queue; with files too, the files
/// are drawn with the broker's numbers. Dead-letter queues that hold messages
/// stand out. What a broker does not count is unknown, not 0.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology graph topologies/orders.yaml
  mq topology graph --as svg topologies/ > topology.svg
  mq topology graph --as dot topologies/ | dot -Tpdf > topology.pdf
  mq topology graph --live --vhost shop --as svg > shop.svg
  mq topology graph --live --output json | jq '.nodes[] | select(.role == \"dead_letter\")'

Exit codes:
  0 drawn
  65 a file is wrong, or the graph is too large for --as svg
  66 a file is missing
  69 with --live: management API not reachable
  77 with --live: login or permission refused")]
pub struct GraphArgs {
    /// Topology files; a directory stands for its *.yaml and *.yml, `-` for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["file_flag", "live"])]
    pub files: Vec<PathBuf>,

    /// The same as FILE
    #[arg(short = 'f', long = "file", value_name = "FILE", id = "file_flag")]
    pub flagged: Vec<PathBuf>,

    /// Put this before the name of everything the files declare, as apply does
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,

    /// What to draw as [default: mermaid, or with --output json the graph as JSON]
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub picture: Option<Picture>,

    /// Ask the broker for the depths of queues and, without files, for everything
    #[arg(long)]
    pub live: bool,
}

impl GraphArgs {
    /// The files, if there are any.
    #[must_use]
    pub fn files(&self) -> Option<Files> {
        let files = Files {
            files: self.files.clone(),
            flagged: self.flagged.clone(),
            prefix: self.prefix.clone(),
        };
        let is_any = files.all().next().is_some();
        is_any.then_some(files)
    }
}

/// What a graph is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// A mermaid flowchart, which GitHub and GitLab draw in Markdown.
    Mermaid,
    /// The language of Graphviz.
    Dot,
    /// A picture of its own, for every browser.
    Svg,
}
