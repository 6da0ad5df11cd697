//! Messages that are not as their schema says: dead letters that no handler saw.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests write schemas and read what handlers left behind"
)]

use std::ffi::OsString;

use lapin::BasicProperties;
use serde_json::{Value as Json, json};

use crate::consume::{DLX, IMMEDIATE, consume, of_type};
use crate::support::{Script, TextFile};
use crate::vhost::Vhost;

const READING: &str = r#"{
  "required": ["device_id"],
  "properties": {
    "device_id": { "type": "string", "minLength": 3 },
    "temperature": { "type": "number", "maximum": 100 }
  }
}"#;

const REMEMBERS: &str = "cat >>$(dirname $0)/seen; echo >>$(dirname $0)/seen";

fn header<'j>(letter: &'j Json, name: &str) -> &'j Json {
    letter
        .pointer(&format!("/properties/headers/{name}"))
        .unwrap_or(&Json::Null)
}

#[test]
fn a_message_against_the_schema_is_dead_lettered_and_no_handler_sees_it() {
    let schema = TextFile::new("reading.schema.json", READING);
    for (topology, kind) in [
        (IMMEDIATE, "classic"),
        (IMMEDIATE, "quorum"),
        (DLX, "quorum"),
    ] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(topology, kind));
        let bad = "{\"device_id\": \"x\",\t\"temperature\":150.0}\n";
        let fine = r#"{"device_id":"abc","temperature":20,"more":true}"#;
        let properties = BasicProperties::default().with_correlation_id("c-1".into());
        let messages = [bad, fine].map(|body| (body.into(), properties.clone()));
        vhost.publish_raw("work", &messages);
        let handler = Script::new(REMEMBERS);
        let path = schema.path();
        let flags = ["--schema", &path, "--until-empty"];
        consume(&vhost, &flags, &handler)
            .run()
            .code(0)
            .shows(&["1 acked", "1 poison"])
            .says(&["attempt failed", "/device_id"]);
        assert_eq!(handler.lines("seen"), [fine], "{kind}");
        let dead = vhost.inspect("dead");
        assert_eq!(dead["ready"], 1, "{kind}");
        let letter = &dead["messages"][0];
        assert_eq!(letter["body"], bad);
        assert_eq!(letter["properties"]["correlation_id"], "c-1");
        assert_eq!(
            letter["error"],
            r#"schema reading.schema.json: /device_id: "x" is shorter than 3 characters (minLength); /temperature: 150.0 is greater than the maximum of 100 (maximum)"#
        );
        assert_eq!(letter["attempts"], 1);
        assert_eq!(header(letter, "mq-error-kind"), "poison");
        assert_eq!(header(letter, "mq-error-layer"), "data");
        assert_eq!(header(letter, "mq-error-exit"), "schema");
        assert_eq!(header(letter, "mq-error-stderr"), &Json::Null);
    }
}

#[test]
fn a_compressed_body_is_told_to_be_one_and_kept_byte_for_byte() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let schema = TextFile::new("s.json", READING);
    let gzip = vec![0x1f, 0x8b, 0x08, 0x00, 0xff];
    let properties = BasicProperties::default().with_content_encoding("gzip".into());
    vhost.publish_raw("work", &[(gzip, properties)]);
    let flags = ["--schema", &schema.path(), "--until-empty"];
    consume(&vhost, &flags, &Script::new(REMEMBERS))
        .run()
        .code(0);
    let letter = &vhost.inspect("dead")["messages"][0];
    assert_eq!(letter["body"], "H4sIAP8=");
    let error = letter["error"].as_str().unwrap();
    assert!(error.contains("content_encoding is gzip"), "{error}");
}

/// What a handler makes of a body is held against the schema too.
#[test]
fn every_attempt_is_checked() {
    for (topology, kind) in [(IMMEDIATE, "quorum"), (DLX, "quorum"), (DLX, "classic")] {
        let vhost = Vhost::new();
        vhost.apply(&of_type(topology, kind));
        let schema = TextFile::new("s.json", READING);
        vhost.publish("work", r#"{"device_id":"abc"}"#);
        let handler = Script::new(
            "cat >>$(dirname $0)/seen; echo >>$(dirname $0)/seen; printf '{\"device_id\":5}'; exit 75",
        );
        let path = schema.path();
        let flags = ["--schema", &path, "--retry-body", "result", "--until-empty"];
        consume(&vhost, &flags, &handler)
            .run()
            .code(0)
            .shows(&["1 retried", "1 poison"]);
        assert_eq!(handler.lines("seen"), [r#"{"device_id":"abc"}"#]);
        let letter = &vhost.inspect("dead")["messages"][0];
        assert_eq!(letter["body"], r#"{"device_id":5}"#, "{topology} {kind}");
        assert_eq!(letter["attempts"], 2);
        assert_eq!(
            letter["error"],
            r#"schema s.json: /device_id: 5 is not of type "string" (type)"#
        );
    }
}

/// A folder with a topology and its schemas.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(topology: &str, schemas: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("schemas")).unwrap();
        let files = Self { folder };
        files.write("t.yaml", &format!("version: 1\n{topology}"));
        for (name, text) in schemas {
            files.write(name, text);
        }
        files
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn topology(&self) -> String {
        self.folder
            .path()
            .join("t.yaml")
            .to_str()
            .unwrap()
            .to_owned()
    }
}

const RULES: &str = "
exchanges: { in: { type: topic } }
workers:
  work:
    bind: [ { exchange: in, key: '#' } ]
    retry: { strategy: dlx, delays: [ 100ms ], max_attempts: 2 }
    schema:
      - { key: 'reading.*', type: v2, file: schemas/two.json }
      - { key: 'reading.#', file: schemas/reading.json }
";

fn work(vhost: &Vhost, files: &Files, flags: &[&str], handler: &Script) -> crate::support::Mq {
    let path = files.topology();
    let flags = [&["--topology", &path, "--until-empty"], flags].concat();
    consume(vhost, &flags, handler)
}

#[test]
fn a_topology_file_chooses_the_schema_by_key_and_type_on_every_attempt() {
    let vhost = Vhost::new();
    let files = Files::new(
        RULES,
        &[
            ("schemas/two.json", r#"{"required":["two"]}"#),
            ("schemas/reading.json", READING),
        ],
    );
    vhost
        .mq(["topology", "apply", &files.topology()])
        .run()
        .code(0);
    let publish = |key: &str, kind: &[&str], body: &str| {
        let args = ["publish", "-e", "in", "-k", key];
        vhost
            .mq(args.iter().chain(kind).chain(&[body]))
            .run()
            .code(0);
    };
    publish("reading.hall", &["--type", "v2"], "{}");
    publish("reading.hall", &["--type", "v1"], r#"{"device_id":1}"#);
    publish("reading.hall.7", &["--type", "v2"], r#"{"device_id":2}"#);
    publish("note", &[], "no JSON at all");
    // Its first attempt fails; on the second its key is another one.
    publish("reading.hall", &[], r#"{"device_id":"abc"}"#);
    let handler = Script::new(
        "b=$(cat); echo \"$b\" >>$(dirname $0)/seen; case $b in *abc*) printf '{\"device_id\":3}'; exit 75 ;; esac",
    );
    work(&vhost, &files, &["--retry-body", "result"], &handler)
        .run()
        .code(0)
        .shows(&["1 acked", "1 retried", "4 poison"]);
    assert_eq!(
        handler.lines("seen"),
        ["no JSON at all", r#"{"device_id":"abc"}"#]
    );
    let mut errors: Vec<String> = vhost.inspect("work.dlq")["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| letter["error"].as_str().unwrap().to_owned())
        .collect();
    errors.sort();
    let no_text = |value: u32| {
        format!("schema reading.json: /device_id: {value} is not of type \"string\" (type)")
    };
    assert_eq!(
        errors,
        [
            no_text(1),
            no_text(2),
            no_text(3),
            r#"schema two.json: /: "two" is missing (required)"#.to_owned(),
        ]
    );
    // A flag beats the file.
    publish("reading.hall", &["--type", "v2"], "{}");
    let anything = TextFile::new("any.json", "true");
    work(&vhost, &files, &["--schema", &anything.path()], &handler)
        .run()
        .code(0)
        .shows(&["1 acked"]);
}

#[test]
fn a_schema_that_cannot_be_used_stops_before_anything_is_done() {
    let vhost = Vhost::new();
    let files = Files::new(
        RULES,
        &[
            ("schemas/two.json", "true"),
            ("schemas/reading.json", "true"),
        ],
    );
    vhost
        .mq(["topology", "apply", &files.topology()])
        .run()
        .code(0);
    vhost.publish("work", "{}");
    let handler = Script::new(REMEMBERS);
    let external = json!({"$ref": "https://example.com/a.json"}).to_string();
    files.write("schemas/reading.json", &external);
    work(&vhost, &files, &[], &handler).run().code(65).says(&[
        "`schema` of queue 'work'",
        "reading.json is invalid: its $ref leads to https://example.com/a.json, out of the file",
        "$defs",
    ]);
    let missing = ["--schema", "/nowhere/s.json"];
    work(&vhost, &files, &missing, &handler)
        .run()
        .code(66)
        .says(&["/nowhere/s.json does not exist"]);
    let broken = TextFile::new("broken.json", r#"{"type":"strng"}"#);
    work(&vhost, &files, &["--schema", &broken.path()], &handler)
        .run()
        .code(65)
        .says(&["broken.json is invalid: /type: \"strng\""]);
    vhost.wait_for_ready("work", 1);
    assert_eq!(handler.lines("seen"), Vec::<String>::new());
    // Nothing is changed by a file whose schemas are wrong; whoever has no
    // schemas at hand can still say so.
    files.write("schemas/reading.json", "{");
    let topology = files.topology();
    for command in ["plan", "apply"] {
        vhost
            .mq(["topology", command, &topology])
            .run()
            .code(65)
            .says(&["error[MQ116]", "t.yaml:8:5", "reading.json is invalid: EOF"]);
        vhost
            .mq(["topology", command, "--no-lint", &topology])
            .run()
            .code(0);
    }
    // What is only printed is not judged.
    let args = ["consume", "work", "--topology", &topology];
    let print = ["--print", "--until-empty"].map(OsString::from);
    vhost
        .mq(args.map(OsString::from).into_iter().chain(print))
        .run()
        .code(0)
        .shows(&["{}"]);
}

/// With a plain nack there is no reason, but the message is buried all the same.
#[test]
fn a_plain_nack_buries_it_too() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let schema = TextFile::new("s.json", "false");
    vhost.publish("work", "{}");
    let path = schema.path();
    let flags = ["--schema", &path, "--dead-letter", "nack", "--until-empty"];
    consume(&vhost, &flags, &Script::new(REMEMBERS))
        .run()
        .code(0)
        .shows(&["1 poison"]);
    vhost.wait_for_ready("dead", 1);
}

/// Long-lived programs are asked for what fits only.
#[test]
fn a_stream_handler_sees_only_what_fits() {
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    let schema = TextFile::new("s.json", READING);
    let bodies: Vec<String> = (0..40)
        .map(|n| match n % 2 {
            0 => format!("{{\"device_id\":\"dev-{n}\"}}"),
            _ => format!("{{\"device_id\":{n}}}"),
        })
        .collect();
    vhost.publish_all("work", &bodies);
    let handler = Script::new(
        "while read -r line; do echo \"$line\" >>$(dirname $0)/seen; id=${line#*'\"id\":'}; echo \"{\\\"id\\\":${id%%,*},\\\"outcome\\\":\\\"done\\\"}\"; done",
    );
    let args = [
        "consume",
        "work",
        "--schema",
        &schema.path(),
        "--prefetch",
        "8",
        "--until-empty",
        "--exec-stream",
    ];
    vhost
        .mq(args.map(OsString::from).into_iter().chain([handler.path()]))
        .run()
        .code(0)
        .shows(&["20 acked", "20 poison"]);
    let seen = handler.lines("seen");
    assert_eq!(seen.len(), 20, "{seen:?}");
    assert!(seen.iter().all(|line| line.contains("dev-")), "{seen:?}");
}

/// The schema doubles its work at each of 40 levels. Neither the worker nor its
/// end may wait for that.
#[test]
fn a_check_that_does_not_end_holds_nothing_up() {
    let mut schema = json!({"$defs": {"0": {"type": "string"}}, "$ref": "#/$defs/40"});
    for level in 1..=40 {
        let below = json!({"$ref": format!("#/$defs/{}", level - 1)});
        schema["$defs"][level.to_string()] =
            json!({"anyOf": [{"allOf": [below.clone()]}, {"oneOf": [below]}]});
    }
    let schema = TextFile::new("doubling.schema.json", &schema.to_string());
    let vhost = Vhost::new();
    vhost.apply(&of_type(IMMEDIATE, "quorum"));
    vhost.publish("work", "1");
    let handler = Script::new(REMEMBERS);
    let path = schema.path();
    let flags = ["--schema", &path, "--drain-timeout", "0s"];
    let worker = consume(&vhost, &flags, &handler).spawn();
    crate::support::wait_until("the message to be in hand", || vhost.ready("work") == 0);
    worker.signal(rustix::process::Signal::TERM);
    worker.wait().code(0);
    vhost.wait_for_ready("work", 1);
    let flags = ["--schema", &path, "--until-empty"];
    consume(&vhost, &flags, &handler)
        .run()
        .code(0)
        .says(&["took longer than 10s"]);
    vhost.wait_for_ready("dead", 1);
}
