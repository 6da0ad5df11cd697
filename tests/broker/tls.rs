//! TLS: whom mq trusts, who it is, and what it says when it cannot be.
//!
//! The node of `MQ_TLS_URL` takes AMQP only from clients with a certificate.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers are outside #[test] functions and read the node's CA"
)]

mod several;

use std::ffi::OsStr;

use mq::endpoint::path_segment;

use crate::support::certificates::{Authority, Issued, expired, for_clients, not_yet, self_signed};
use crate::support::{Mq, TextFile};
use crate::tls_server::tls_server;
use crate::vhost::{Vhost, required};

const QUEUES: &str = "
exchanges: { dlx: { type: fanout } }
queues:
  work: { dead_letter: { exchange: dlx } }
  dead: { bind: [ { exchange: dlx } ] }
";

/// A node with TLS, and a vhost on it.
struct Node {
    vhost: Vhost,
    authority: Authority,
    ca: TextFile,
}

impl Node {
    fn new() -> Self {
        let read = |name: &str| {
            std::fs::read_to_string(format!("{}/{name}", required("MQ_TLS_DIR"))).unwrap()
        };
        let authority = Authority::existing("mq test CA", read("ca.pem"), &read("ca.key"));
        Self {
            vhost: Vhost::new(),
            ca: authority.file(),
            authority,
        }
    }

    /// `amqps://LOGIN@localhost:PORT/VHOST` of the node.
    fn url(&self, login: &str) -> String {
        let url = required("MQ_TLS_URL");
        let address = url.rsplit('@').next().unwrap().split('/').next().unwrap();
        let vhost = path_segment(&self.vhost.name);
        format!("amqps://{login}{address}/{vhost}")
    }

    /// mq that talks TLS with everything, and trusts the node's CA.
    fn mq<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Mq {
        Mq::new(args)
            .env("MQ_URL", self.url("guest:guest@"))
            .env("MQ_MANAGEMENT_URL", required("MQ_TLS_MANAGEMENT_URL"))
            .env("MQ_CA_CERT", self.ca.path())
    }

    fn publish(&self) -> Mq {
        self.mq(["publish", "-q", "work", "-"]).stdin("x")
    }
}

/// mq at a TLS server of the test's own in front of the plain broker.
fn at(vhost: &Vhost, host: &str, port: u16) -> Mq {
    let url = vhost.url_at("guest", "guest", &format!("{host}:{port}"));
    Mq::new(["wait", "--amqp-only", "--for", "1s"]).env("MQ_URL", url.replace("amqp:", "amqps:"))
}

#[test]
fn every_command_talks_tls() {
    let node = Node::new();
    let client = node.authority.issue("anybody", &[]);
    let (cert, key) = (client.cert_file(), client.key_file());
    let mq = |args: &[&str]| {
        node.mq(args)
            .env("MQ_CLIENT_CERT", cert.path())
            .env("MQ_CLIENT_KEY", key.path())
    };
    mq(&["wait", "--for", "10s"]).run().code(0);
    mq(&["topology", "apply", "-"])
        .stdin(format!("version: 1\n{QUEUES}"))
        .run()
        .code(0)
        .shows(&["4 created"]);
    mq(&["publish", "-q", "work", "-"]).stdin("x").run().code(0);
    mq(&["consume", "work", "--until-empty", "--print"])
        .run()
        .code(0);
    assert_eq!(node.vhost.ready("work"), 0);
    mq(&["dlq", "list"]).run().code(0).shows(&["dead"]);
    // Copies are published on a connection of their own, over TLS too.
    node.vhost.publish("work", "bad");
    mq(&[
        "consume",
        "work",
        "--until-empty",
        "--strategy",
        "immediate",
        "--max-attempts",
        "1",
        "--exec",
        "false",
    ])
    .run()
    .code(0);
    node.vhost.wait_for_ready("dead", 1);
    // Both in one file need no second flag.
    let both = client.file();
    node.publish()
        .args(["--client-cert", &both.path()])
        .run()
        .code(0);
    assert_eq!(node.vhost.ready("work"), 1);
}

#[test]
fn the_management_api_is_checked_too() {
    let node = Node::new();
    let list = || node.mq(["dlq", "list"]);
    list().run().code(0);
    list().env("MQ_CA_CERT", "").run().code(69).says(&[
        "of localhost ('CN=mq test broker') is issued by 'CN=mq test CA'",
        "the system's store",
        "--ca-cert",
    ]);
    let stranger = Authority::new("Stranger").file();
    list()
        .args(["--ca-cert", &stranger.path()])
        .run()
        .code(69)
        .says(&[
            "is issued by 'CN=mq test CA'",
            &stranger.path(),
            "trusts 'CN=Stranger'",
        ]);
    let ran = list()
        .args(["--ca-cert", &stranger.path(), "--insecure", "--quiet"])
        .run()
        .code(0);
    assert_eq!(
        ran.stderr.matches("--insecure").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("not checked"), "{}", ran.stderr);
}

#[test]
fn a_broker_that_wants_a_certificate_gets_it_or_is_told_of() {
    let node = Node::new();
    node.vhost.apply(QUEUES);
    node.publish().run().code(69).says(&[
        "the broker wants a client certificate, and none was given",
        "--client-cert",
    ]);
    let with = |client: &Issued| {
        let file = client.file();
        let ran = node.publish().args(["--client-cert", &file.path()]).run();
        (ran, file.path())
    };
    let (ran, path) = with(&Authority::new("Stranger").issue("evil", &[]));
    // 3.10 hangs up at times before its reason arrives.
    ran.code(69).says(&[
        "the client certificate in",
        &path,
        "'CN=evil'",
        "'CN=Stranger'",
    ]);
    let (ran, path) = with(&node.authority.issue_with("old", &[], expired));
    ran.code(69).says(&[
        "the client certificate in",
        &path,
        "'CN=old'",
        "2020-01-02T00:00:00Z",
    ]);
    let (ran, path) = with(&node.authority.issue_with("early", &[], not_yet));
    let ran = ran.code(69).says(&[
        &path,
        "'CN=early'",
        "it is not valid before 2400-01-02T00:00:00Z",
    ]);
    assert!(!ran.stderr.contains("expired"), "{}", ran.stderr);
    let (ran, _) = with(&self_signed("self", &[]));
    ran.code(69).says(&["'CN=self'"]);
    let (ran, _) = with(&node.authority.issue_with("good", &[], for_clients));
    ran.code(0);
    // A certificate does not replace the password.
    let good = node.authority.issue("good", &[]).file();
    node.publish()
        .env("MQ_CLIENT_CERT", good.path())
        .args(["-u", &node.url("guest:wrong@")])
        .run()
        .code(77)
        .says(&["Login was refused"]);
    assert_eq!(node.vhost.ready("work"), 1);
}

#[test]
fn a_certificate_can_be_the_login() {
    let mut node = Node::new();
    node.vhost.apply(QUEUES);
    let user = node.vhost.user(".*", ".*", ".*", "");
    let client = node.authority.issue(&user, &[]).file();
    let external = format!("{}?auth_mechanism=external", node.url(""));
    let publish = || node.publish().args(["-u", &external]);
    publish().env("MQ_CLIENT_CERT", client.path()).run().code(0);
    assert_eq!(node.vhost.ready("work"), 1);
    // Without one nothing is sent.
    publish().run().code(78).says(&[
        "auth_mechanism=external",
        "no client certificate",
        "--client-cert",
    ]);
    let nobody = node.authority.issue("mq-test-nobody", &[]).file();
    publish()
        .env("MQ_CLIENT_CERT", nobody.path())
        .run()
        .code(77)
        .says(&[
            "Login was refused",
            "EXTERNAL",
            "'CN=mq-test-nobody' by default",
            "'mq-test-nobody' with `ssl_cert_login_from = common_name`",
        ]);
    // The management API has a login of its own.
    let address = required("MQ_TLS_MANAGEMENT_URL").replace("guest:guest@", "");
    let list = node.mq(["dlq", "list", "-u", &external, "--management-url", &address]);
    list.run()
        .code(78)
        .says(&["no user to ask the management API", "USER:PASSWORD"]);
    // What is about the user itself needs its name.
    let apply = |url: &str| {
        node.mq(["topology", "apply", "--create-vhost", "-u", url, "-"])
            .env("MQ_CLIENT_CERT", client.path())
            .stdin(format!("version: 1\n{QUEUES}"))
            .run()
    };
    apply(&external)
        .code(78)
        .says(&["which user logs in", "amqps://NAME@"]);
    let named = format!("{}?auth_mechanism=external", node.url(&format!("{user}@")));
    apply(&named).code(0);
}

#[test]
fn a_server_is_who_its_certificate_says() {
    let vhost = Vhost::new();
    let ours = Authority::new("Ours");
    let ca = ours.file();
    let server = |issued: &Issued| tls_server(issued, vhost.address());
    let run = |host: &str, port: u16| at(&vhost, host, port).env("MQ_CA_CERT", ca.path()).run();

    let both = server(&ours.issue("both", &["localhost", "127.0.0.1"]));
    run("localhost", both).code(0);
    run("127.0.0.1", both).code(0);
    at(&vhost, "localhost", both)
        .run()
        .code(69)
        .says(&["('CN=both') is issued by 'CN=Ours'", "the system's store"]);

    let named = server(&ours.issue("named", &["broker.example", "*.shop.example"]));
    run("localhost", named).code(69).says(&[
        "is for broker.example, *.shop.example, not for localhost",
        "subjectAltName=DNS:localhost",
    ]);
    run("127.0.0.1", named)
        .code(69)
        .says(&["not for 127.0.0.1", "subjectAltName=IP:127.0.0.1"]);
    let unnamed = server(&ours.issue("localhost", &[]));
    run("localhost", unnamed)
        .code(69)
        .says(&["names no host", "the CN does not count"]);

    let old = server(&ours.issue_with("old", &["localhost"], expired));
    run("localhost", old)
        .code(69)
        .says(&["('CN=old') expired on 2020-01-02T00:00:00Z", "renew"]);
    at(&vhost, "localhost", old)
        .args(["--insecure"])
        .run()
        .code(0)
        .says(&["--insecure"]);
    let early = server(&ours.issue_with("early", &["localhost"], not_yet));
    run("localhost", early)
        .code(69)
        .says(&["not valid before 2400-01-02", "clock"]);
    let client = server(&ours.issue_with("client", &["localhost"], for_clients));
    run("localhost", client)
        .code(69)
        .says(&["not one for servers"]);
}

#[test]
fn a_servers_own_certificate_can_be_the_trusted_one() {
    let vhost = Vhost::new();
    let alone = self_signed("alone", &["localhost"]);
    let port = tls_server(&alone, vhost.address());
    let own = alone.cert_file();
    let run = |host: &str| at(&vhost, host, port).env("MQ_CA_CERT", own.path()).run();
    run("localhost").code(0);
    run("127.0.0.1")
        .code(69)
        .says(&["is for localhost, not for 127.0.0.1"]);
    at(&vhost, "localhost", port)
        .run()
        .code(69)
        .says(&["that very certificate with --ca-cert"]);
    let twin = self_signed("alone", &["localhost"]).cert_file();
    at(&vhost, "localhost", port)
        .env("MQ_CA_CERT", twin.path())
        .run()
        .code(69);
}

#[test]
fn a_port_that_speaks_otherwise_is_told() {
    let node = Node::new();
    let plain = format!("amqps://{}/%2f", node.vhost.address());
    node.publish()
        .args(["-u", &plain])
        .run()
        .code(69)
        .says(&["does not speak TLS", "amqp://"]);
    let address = node.vhost.management_url.replace("http:", "https:");
    node.mq(["dlq", "list", "--management-url", &address])
        .run()
        .code(69)
        .says(&["does not speak TLS", "http://"]);
    let list = |address: &str| {
        node.mq(["dlq", "list", "--management-url", address])
            .run()
            .code(69)
    };
    let management = required("MQ_TLS_MANAGEMENT_URL");
    list(&management.replace("https:", "http:")).says(&["https://", "--management-url"]);
    list(&format!("http://guest:guest@{}", node.vhost.address())).says(&["does not speak HTTP"]);
    list(&format!("https://guest:guest@{}", node.vhost.address())).says(&["AMQP's ports"]);
    let address = management.rsplit('@').next().unwrap();
    let ran = node
        .publish()
        .args(["-u", &format!("amqps://guest:guest@{address}/%2f")])
        .run()
        .code(69)
        .says(&["HTTP"]);
    assert!(!ran.stderr.contains("docs.rs"), "{}", ran.stderr);
    let tls = required("MQ_TLS_URL").replace("amqps:", "amqp:");
    let ran = node.publish().args(["-u", &tls]).run();
    assert!([69, 76].contains(&ran.code), "{}", ran.stderr);
}
