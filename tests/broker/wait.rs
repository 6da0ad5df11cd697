//! Waiting until a broker really answers.

use crate::support::Mq;
use crate::vhost::Vhost;

#[test]
fn returns_when_both_answer() {
    let vhost = Vhost::new();
    vhost
        .mq(["wait", "--for", "20s"])
        .run()
        .code(0)
        .shows(&["ready: RabbitMQ", "management at"]);
    let json = vhost.mq(["wait", "-o", "json"]).run().code(0).json();
    assert_eq!(json["ready"], true);
}

#[test]
fn a_refused_login_is_waited_for_and_named_and_never_shown() {
    let vhost = Vhost::new();
    let ran = Mq::new(["wait", "--for", "1s"])
        .env("MQ_URL", vhost.url_of("guest", "sesame"))
        .run()
        .code(69)
        .says(&["Login was refused", "gave up"]);
    assert!(!ran.stderr.contains("sesame"));
}

#[test]
fn amqp_alone_is_enough_when_asked_for() {
    let vhost = Vhost::new();
    let with = |args: &[&str]| {
        vhost
            .mq(args)
            .env("MQ_MANAGEMENT_URL", "http://127.0.0.1:1")
            .run()
    };
    with(&["wait", "--amqp-only"]).code(0);
    with(&["wait", "--for", "1s"])
        .code(69)
        .says(&["management at http://127.0.0.1:1"]);
}

#[test]
fn names_the_management_api_that_answered() {
    let vhost = Vhost::new();
    let good = vhost.management_url.clone();
    let wait = |urls: &str| {
        vhost
            .mq(["wait", "--for", "2s", "-o", "json"])
            .env("MQ_MANAGEMENT_URL", urls)
            .run()
    };
    let json = wait(&format!("http://127.0.0.1:1,{good}")).code(0).json();
    let named = json["management"].as_str().expect("a URL");
    let address = good.rsplit('@').next().expect("an address");
    assert!(named.ends_with(address.trim_end_matches('/')), "{named}");
    wait("http://127.0.0.1:1,http://127.0.0.2:1")
        .code(69)
        .says(&["management at http://127.0.0.1:1, http://127.0.0.2:1"]);
}
