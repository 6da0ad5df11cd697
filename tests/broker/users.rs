//! Vhosts, users and permissions: set from a file, proved, changed, destroyed.

use serde_json::json;

use crate::support::{Mq, TextFile};
use crate::vhost::Vhost;

/// A user name that no other run uses; users belong to the whole cluster.
fn user_name(vhost: &Vhost) -> String {
    format!(
        "app-{}",
        vhost
            .name
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    )
}

fn file(vhost: &Vhost) -> TextFile {
    let user = user_name(vhost);
    TextFile::new(
        "t.yaml",
        &format!(
            "version: 1
vhost:
  description: a shop
  tags: [test, \"ci\"]
  limits: {{ max_queues: 50 }}
exchanges: {{ orders: {{ type: topic }} }}
users:
  {user}: {{ password: {{ env: APP_PASSWORD }}, tags: [monitoring] }}
permissions:
  {user}: {{ configure: '', write: '^orders', read: '.*', topics: {{ orders: {{ write: '^order', read: '.*' }} }} }}
"
        ),
    )
}

fn topology(vhost: &Vhost, file: &TextFile, args: &[&str]) -> Mq {
    let path = file.path();
    let mut all = vec!["topology"];
    all.extend(args);
    all.push(&path);
    vhost.mq(all).env("APP_PASSWORD", "sesam öffne dich")
}

#[test]
fn a_vhost_and_its_users_come_from_the_file() {
    let vhost = Vhost::new();
    let user = user_name(&vhost);
    let file = file(&vhost);
    topology(&vhost, &file, &["apply"]).run().code(0).shows(&[
        "changed  vhost              settings",
        "created  user ",
        "created  topic permissions",
        "read back",
    ]);
    topology(&vhost, &file, &["plan", "--check"]).run().code(0);
    topology(&vhost, &file, &["apply"])
        .run()
        .code(0)
        .shows(&["nothing to change: all 5"]);
    let settings = vhost.get(&["vhosts", &vhost.name]);
    assert_eq!(settings["description"], "a shop");
    assert_eq!(settings["tags"], json!(["test", "ci"]));
    // The password works, and the permissions are what they say.
    let url = vhost.url_of(&user, "sesam%20%C3%B6ffne%20dich");
    Mq::new(["publish", "-e", "orders", "-k", "order.x", "hi"])
        .env("MQ_URL", &url)
        .run()
        .code(67);
    Mq::new(["publish", "-e", "orders", "-k", "other.x", "hi"])
        .env("MQ_URL", &url)
        .run()
        .code(77);

    // Another password is a difference that shows neither of them.
    let plan = topology(&vhost, &file, &["plan", "--check"])
        .env("APP_PASSWORD", "hunter2")
        .run()
        .code(1)
        .shows(&["password: the file says another one"]);
    assert!(!plan.stdout.contains("hunter2") && !plan.stderr.contains("hunter2"));
    topology(&vhost, &file, &["apply"])
        .env("APP_PASSWORD", "hunter2")
        .run()
        .code(0);
    Mq::new(["wait", "--amqp-only", "--for", "5s"])
        .env("MQ_URL", vhost.url_of(&user, "hunter2"))
        .run()
        .code(0);

    topology(&vhost, &file, &["destroy", "--yes"])
        .run()
        .code(0)
        .shows(&["deleted  user "]);
    let users = vhost.get(&["users"]).to_string();
    assert!(!users.contains(&user), "{users}");
}

#[test]
fn what_the_file_leaves_open_stays() {
    let vhost = Vhost::new();
    let body = json!({"description": "kept", "tags": "a,b"});
    vhost.api(reqwest::Method::PUT, &["vhosts", &vhost.name], &body);
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nvhost: { limits: { max_connections: 7 } }\n",
    );
    topology(&vhost, &file, &["apply"]).run().code(0);
    let settings = vhost.get(&["vhosts", &vhost.name]);
    assert_eq!(settings["description"], "kept");
    assert_eq!(settings["tags"], json!(["a", "b"]));
    let unlimited = TextFile::new(
        "t.yaml",
        "version: 1\nvhost: { limits: { max_connections: unlimited } }\n",
    );
    topology(&vhost, &unlimited, &["apply"]).run().code(0);
    topology(&vhost, &unlimited, &["plan", "--check"])
        .run()
        .code(0);
}

#[test]
fn users_of_elsewhere_and_our_own_are_kept() {
    let mut vhost = Vhost::new();
    let other = Vhost::new();
    let user = vhost.user("", "", ".*", "");
    let everything = json!({"configure": ".*", "write": ".*", "read": ".*"});
    vhost.api(
        reqwest::Method::PUT,
        &["permissions", &other.name, &user],
        &everything,
    );
    let file = TextFile::new(
        "t.yaml",
        &format!("version: 1\nusers: {{ {user}: {{}} }}\n"),
    );
    topology(&vhost, &file, &["destroy", "--yes"])
        .run()
        .code(2)
        .says(&["permissions in other vhosts", &other.name]);
    let file = TextFile::new("t.yaml", "version: 1\nusers: { guest: {} }\n");
    topology(&vhost, &file, &["destroy", "--yes"])
        .run()
        .code(3)
        .says(&["it is the user we work as"]);
}

#[test]
fn without_the_right_nothing_is_changed() {
    let mut vhost = Vhost::new();
    let user = vhost.user(".*", ".*", ".*", "policymaker");
    let management = vhost
        .management_url
        .replace("guest:guest", &format!("{user}:pw"));
    let file = TextFile::new(
        "t.yaml",
        "version: 1\nexchanges: { e: { type: fanout } }\nvhost: { description: x }\n",
    );
    topology(&vhost, &file, &["apply"])
        .env("MQ_MANAGEMENT_URL", management)
        .run()
        .code(77)
        .says(&["Not administrator", "it needs the tag administrator"]);
    let exchanges = vhost.get(&["exchanges", &vhost.name]).to_string();
    assert!(!exchanges.contains("\"e\""), "{exchanges}");
}

#[test]
fn a_throw_away_vhost_goes_with_what_was_in_it() {
    let keeper = Vhost::new();
    let name = format!("{} throw-away", keeper.name);
    let file = TextFile::new("t.yaml", "version: 1\nqueues: { q: }\n");
    topology(
        &keeper,
        &file,
        &["apply", "--create-vhost", "--vhost", &name],
    )
    .run()
    .code(0);
    let stranger = json!({"durable": true});
    keeper.api(
        reqwest::Method::PUT,
        &["queues", &name, "stranger"],
        &stranger,
    );
    let destroy = ["destroy", "--yes", "--delete-vhost", "--vhost", &name];
    topology(&keeper, &file, &destroy)
        .run()
        .code(3)
        .says(&["it still holds queue 'stranger'"]);
    keeper.api(
        reqwest::Method::DELETE,
        &["queues", &name, "stranger"],
        &json!({}),
    );
    topology(&keeper, &file, &destroy).run().code(0);
    assert!(!keeper.get(&["vhosts"]).to_string().contains("throw-away"));
}
