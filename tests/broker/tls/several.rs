//! Several URLs: what does not work is passed over, and told.

use mq::endpoint::path_segment;
use rustix::process::Signal;

use super::{Node, QUEUES};
use crate::proxy::Proxy;
use crate::support::certificates::{Authority, expired};
use crate::support::{Mq, wait_until};
use crate::tls_server::tls_server;
use crate::vhost::{Vhost, required};

#[test]
fn the_next_url_is_tried_when_one_does_not_work() {
    let node = Node::new();
    node.vhost.apply(QUEUES);
    let good = node.vhost.url();
    let expired = Authority::new("Old").issue_with("old", &["localhost"], expired);
    let expired = tls_server(&expired, node.vhost.address());
    let mut count = 0;
    for broken in [
        "amqp://127.0.0.1:1".to_owned(),
        "amqps://127.0.0.1:1".to_owned(),
        "amqp://no-such-host.invalid".to_owned(),
        format!("amqps://localhost:{expired}"),
        node.url("guest:guest@"),
        node.vhost.url_of("guest", "wrong"),
        node.vhost.url_of("nobody-here", "x"),
    ] {
        let ran = node
            .publish()
            .args(["-v", "-u", &format!("{broken},{good}")])
            .run()
            .code(0);
        assert!(ran.stderr.contains("cannot connect"), "{}", ran.stderr);
        let falls_back = broken.starts_with("amqps:");
        assert_eq!(
            ran.stderr.contains("without TLS"),
            falls_back,
            "{}",
            ran.stderr
        );
        count += 1;
        assert_eq!(node.vhost.ready("work"), count, "{broken}");
    }
    // All that failed are told.
    let last = format!("amqps://localhost:{expired},amqp://127.0.0.1:1");
    node.publish().args(["-u", &last]).run().code(69).says(&[
        "connection refused",
        "the other URLs",
        "('CN=old')",
    ]);
    // A file of ours that is wrong is no reason to go on without TLS.
    node.publish()
        .args([
            "-u",
            &format!("{},{good}", node.url("")),
            "--ca-cert",
            "/no/such.pem",
        ])
        .run()
        .code(78)
        .says(&["/no/such.pem"]);
    assert_eq!(node.vhost.ready("work"), count);
}

#[test]
fn the_next_node_is_asked_when_one_has_no_management() {
    let node = Node::new();
    let urls = format!("https://127.0.0.1:1,{}", required("MQ_TLS_MANAGEMENT_URL"));
    node.mq(["dlq", "list", "--management-url", &urls])
        .run()
        .code(0);
    // Going on without TLS is told, and not kept quiet.
    let plain = &node.vhost.management_url;
    let urls = format!("https://127.0.0.1:1,{plain}");
    let ran = node
        .mq(["dlq", "list", "--quiet", "--management-url", &urls])
        .run()
        .code(0);
    let told = ran.stderr.matches("without TLS").count();
    assert_eq!(told, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("https://127.0.0.1:1"), "{}", ran.stderr);
    let urls = format!("http://127.0.0.1:1,{plain}");
    let ran = node.mq(["dlq", "list", "--management-url", &urls]).run();
    let ran = ran.code(0);
    assert!(!ran.stderr.contains("without TLS"), "{}", ran.stderr);
    node.mq([
        "dlq",
        "list",
        "--management-url",
        "http://127.0.0.1:1,http://127.0.0.2:1",
    ])
    .run()
    .code(69)
    .says(&["at http://127.0.0.1:1 ", "at http://127.0.0.2:1 "]);
}

/// The second node has its management API at the usual port, the first has none.
#[test]
fn a_management_api_that_is_not_named_is_found_at_any_of_the_nodes() {
    let vhost = Vhost::new();
    vhost.apply(QUEUES);
    // All of 127.0.0.0/8 is this machine; nobody else has this address now.
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{low}.77", high.max(1));
    let management = vhost.management_url.rsplit(['@', '/']).next().unwrap();
    let _management = Proxy::at(&format!("{host}:15672"), management.to_owned());
    let amqp = Proxy::at(&format!("{host}:0"), vhost.address());
    let url = format!(
        "{},{}",
        vhost.url_at("guest", "guest", "127.254.254.254:1"),
        vhost.url_at("guest", "guest", &amqp.address)
    );
    let mq = |args: &[&str]| Mq::new(args).args(["-v", "-u", &url]);
    let ran = mq(&["dlq", "list"]).run().code(0).shows(&["dead"]);
    assert!(ran.stderr.contains("cannot connect"), "{}", ran.stderr);
    // Once AMQP has found the node, nobody else is asked.
    let ran = mq(&["topology", "apply", "-"]);
    let ran = ran.stdin(format!("version: 1\n{QUEUES}")).run().code(0);
    let asked = ran
        .stderr
        .matches("at http://127.254.254.254:15672")
        .count();
    assert_eq!(asked, 0, "{}", ran.stderr);
}

#[test]
fn a_worker_goes_on_at_the_next_node() {
    let node = Node::new();
    node.vhost.apply(QUEUES);
    let ours = Authority::new("Ours");
    let ca = ours.file();
    let port = tls_server(&ours.issue("second", &["localhost"]), node.vhost.address());
    let first = Proxy::to(node.vhost.address());
    let vhost = path_segment(&node.vhost.name);
    let urls = format!(
        "{},amqps://guest:guest@localhost:{port}/{vhost}",
        node.vhost.url_at("guest", "guest", &first.address)
    );
    let mut worker = node
        .vhost
        .mq(["consume", "work", "--print", "-v", "-u", &urls])
        .env("MQ_CA_CERT", ca.path())
        .spawn();
    node.vhost.publish("work", "one");
    wait_until("the first message", || {
        worker.stdout_so_far().contains("one")
    });
    first.let_through(false);
    first.cut();
    worker.wait_for_stderr("reconnected");
    node.vhost.publish("work", "two");
    wait_until("the second message", || {
        worker.stdout_so_far().contains("two")
    });
    worker.signal(Signal::TERM);
    worker.wait().code(0);
}
