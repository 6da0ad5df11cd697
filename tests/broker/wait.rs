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
