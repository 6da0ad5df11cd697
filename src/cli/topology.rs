//! `mq topology …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::files::Files;
use crate::cli::global::duration;
use crate::cli::graph::GraphArgs;
use crate::cli::topology_route::RouteArgs;
use crate::cli::topology_test::TestArgs;
use crate::cli::version::version;

/// Exchanges, queues and bindings from YAML files.
#[derive(Debug, Subcommand)]
#[expect(
    missing_docs,
    reason = "clap shows the docs of each command's own struct, and a doc here would hide them"
)]
pub enum TopologyCommand {
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Validate(ValidateArgs),
    Graph(GraphArgs),
    Route(RouteArgs),
    Test(TestArgs),
    Export(ExportArgs),
    Convert(ConvertArgs),
    Destroy(DestroyArgs),
    Migrate(MigrateArgs),
    Schema(SchemaArgs),
}

/// Delete exactly what the files declare, if it is empty and unused.
///
/// Looks at everything first. A queue that holds messages or has consumers, an
/// exchange that feeds something the files do not declare, or that others send
/// dead letters to, stops it before anything is deleted. So does what cannot be
/// proved empty: a stream, and without the management API every queue but quorum
/// ones. Without --yes it only shows what it would delete.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology destroy topologies/orders.yaml
  mq topology destroy --yes --prefix ci-1234. topologies/orders.yaml
  mq topology destroy --yes --vhost ci-1234 --delete-vhost topologies/orders.yaml

Exit codes:
  0 all of it is gone
  2 something is in use, or --yes is missing: nothing was deleted
  3 some of it was kept or could not be deleted (the report says what)
  65 a file is wrong
  66 a file is missing
  69 broker unavailable
  77 login or permission refused")]
pub struct DestroyArgs {
    /// What to destroy.
    #[command(flatten)]
    pub files: Files,

    /// Delete without asking
    #[arg(long)]
    pub yes: bool,

    /// Delete also what is in use: messages are lost
    #[arg(long)]
    pub force: bool,

    /// Delete the vhost too, if nothing of anybody is left in it then
    #[arg(long)]
    pub delete_vhost: bool,
}

/// Write what a vhost has as a topology file that plans empty against it.
///
/// Prints YAML. What belongs to the broker (`amq.…`) or to a connection
/// (exclusive queues) is left out; what the file format cannot say is told on
/// standard error.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology export --vhost shop > shop.yaml
  mq topology export > all.yaml && mq topology plan --check --no-lint all.yaml

Exit codes:
  0 everything was written
  3 something cannot be said in a file, standard error tells what
  69 management API not reachable
  77 login or permission refused")]
pub struct ExportArgs {
    /// Write also the users of the cluster, with their passwords' hashes, and what they may do here
    #[arg(long)]
    pub users: bool,
}

/// Turn RabbitMQ's definitions (JSON) into a topology file, and back.
///
/// A JSON file is read as definitions, of a cluster or of one vhost, and written
/// as YAML; topology files are written as definitions. No broker is asked. What
/// the other side cannot say is told on standard error and is exit code 3.
/// Settings that only mq reads (`retry:`, `owns:`, `tests:`) are not part of definitions.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology convert definitions.json --vhost shop > shop.yaml
  mq topology convert shop.yaml --vhost shop > definitions.json

Exit codes:
  0 everything was converted
  3 something cannot be said on the other side, standard error tells what
  65 a file is wrong, or holds several vhosts and --vhost is missing
  66 a file is missing")]
pub struct ConvertArgs {
    /// Definitions, or topology files; `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// The version of RabbitMQ that definitions are written for
    #[arg(long = "for", value_name = "VERSION", value_parser = version, default_value = "4.0")]
    pub for_version: String,
}

/// Make the broker have what the files declare; changes nothing twice.
///
/// Declares over AMQP, so it works with the management plugin off. What exists
/// otherwise than the file says is found before anything is created: then
/// nothing is changed, and every difference is shown with its ways out.
/// Afterwards everything is read back and proved, if the management API answers.
/// Nothing is deleted without --prune.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology apply topologies/orders.yaml
  mq topology apply --vhost shop base.yaml extra/
  mq topology apply --wait 2m --vhost ci-1234 --create-vhost topologies/
  mq topology apply --prefix ci-1234. topologies/orders.yaml
  mq topology apply --prune --yes topologies/
  mq topology apply --allow migrate orders.yaml

Exit codes:
  0 the broker has it
  1 the lint found a mistake: nothing was changed
  2 something is there otherwise, needs a newer broker, or --yes is missing: nothing was changed
  3 failed after something was created (the report says what)
  65 a file is wrong
  66 a file is missing
  69 broker unavailable
  77 login or permission refused")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ApplyArgs {
    /// What to apply.
    #[command(flatten)]
    pub files: Files,

    /// Show the plan and change nothing: the same as `mq topology plan`
    #[arg(long)]
    pub dry_run: bool,

    /// Create the vhost first if it is missing, and give the user all permissions in it
    ///
    /// Through the management API, by a user tagged administrator.
    #[arg(long)]
    pub create_vhost: bool,

    /// Wait this long for the broker to answer first
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,

    /// Delete what the files own (`owns:`) and do not declare, with --yes
    ///
    /// Queues that hold messages or have consumers, and exchanges that feed what
    /// the files do not own, stop it before anything is changed.
    #[arg(long)]
    pub prune: bool,

    /// Delete without asking
    #[arg(long, requires = "prune")]
    pub yes: bool,

    /// Permit what is not done unasked
    #[arg(long, value_enum, value_name = "WHAT")]
    pub allow: Vec<Allow>,

    /// Do not lint: take also what would lose messages, as it is
    #[arg(long)]
    pub no_lint: bool,
}

/// What apply does only when told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allow {
    /// Prune also queues in use, with the messages they hold.
    LoseMessages,
    /// Change queues that cannot be changed in place, as `mq topology migrate` does.
    Migrate,
}

/// Show what apply would do, object by object and argument by argument.
///
/// Reads the broker through the management API and changes nothing. Numbers
/// compare by value, and a queue without `type` in the file matches whatever the
/// vhost's default made of it. Arguments that RabbitMQ accepts but ignores are
/// named: changing them does nothing, and the broker does not say so.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology plan topologies/
  mq topology plan --check topologies/ || echo 'the broker is not as the files say'

Exit codes:
  0 the plan can be applied
  1 the lint found a mistake; with --check also: something differs
  2 something is there otherwise and cannot be changed in place, or needs a newer broker
  65 a file is wrong
  66 a file is missing
  69 management API not reachable
  77 login or permission refused")]
pub struct PlanArgs {
    /// What to plan.
    #[command(flatten)]
    pub files: Files,

    /// Exit with 1 if anything differs
    #[arg(long)]
    pub check: bool,

    /// Show also what `apply --prune` would delete
    #[arg(long)]
    pub prune: bool,

    /// Do not lint: take also what would lose messages, as it is
    #[arg(long)]
    pub no_lint: bool,
}

/// Check and lint files without a broker.
///
/// Finds what cannot be read or declared, and what a broker would accept and then
/// lose messages by: dead letters that reach no queue, retry loops that end in a
/// silent drop, limits that drop unseen, bindings that never match. Each finding
/// has a code, its place, and the way out. Errors also stop `plan` and `apply`;
/// warnings stop nothing. A comment `# mq: allow MQ209` on the line or the line
/// above silences that code there, before everything else in the file everywhere
/// in it.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology validate topologies/
  mq topology validate --strict --for 3.10 topologies/
  mq topology validate --expand topologies/workers.yaml
  mq topology validate -o json topologies/ | jq '.findings[] | .code'

Exit codes:
  0 fine, perhaps with warnings
  1 the lint found a mistake; with --strict also a warning
  65 a file is wrong
  66 a file is missing")]
pub struct ValidateArgs {
    /// What to check.
    #[command(flatten)]
    pub files: Files,

    /// Print all of it as one plain file: workers and super streams written out, variables replaced
    #[arg(long)]
    pub expand: bool,

    /// Judge for this version of RabbitMQ; without it the most careful answer of all versions counts
    #[arg(long = "for", value_name = "VERSION", value_parser = version)]
    pub for_version: Option<String>,

    /// Exit with 1 also for warnings
    #[arg(long)]
    pub strict: bool,

    /// Show advice too: what is no mistake and could be better
    #[arg(long)]
    pub pedantic: bool,
}

/// Print the JSON Schema of topology files, for editors.
///
/// Editors with yaml-language-server complete and explain every key and
/// underline unknown ones when the first line of a file names it:
/// `# yaml-language-server: $schema=topology.schema.json`, a path from that file
/// or a URL. Every valid file fits the schema; what one cannot see in a single
/// value is told by `mq topology validate`. No broker is asked.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology schema > topologies/topology.schema.json

Exit codes:
  0 printed")]
pub struct SchemaArgs {}

/// Change what is immutable about a queue (its type, any argument) without losing a message.
///
/// The files declare the queue as it should become. Its bindings are led to a
/// temporary exchange, so that publishers go on undisturbed; what is published
/// meanwhile waits in a temporary queue. The messages are moved out, the queue is
/// declared anew, the messages are moved back in their order, and at a moment
/// when nothing waits the bindings get back to where they were. A run that was
/// killed anywhere goes on when the same command is run again: everything is read
/// off the broker.
///
/// Messages move as copies: body, headers, properties and routing key stay. The
/// exchange that a consumer sees is the temporary one, an `expiration` starts
/// anew, and the `user_id` of another user is dropped, because the broker lets
/// nobody set it. Killed runs may leave copies twice; they are recognised by
/// their `message_id`, and what could not be told is counted on standard error.
///
/// Whoever publishes straight to the queue through the default exchange must
/// pause: no binding can lead those messages aside, and while the queue is
/// deleted and declared again there is none for them (a mandatory publish is
/// returned). Queues whose dead letters go that way must be empty.
///
/// Without --yes it only shows what it would do.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "Examples:
  mq topology migrate orders.queue topologies/orders.yaml --dry-run
  mq topology migrate orders.queue topologies/orders.yaml --yes

Exit codes:
  0 the queue is as the files say, with all its messages
  2 something stands against it, or --yes is missing: no message was moved
  3 stopped half-way: run the same command again to go on
  65 a file is wrong, or there is no such queue
  66 a file is missing
  69 broker or management API unavailable
  75 publishers left no quiet moment, or no answer in time: run it again
  77 login or permission refused")]
pub struct MigrateArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,

    /// What it should become.
    #[command(flatten)]
    pub files: Files,

    /// Do it without asking
    #[arg(long)]
    pub yes: bool,

    /// Show the steps and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,

    /// Go on although the queue has consumers
    ///
    /// They compete for the messages while these are moved, and are cancelled
    /// when the queue is deleted. What they get is not lost, but its order is
    /// theirs to keep.
    #[arg(long)]
    pub with_consumers: bool,

    /// How long to try for a moment at which nothing waits
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub switch_for: Duration,
}
