//! What was typed becomes what is meant: endpoints, limits, format.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::amqp::{Connection, Frames};
use crate::cli::{GlobalArgs, LogFormat, OutputFormat};
use crate::endpoint::{DEFAULT_URL, Endpoint, ManagementEndpoint, Secret, Transport};
use crate::error::{Error, ErrorKind, Result};
use crate::given_file;
use crate::management::Management;
use crate::output::{self, Format};
use crate::tls::{Tls, TlsFiles};
use crate::topology::{UserName, VhostName};

/// Everything a command needs to know about its surroundings.
#[derive(Clone, Debug)]
pub(super) struct Session {
    endpoints: Vec<Endpoint>,
    tls: Tls,
    management: Vec<ManagementEndpoint>,
    /// Which of the endpoints was connected to last, where each has its own
    /// management API.
    in_use: Option<Arc<AtomicUsize>>,
    vhost_flag: Option<VhostName>,
    pub(super) limit: Duration,
    pub(super) format: Format,
    quiet: bool,
    /// Whether a progress line may be shown, if there is a terminal.
    pub(super) shows_progress: bool,
}

impl Session {
    /// Flags beat environment beat default; `-v` says which won.
    pub(super) fn new(
        global: GlobalArgs,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let given = |value: Option<String>| value.filter(|text| !text.is_empty());
        let (url, origin) = match (given(global.url), given(environment("AMQP_URL"))) {
            (Some(url), _) => (url, "--url or MQ_URL"),
            (None, Some(url)) => (url, "AMQP_URL"),
            (None, None) => (DEFAULT_URL.to_owned(), "default"),
        };
        let mut endpoints = Endpoint::parse_list(&url)?;
        if let Some(path) = &global.password_file {
            let password = password_in(path, global.timeout)?;
            for endpoint in &mut endpoints {
                endpoint.password = password.clone();
            }
        }
        let vhost_flag = global.vhost.map(VhostName::new).transpose()?;
        if let Some(vhost) = &vhost_flag {
            for endpoint in &mut endpoints {
                *endpoint = endpoint.clone().on_vhost(vhost.clone());
            }
        }
        let first = endpoints.first().ok_or_else(no_url)?;
        for name in endpoints.iter().flat_map(|it| &it.ignored) {
            tracing::warn!("the parameter '{name}' in {origin} has no effect on mq");
        }
        let (management, in_use) = match given(global.management_url) {
            Some(url) => (ManagementEndpoint::parse_list(&url, first)?, None),
            None => (
                endpoints
                    .iter()
                    .map(ManagementEndpoint::inferred)
                    .collect::<Result<_>>()?,
                Some(Arc::default()),
            ),
        };
        let named = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        let tls = Tls::new(TlsFiles {
            ca_cert: named(global.tls.ca_cert),
            client_cert: named(global.tls.client_cert),
            client_key: named(global.tls.client_key),
            insecure: global.tls.insecure,
        })?;
        let amqp = addresses(&endpoints);
        tracing::info!(
            amqp,
            from = origin,
            management = addresses(&management),
            "endpoints"
        );
        let speaks_tls = endpoints.iter().any(|it| it.transport == Transport::Tls)
            || management.iter().any(|it| it.tls_host().is_some());
        if tls.is_asked_for() && !speaks_tls {
            tracing::info!("the flags about TLS have no effect: no URL is amqps:// or https://");
        }
        Ok(Self {
            endpoints,
            tls,
            management,
            in_use,
            vhost_flag,
            limit: global.timeout,
            format: match global.output {
                OutputFormat::Table => Format::Table,
                OutputFormat::Json => Format::Json,
                OutputFormat::Jsonl => Format::JsonLines,
            },
            quiet: global.quiet,
            shows_progress: !global.quiet && global.log_format == LogFormat::Text,
        })
    }

    /// The vhost to use: the flag's, else the URL's.
    pub(super) fn vhost(&self) -> Result<&VhostName> {
        Ok(&self.endpoints.first().ok_or_else(no_url)?.vhost)
    }

    /// The user that logs in over AMQP; empty where only the broker knows it.
    pub(super) fn user(&self) -> Result<&str> {
        Ok(&self.endpoints.first().ok_or_else(no_url)?.user)
    }

    /// The same where nothing can be done without knowing it.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] where only the broker knows it.
    pub(super) fn known_user(&self) -> Result<&str> {
        match self.user()? {
            "" => Err(Error::new(
                ErrorKind::Configuration,
                "which user logs in is not known: the AMQP URL leaves it to the certificate",
            )
            .hint("put the name that the broker takes from the certificate into the URL: amqps://NAME@HOST/VHOST?auth_mechanism=external")),
            user => Ok(user),
        }
    }

    /// Whether a user of the cluster is the one that logs in, on either way.
    pub(super) fn works_as(&self, user: &UserName) -> Result<bool> {
        let name = user.as_str();
        Ok(name == self.known_user()? || self.management.iter().any(|it| name == it.user))
    }

    /// Uses a file's vhost, unless a flag named one.
    pub(super) fn prefer_vhost(&mut self, vhost: Option<&VhostName>) {
        if let (Some(vhost), None) = (vhost, &self.vhost_flag) {
            self.use_vhost(vhost);
        }
    }

    /// Uses this vhost, whatever was said.
    pub(super) fn use_vhost(&mut self, vhost: &VhostName) {
        for endpoint in &mut self.endpoints {
            *endpoint = endpoint.clone().on_vhost(vhost.clone());
        }
    }

    /// The endpoints as they are named in messages.
    pub(super) fn amqp_address(&self) -> String {
        addresses(&self.endpoints)
    }

    /// The same of the management API.
    pub(super) fn management_address(&self) -> String {
        addresses(&self.management)
    }

    /// Opens an AMQP connection.
    pub(super) async fn connect(&self, name: &str, frames: Frames) -> Result<Connection> {
        self.open(&self.endpoints, name, self.limit, frames).await
    }

    async fn open(
        &self,
        endpoints: &[Endpoint],
        name: &str,
        limit: Duration,
        frames: Frames,
    ) -> Result<Connection> {
        let connection = Connection::open(endpoints, &self.tls, name, limit, frames).await?;
        let found = endpoints.iter().position(|it| it == connection.endpoint());
        if let (Some(in_use), Some(found)) = (&self.in_use, found) {
            in_use.store(found, Ordering::Relaxed);
        }
        Ok(connection)
    }

    /// The same in another vhost than the session's.
    pub(super) async fn connect_to(&self, vhost: &VhostName, name: &str) -> Result<Connection> {
        let there = |endpoint: &Endpoint| endpoint.clone().on_vhost(vhost.clone());
        let endpoints: Vec<Endpoint> = self.endpoints.iter().map(there).collect();
        self.open(&endpoints, name, self.limit, Frames::Small).await
    }

    /// The cluster that answers at the first URL that answers at all.
    pub(super) async fn greeted_by(&self) -> Option<String> {
        for endpoint in &self.endpoints {
            if let Some(cluster) = Connection::cluster_at(endpoint, &self.tls, self.limit).await {
                return Some(cluster);
            }
        }
        None
    }

    /// The same, with another limit for each step.
    pub(super) async fn connect_within(&self, name: &str, limit: Duration) -> Result<Connection> {
        self.open(&self.endpoints, name, limit, Frames::Small).await
    }

    /// A client for the management API.
    pub(super) fn management(&self) -> Result<Management> {
        self.management_within(self.limit)
    }

    /// The same, once it has proved to be of the cluster that AMQP is connected to.
    pub(super) async fn management_of(&self, cluster: Option<&str>) -> Result<Management> {
        let management = self.management()?;
        management.must_belong_to(cluster).await?;
        Ok(management)
    }

    /// A client with another limit for each request.
    pub(super) fn management_within(&self, limit: Duration) -> Result<Management> {
        let mut nodes = self.management.clone();
        if let Some(in_use) = &self.in_use {
            let first = in_use.load(Ordering::Relaxed).min(nodes.len());
            nodes.rotate_left(first);
        }
        Management::new(nodes, &self.tls, limit)
    }

    /// A success message for people: only in the table format, and not with `--quiet`.
    pub(super) fn say(&self, text: impl FnOnce() -> String) -> Result<()> {
        if self.quiet {
            Ok(())
        } else {
            output::data(&text())
        }
    }

    /// Something that people should know, on standard error; not with `--quiet`,
    /// nor when there is nothing to say.
    pub(super) fn warn(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            let text = text();
            if !text.is_empty() {
                output::talk(&text);
            }
        }
    }

    /// Prints a result in the format asked for.
    pub(super) fn report(
        &self,
        text: impl FnOnce() -> String,
        json: impl FnOnce() -> serde_json::Value,
    ) -> Result<()> {
        match self.format {
            Format::Table => self.say(text),
            Format::Json => output::data(&output::json_pretty(&json())),
            Format::JsonLines => output::data(&output::json_line(&json())),
        }
    }
}

/// The first line of a file.
fn password_in(path: &Path, limit: Duration) -> Result<Secret> {
    let text = given_file::read(path, limit).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    });
    let text = text.map_err(|error| {
        Error::new(
            ErrorKind::Configuration,
            format!("cannot read the password file {}: {error}", path.display()),
        )
        .hint("check --password-file (MQ_PASSWORD_FILE)")
    })?;
    Ok(Secret::new(text.lines().next().unwrap_or_default()))
}

/// URLs as they are named in messages.
fn addresses(all: &[impl ToString]) -> String {
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn no_url() -> Error {
    Error::new(ErrorKind::Configuration, "no AMQP URL is given").hint("set --url or MQ_URL")
}
