//! `mq publish`, what is added to messages, and what they are held against.

use std::path::PathBuf;

use clap::Args;

/// What is added to each message that lacks it, and what bodies are held against.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Checked and added")]
pub struct AddedArgs {
    /// JSON Schema that bodies must fit
    ///
    /// Nothing is sent of the first message that does not fit, nor of those behind
    /// it; that ends it with 65. With --dry-run all are checked and each is told.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Give each message without a message id one (a UUID)
    #[arg(long)]
    pub generate_message_id: bool,

    /// Give each message without a content type and encoding a content type by its
    /// body: application/json (an object or a list), text/plain; charset=utf-8 or
    /// application/octet-stream
    #[arg(long, conflicts_with = "content_type")]
    pub guess_content_type: bool,

    /// Make each message that is none a CloudEvent of this type: attributes as headers
    /// cloudEvents:NAME, the body as it is (binary mode)
    ///
    /// The id is the message id, made if there is none, the time is now, and
    /// datacontenttype the content type. A header that is given as well stays, as in
    /// -H cloudEvents:dataschema=URI or, with --template, -H cloudEvents:subject={{seq}}.
    #[arg(long, value_name = "TYPE", requires = "ce_source")]
    pub ce_type: Option<String>,

    /// Where the event happened: a URI, or a path such as /shop/orders
    #[arg(long, value_name = "URI", requires = "ce_type")]
    pub ce_source: Option<String>,

    /// What the event is about
    #[arg(long, value_name = "SUBJECT", requires = "ce_type")]
    pub ce_subject: Option<String>,

    /// Add the header traceparent (W3C Trace Context) to each message that has none
    ///
    /// Without a value it is that of the environment variable TRACEPARENT, with
    /// TRACESTATE as tracestate. If that is not set or wrong, a new trace begins: one
    /// trace id for all messages, and a new parent id for each.
    #[arg(long, value_name = "VALUE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub traceparent: Option<String>,
}
