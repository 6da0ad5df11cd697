//! Flags that every command understands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::TlsArgs;

/// Where the broker is and how to talk.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// AMQP URL; several with commas are tried in order [default:
    /// amqp://guest:guest@localhost:5672/%2f]
    ///
    /// `amqp://USER:PASSWORD@HOST:PORT/VHOST`, with `/` inside a name written as
    /// %2f, or `amqps://` for TLS. `?heartbeat=SECONDS` and
    /// `?auth_mechanism=external` may stand behind it. Falls back to the environment variable AMQP_URL.
    #[arg(short, long, global = true, env = "MQ_URL", hide_env_values = true)]
    pub url: Option<String>,

    /// Management API URL; several with commas are nodes of one broker [default: the AMQP hosts,
    /// port 15672, or 15671 over TLS]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "MQ_MANAGEMENT_URL",
        hide_env_values = true
    )]
    pub management_url: Option<String>,

    /// Virtual host; wins over the one in the URL or in a topology file
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "MQ_VHOST",
        hide_env_values = true
    )]
    pub vhost: Option<String>,

    /// Read the password from the first line of this file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MQ_PASSWORD_FILE",
        hide_env_values = true
    )]
    pub password_file: Option<PathBuf>,

    /// TLS: whom to trust, and who we are.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Longest wait for each single answer of the broker
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        env = "MQ_TIMEOUT",
        hide_env_values = true,
        default_value = "10s",
        value_parser = duration
    )]
    pub timeout: Duration,

    /// How data is printed on standard output
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = "MQ_OUTPUT",
        hide_env_values = true,
        default_value_t = OutputFormat::Table
    )]
    pub output: OutputFormat,

    /// Print no success messages; errors are still told
    #[arg(long, global = true)]
    pub quiet: bool,

    /// Say more on standard error: which settings are in force (-v), what is done (-vv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// How log lines on standard error look
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = "MQ_LOG_FORMAT",
        hide_env_values = true,
        default_value_t = LogFormat::Text
    )]
    pub log_format: LogFormat,
}

/// The forms of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    Jsonl,
}

/// The forms of `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// No wait of ours is longer; clocks overflow far beyond.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// A duration with its unit, from a millisecond to ten years. Zero is refused
/// because every use is a limit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_zero(text)? {
        duration if duration < Duration::from_millis(1) => Err("must be at least 1ms".to_owned()),
        duration => Ok(duration),
    }
}

/// A duration with its unit, up to ten years.
pub(super) fn duration_or_zero(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        Ok(_) => Err("must be at most 10years".to_owned()),
        Err(_) => Err("write it with its unit, such as 500ms, 10s or 5m".to_owned()),
    }
}
