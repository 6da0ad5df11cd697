//! A vhost for one test, and what a test needs to know and do in it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test support: helpers are outside #[test] functions and read the environment"
)]

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, ConnectionProperties};
use mq::amqp::{Connection, Frames};
use mq::broker::BrokerFacts;
use mq::endpoint::{Endpoint, ManagementEndpoint};
use mq::tls::{Tls, TlsFiles};
use mq::topology::{QueueName, VhostName};
use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::support::{Mq, TextFile, wait_for};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A vhost that exists as long as the test.
pub(crate) struct Vhost {
    pub(crate) name: String,
    endpoint: Endpoint,
    management: ManagementEndpoint,
    pub(crate) management_url: String,
    users: Vec<String>,
}

pub(crate) fn required(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: a broker test needs a broker (for MQ_TLS_…: one of Debian's package, started anew where openssl is); run scripts/test, or eval \"$(scripts/broker env 4.0)\"")
    })
}

/// For connections that are plain TCP.
pub(crate) fn no_tls() -> Tls {
    Tls::new(TlsFiles::default()).unwrap()
}

/// Runs async code of a test's own client.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

impl Vhost {
    pub(crate) fn new() -> Self {
        let url = required("MQ_URL");
        let management_url = required("MQ_MANAGEMENT_URL");
        let amqp = Endpoint::parse(&url).unwrap();
        let management = ManagementEndpoint::parse(&management_url, &amqp).unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A name that needs escaping everywhere it appears.
        let name = format!("mq test/{}-{number} é", std::process::id());
        let vhost = Self {
            endpoint: amqp.on_vhost(VhostName::new(name.clone()).unwrap()),
            name,
            management,
            management_url,
            users: Vec::new(),
        };
        vhost.api(Method::PUT, &["vhosts", &vhost.name], &json!({}));
        let everything = json!({"configure": ".*", "write": ".*", "read": ".*"});
        let user = vhost.endpoint.user.clone();
        vhost.api(
            Method::PUT,
            &["permissions", &vhost.name, &user],
            &everything,
        );
        vhost
    }

    /// mq, talking to this vhost.
    pub(crate) fn mq<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Mq {
        Mq::new(args)
            .env("MQ_URL", self.url())
            .env("MQ_MANAGEMENT_URL", &self.management_url)
    }

    pub(crate) fn url(&self) -> String {
        self.url_of(&self.endpoint.user, self.endpoint.password.reveal())
    }

    pub(crate) fn url_of(&self, user: &str, password: &str) -> String {
        self.url_at(user, password, &self.endpoint.address())
    }

    pub(crate) fn url_at(&self, user: &str, password: &str, address: &str) -> String {
        format!(
            "amqp://{user}:{password}@{address}/{}",
            mq::endpoint::path_segment(&self.name)
        )
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    pub(crate) fn address(&self) -> String {
        self.endpoint.address()
    }

    /// A request to the management API that must succeed.
    pub(crate) fn api(&self, method: Method, path: &[&str], body: &Json) -> Json {
        block_on(self.ask(method, path, body))
    }

    /// The same within async code.
    pub(crate) async fn ask(&self, method: Method, path: &[&str], body: &Json) -> Json {
        let url = self.management.api(path);
        let user = self.management.user.clone();
        let password = self.management.password.reveal().to_owned();
        let answer = reqwest::Client::new()
            .request(method, url)
            .basic_auth(user, Some(password))
            .json(body)
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path:?}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Json::Null)
    }

    pub(crate) fn get(&self, path: &[&str]) -> Json {
        self.api(Method::GET, path, &json!({}))
    }

    /// The broker's version, such as `(4, 0)`.
    pub(crate) fn version(&self) -> (u32, u32) {
        let overview = self.get(&["overview"]);
        let version = overview["rabbitmq_version"].as_str().unwrap().to_owned();
        let mut parts = version.split('.').map(|part| part.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    }

    /// What mq knows of a broker of this version.
    pub(crate) fn facts(&self) -> BrokerFacts {
        let overview = self.get(&["overview"]);
        BrokerFacts::new("RabbitMQ", overview["rabbitmq_version"].as_str().unwrap())
    }

    /// A user of this test's own with these permissions here.
    pub(crate) fn user(&mut self, configure: &str, write: &str, read: &str, tags: &str) -> String {
        let name = format!(
            "mq-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let user = json!({"password": "pw", "tags": tags});
        self.api(Method::PUT, &["users", &name], &user);
        let permissions = json!({"configure": configure, "write": write, "read": read});
        self.api(
            Method::PUT,
            &["permissions", &self.name, &name],
            &permissions,
        );
        self.users.push(name.clone());
        name
    }

    /// `mq topology` with a file written here, given on standard input.
    pub(crate) fn topology(&self, text: &str, args: &[&str]) -> Mq {
        let words = ["topology"].iter().chain(args).chain(&["-"]);
        self.mq(words).stdin(text)
    }

    /// Applies a topology written here, whatever the lint says of it.
    pub(crate) fn apply(&self, yaml: &str) {
        let file = TextFile::new("t.yaml", &format!("version: 1\n{yaml}"));
        self.mq(["topology", "apply", "--no-lint", &file.path()])
            .run()
            .code(0);
    }

    pub(crate) fn publish(&self, queue: &str, body: &str) {
        self.mq(["publish", "-q", queue, "-"])
            .stdin(body)
            .run()
            .code(0);
    }

    /// Publishes many bodies with one connection.
    pub(crate) fn publish_all(&self, queue: &str, bodies: &[String]) {
        self.publish_raw(
            queue,
            &bodies
                .iter()
                .map(|body| (body.clone().into_bytes(), BasicProperties::default()))
                .collect::<Vec<_>>(),
        );
    }

    /// Publishes with a client that checks nothing.
    pub(crate) fn publish_raw(&self, queue: &str, messages: &[(Vec<u8>, BasicProperties)]) {
        block_on(async {
            let connection =
                lapin::Connection::connect(&self.url(), ConnectionProperties::default())
                    .await
                    .unwrap();
            let channel = connection.create_channel().await.unwrap();
            channel
                .confirm_select(ConfirmSelectOptions::default())
                .await
                .unwrap();
            for (body, properties) in messages {
                let confirmed = channel
                    .basic_publish(
                        "".into(),
                        queue.into(),
                        BasicPublishOptions::default(),
                        body,
                        properties.clone(),
                    )
                    .await
                    .unwrap()
                    .await
                    .unwrap();
                assert!(confirmed.is_ack());
            }
            connection.close(200, "bye".into()).await.unwrap();
        });
    }

    /// Ready messages, asked over AMQP because that is never stale.
    pub(crate) fn ready(&self, queue: &str) -> u32 {
        block_on(async {
            let connection = Connection::open(
                std::slice::from_ref(&self.endpoint),
                &no_tls(),
                "test",
                Duration::from_secs(10),
                Frames::Large,
            )
            .await
            .unwrap();
            let status = connection
                .queue_status(&QueueName::new(queue).unwrap())
                .await
                .unwrap();
            connection.close().await;
            status.map_or_else(|| panic!("queue {queue} does not exist"), |s| s.ready)
        })
    }

    #[track_caller]
    pub(crate) fn wait_for_ready(&self, queue: &str, count: u32) {
        wait_for(&format!("{count} ready in {queue}"), || {
            let ready = self.ready(queue);
            let told = || {
                format!(
                    "(there are {ready}): {}",
                    self.get(&["queues", &self.name, queue])
                )
            };
            (ready == count).then_some(()).ok_or_else(told)
        });
    }

    pub(crate) fn delete_queue(&self, queue: &str) {
        self.api(Method::DELETE, &["queues", &self.name, queue], &json!({}));
    }

    /// What `mq dlq inspect` says of a queue that may be looked at.
    pub(crate) fn inspect(&self, queue: &str) -> Json {
        self.mq(["dlq", "inspect", queue, "-o", "json"])
            .run()
            .code(0)
            .json()
    }
}

impl Drop for Vhost {
    fn drop(&mut self) {
        for user in &self.users {
            self.api(Method::DELETE, &["users", user], &json!({}));
        }
        self.api(Method::DELETE, &["vhosts", &self.name], &json!({}));
    }
}
