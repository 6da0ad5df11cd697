//! The topology files that a command is given.

use std::path::PathBuf;

use clap::Args;

/// Topology files.
#[derive(Clone, Debug, Args)]
pub struct Files {
    /// Topology files; a directory stands for its *.yaml and *.yml, `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "file_flag")]
    pub files: Vec<PathBuf>,

    /// The same as FILE
    #[arg(short = 'f', long = "file", value_name = "FILE", id = "file_flag")]
    pub flagged: Vec<PathBuf>,

    /// Put this before the name of everything the files declare: a throw-away copy
    /// (settings of the vhost are not part of it)
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,
}

/// A file for a report, which has standard output's results in another notation.
pub(super) fn report_file(text: &str) -> Result<PathBuf, String> {
    if text == "-" {
        return Err(
            "a report needs a file: standard output has the results (a file of that name is ./-)"
                .to_owned(),
        );
    }
    Ok(PathBuf::from(text))
}

impl Files {
    /// All of them, in the order typed.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.flagged.iter().chain(&self.files)
    }
}
