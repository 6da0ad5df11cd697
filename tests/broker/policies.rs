//! Policies: set, changed in place, seen by everything that asks where dead letters go.

use serde_json::json;

use crate::support::{Mq, Script, TextFile};
use crate::vhost::Vhost;

const FILE: &str = "version: 1
exchanges: { dlx: { type: direct }, spare: { type: fanout } }
queues:
  work: { type: classic, retry: { strategy: dlx, max_attempts: 2 } }
  wait: { type: classic, dead_letter: { exchange: '', key: work }, bind: [ { exchange: dlx, key: retry } ] }
  dead: { type: classic, bind: [ { exchange: dlx, key: dead } ] }
policies:
  dlx: { pattern: '^work$', apply_to: queues, priority: 1, definition: { dead-letter-exchange: dlx, dead-letter-routing-key: retry } }
  ttl: { pattern: '^wait$', definition: { message-ttl: 300 } }
operator_policies:
  cap: { pattern: '^(work|wait|dead)$', apply_to: queues, definition: { max-length-bytes: 1000000000 } }
";

fn run(vhost: &Vhost, verb: &str, text: &str, flags: &[&str]) -> Mq {
    // The cap is a length limit in a retry loop, which the lint does not allow.
    let lint: &[&str] = match verb {
        "apply" | "plan" => &["--no-lint"],
        _ => &[],
    };
    let args: Vec<&str> = [verb].iter().chain(lint).chain(flags).copied().collect();
    vhost.topology(text, &args)
}

fn policy(vhost: &Vhost, name: &str) -> serde_json::Value {
    vhost.get(&["policies", &vhost.name, name])
}

/// Without the operator's cap, whose length limit a retry loop does not allow.
fn without_cap() -> String {
    FILE.split("operator_policies")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn policies_are_set_proved_and_changed_in_place() {
    let vhost = Vhost::new();
    let file = without_cap();
    run(&vhost, "apply", &file, &[]).run().code(0).shows(&[
        "created  policy    dlx",
        "9 created",
        "read back",
    ]);
    run(&vhost, "apply", &file, &[])
        .run()
        .code(0)
        .shows(&["nothing to change: all 9"]);
    assert_eq!(
        policy(&vhost, "dlx")["definition"]["dead-letter-exchange"],
        "dlx"
    );

    let changed = file.replace("message-ttl: 300", "message-ttl: 400, max-length: 900000");
    run(&vhost, "plan", &changed, &[]).run().code(0).shows(&[
        "change  policy  ttl",
        "message-ttl: the file says 400, the broker has 300",
        "max-length: the file says 900000, the broker has nothing",
        "1 to change",
    ]);
    run(&vhost, "plan", &changed, &["--check"]).run().code(1);
    let report = run(&vhost, "apply", &changed, &["-o", "json"])
        .run()
        .code(0)
        .json();
    assert_eq!(report["changed"], true);
    assert_eq!(policy(&vhost, "ttl")["definition"]["message-ttl"], 400);
    run(&vhost, "plan", &changed, &["--check"]).run().code(0);
}

#[test]
fn a_worker_follows_dead_letters_that_policies_lead() {
    let vhost = Vhost::new();
    run(&vhost, "apply", &without_cap(), &[]).run().code(0);
    vhost.publish("work", "x");
    let file = TextFile::new("t.yaml", &without_cap());
    let handler = Script::new("echo $MQ_ATTEMPT >>$(dirname $0)/seen; exit 1");
    // Policies reach queues a moment after they are set.
    crate::support::wait_until("the policies to be in force", || {
        ["work", "wait"].iter().all(|queue| {
            vhost.get(&["queues", &vhost.name, queue])["effective_policy_definition"]
                .as_object()
                .is_some_and(|settings| !settings.is_empty())
        })
    });
    let args: Vec<std::ffi::OsString> = [
        "consume",
        "work",
        "--until-empty",
        "--topology",
        &file.path(),
        "--exec",
    ]
    .iter()
    .map(Into::into)
    .chain([handler.path()])
    .collect();
    vhost.mq(args).run().code(0);
    assert_eq!(handler.lines("seen"), ["1", "2"]);
    vhost.wait_for_ready("dead", 1);
}

#[test]
fn a_limit_that_an_operator_sets_is_seen_before_it_costs_messages() {
    let vhost = Vhost::new();
    run(&vhost, "validate", FILE, &[])
        .run()
        .code(65)
        .says(&["MQ112", "length limit that drops its oldest message"]);
}

#[test]
fn policies_are_exported_and_destroyed() {
    let vhost = Vhost::new();
    let file = FILE.replace(", retry: { strategy: dlx, max_attempts: 2 }", "");
    run(&vhost, "apply", &file, &[]).run().code(0);
    let exported = vhost.mq(["topology", "export"]).run().code(0);
    run(&vhost, "plan", &exported.stdout, &["--check"])
        .run()
        .code(0);
    run(&vhost, "destroy", &file, &["--yes"])
        .run()
        .code(0)
        .shows(&["deleted  operator policy  cap", "8 deleted"]);
    assert_eq!(vhost.get(&["policies", &vhost.name]), json!([]));
    assert_eq!(vhost.get(&["operator-policies", &vhost.name]), json!([]));
}

#[test]
fn without_the_right_or_the_api_nothing_at_all_is_done() {
    let mut vhost = Vhost::new();
    let user = vhost.user(".*", ".*", ".*", "management");
    let management = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    run(
        &vhost,
        "apply",
        FILE.replace(", retry: { strategy: dlx, max_attempts: 2 }", "")
            .as_str(),
        &[],
    )
    .env("MQ_MANAGEMENT_URL", management)
    .run()
    .code(77)
    .says(&["may not set policies", "policymaker"]);
    run(&vhost, "apply", &without_cap(), &[])
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(69)
        .says(&["go through the management API"]);
    assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
}

#[test]
fn a_prefixed_copy_has_policies_of_its_own() {
    let vhost = Vhost::new();
    run(&vhost, "apply", &without_cap(), &["--prefix", "ci-1."])
        .run()
        .code(0);
    let copy = policy(&vhost, "ci-1.dlx");
    assert_eq!(copy["pattern"], "^ci-1\\.work$");
    assert_eq!(copy["definition"]["dead-letter-exchange"], "ci-1.dlx");
    run(
        &vhost,
        "plan",
        &without_cap(),
        &["--prefix", "ci-1.", "--check"],
    )
    .run()
    .code(0);
}
