//! The headers of a message, wherever one is described on the command line.

use clap::Args;

/// The headers of a message.
#[derive(Clone, Debug, Args)]
pub struct HeaderArgs {
    /// A header with a text value
    #[arg(short = 'H', long = "header", value_name = "NAME=TEXT")]
    pub headers: Vec<String>,

    /// A header with a JSON value: numbers, booleans, lists and objects keep their type
    #[arg(long = "header-json", value_name = "NAME=JSON")]
    pub json_headers: Vec<String>,
}
