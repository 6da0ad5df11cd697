//! The flags about TLS, which every command understands.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// Whom to trust over TLS, and who we are there. They count for `amqps://` and
/// for an `https://` management API alike.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct TlsArgs {
    /// Trust the certificates in this PEM file instead of the system's store
    ///
    /// One or more CA certificates, or a server's own. Counts for amqps:// and
    /// for the management API over https://, as all of TLS does here.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MQ_CA_CERT",
        hide_env_values = true,
        value_parser = file()
    )]
    pub ca_cert: Option<PathBuf>,

    /// Show the certificate in this PEM file where one is asked for (mTLS)
    ///
    /// The client's own certificate comes first, then the chain above it. With
    /// ?auth_mechanism=external in an amqps:// URL it is the login too.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MQ_CLIENT_CERT",
        hide_env_values = true,
        value_parser = file()
    )]
    pub client_cert: Option<PathBuf>,

    /// Its key, as PEM and not encrypted [default: in the file of --client-cert]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MQ_CLIENT_KEY",
        hide_env_values = true,
        value_parser = file()
    )]
    pub client_key: Option<PathBuf>,

    /// Take any certificate of a server: no protection from who is in between
    ///
    /// Says so on standard error in every run that opens TLS, --quiet or not. No
    /// environment variable does this, for one that is left behind would not be
    /// seen.
    #[arg(long, global = true)]
    pub insecure: bool,
}

/// A path that may be empty, as a variable is that is set to nothing: then none
/// is given.
fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
