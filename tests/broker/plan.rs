//! Planning: what apply would do, and whether anything would change.

use serde_json::{Value as Json, json};

use crate::support::{Ran, TextFile};
use crate::vhost::Vhost;

const FILE: &str = "version: 1
exchanges: { e: { type: topic } }
queues:
  q: { type: quorum, delivery_limit: unlimited, message_ttl: 1m, bind: [ { exchange: e, key: 'a.*', arguments: { n: 1 } } ] }
  plain: { arguments: { x-anything: 1 } }
";

fn plan(vhost: &Vhost, text: &str, flags: &[&str]) -> Ran {
    let file = TextFile::new("t.yaml", text);
    let path = file.path();
    let mut args = vec!["topology", "plan", &path];
    args.extend(flags);
    vhost.mq(args).run()
}

#[test]
fn a_plan_is_empty_exactly_when_nothing_differs() {
    let vhost = Vhost::new();
    plan(&vhost, FILE, &[]).code(0).shows(&[
        "create  exchange  e",
        "create  queue     q",
        "4 to create",
    ]);
    plan(&vhost, FILE, &["--check"]).code(1);
    let queues = vhost.get(&["queues", &vhost.name]);
    assert_eq!(queues, json!([]), "a plan changes nothing");

    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    plan(&vhost, FILE, &["--check"])
        .code(0)
        .shows(&["nothing to change: all 4 objects"]);
}

#[test]
fn differences_are_shown_argument_by_argument() {
    let vhost = Vhost::new();
    vhost.apply(FILE.trim_start_matches("version: 1\n"));
    let changed = FILE
        .replace("1m", "2m")
        .replace("topic", "direct")
        .replace("x-anything: 1", "x-anything: 2")
        .replace("a.*", "b.*");
    plan(&vhost, &changed, &[])
        .code(2)
        .says(&["3 of 4 objects"])
        .shows(&[
            "type: the file says direct, the broker has topic",
            "x-message-ttl: the file says 120000, the broker has 60000",
            "x-anything: the file says 2, the broker has 1 (RabbitMQ accepts this change and ignores it)",
            "1 to create, 0 to change, 0 unchanged, 3 blocked",
        ]);
    let plan = plan(&vhost, &changed, &["--check", "-o", "json"])
        .code(1)
        .json();
    assert_eq!(
        (&plan["empty"], &plan["blocked"]),
        (&json!(false), &json!(3))
    );
    let step = |name: &str| -> Json {
        plan["steps"]
            .as_array()
            .and_then(|steps| steps.iter().find(|step| step["name"] == name))
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(step("plain")["differences"][0]["ignored_by_broker"], true);
    assert_eq!(
        step("q")["differences"][0],
        json!({"argument": "x-message-ttl", "file": "120000", "broker": "60000", "ignored_by_broker": false})
    );
    assert_eq!(step("e -> q [b.*]")["action"], "create");
}

#[test]
fn apply_refuses_what_the_broker_would_accept_and_ignore() {
    let vhost = Vhost::new();
    vhost.apply("queues: { plain: { arguments: { x-anything: 1 } } }\n");
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nqueues: { plain: { arguments: { x-anything: 2 } }, other: }\n",
    );
    vhost
        .mq(["topology", "apply", &file.path()])
        .run()
        .code(2)
        .says(&["x-anything", "accepts this change and ignores it"]);
    let names = vhost.get(&["queues", &vhost.name]);
    assert_eq!(names.as_array().map(Vec::len), Some(1));
}

#[test]
fn dry_run_is_the_plan() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost
        .mq(["topology", "apply", "--dry-run", &file.path()])
        .run()
        .code(0)
        .shows(&["4 to create"]);
    assert_eq!(vhost.get(&["queues", &vhost.name]), json!([]));
}

#[test]
fn the_vhosts_default_queue_type_is_no_drift() {
    let vhost = Vhost::new();
    let body = json!({"default_queue_type": "quorum"});
    vhost.api(reqwest::Method::PUT, &["vhosts", &vhost.name], &body);
    vhost.apply("queues: { q: }\n");
    plan(&vhost, "version: 1\nqueues: { q: }\n", &["--check"]).code(0);
}

#[test]
fn without_the_management_api_a_plan_says_what_works_instead() {
    let vhost = Vhost::new();
    let file = TextFile::new("t.yaml", FILE);
    vhost
        .mq(["topology", "plan", &file.path()])
        .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
        .run()
        .code(69)
        .says(&["management API", "`mq topology apply` works without it"]);
}

#[test]
fn names_of_any_letters_plan_empty_after_apply() {
    let vhost = Vhost::new();
    let name = "a b/c'd\"é:%2f 😀";
    let text = format!(
        "exchanges: {{ {name:?}: {{ type: direct }} }}
queues: {{ {name:?}: {{ bind: [ {{ exchange: {name:?}, key: {name:?} }} ] }} }}
"
    );
    vhost.apply(&text);
    plan(&vhost, &format!("version: 1\n{text}"), &["--check"]).code(0);
}
