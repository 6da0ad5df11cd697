//! What was typed becomes what is meant: endpoints, limits, format.
#![expect(
    clippy::disallowed_methods,
    reason = "the edge where the password file is read"
)]

use std::time::Duration;

use crate::amqp::{Connection, Frames};
use crate::cli::{GlobalArgs, LogFormat, OutputFormat};
use crate::endpoint::{DEFAULT_URL, Endpoint, ManagementEndpoint, Secret};
use crate::error::{Error, ErrorKind, Result};
use crate::management::Management;
use crate::output::{self, Format};
use crate::topology::{UserName, VhostName};

/// Everything a command needs to know about its surroundings.
#[derive(Clone, Debug)]
pub(super) struct Session {
    endpoints: Vec<Endpoint>,
    management: ManagementEndpoint,
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
            let text = std::fs::read_to_string(path).map_err(|error| {
                Error::new(
                    ErrorKind::Configuration,
                    format!("cannot read the password file {}: {error}", path.display()),
                )
                .hint("check --password-file (MQ_PASSWORD_FILE)")
            })?;
            let password = Secret::new(text.lines().next().unwrap_or_default());
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
        let management = match given(global.management_url) {
            Some(url) => ManagementEndpoint::parse(&url, first)?,
            None => ManagementEndpoint::inferred(first)?,
        };
        tracing::info!(amqp = %first, from = origin, management = %management, "endpoints");
        Ok(Self {
            endpoints,
            management,
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

    /// The user that logs in over AMQP.
    pub(super) fn user(&self) -> Result<&str> {
        Ok(&self.endpoints.first().ok_or_else(no_url)?.user)
    }

    /// Whether a user of the cluster is the one that logs in, on either way.
    pub(super) fn works_as(&self, user: &UserName) -> Result<bool> {
        Ok(user.as_str() == self.user()? || user.as_str() == self.management.user)
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
        let names: Vec<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        names.join(", ")
    }

    /// Opens an AMQP connection.
    pub(super) async fn connect(&self, name: &str, frames: Frames) -> Result<Connection> {
        Connection::open(&self.endpoints, name, self.limit, frames).await
    }

    /// The same in another vhost than the session's.
    pub(super) async fn connect_to(&self, vhost: &VhostName, name: &str) -> Result<Connection> {
        let there = |endpoint: &Endpoint| endpoint.clone().on_vhost(vhost.clone());
        let endpoints: Vec<Endpoint> = self.endpoints.iter().map(there).collect();
        Connection::open(&endpoints, name, self.limit, Frames::Small).await
    }

    /// The cluster that answers at the first URL that answers at all.
    pub(super) async fn greeted_by(&self) -> Option<String> {
        for endpoint in &self.endpoints {
            if let Some(cluster) = Connection::cluster_at(endpoint, self.limit).await {
                return Some(cluster);
            }
        }
        None
    }

    /// The same, with another limit for each step.
    pub(super) async fn connect_within(&self, name: &str, limit: Duration) -> Result<Connection> {
        Connection::open(&self.endpoints, name, limit, Frames::Small).await
    }

    /// A client for the management API.
    pub(super) fn management(&self) -> Result<Management> {
        Management::new(self.management.clone(), self.limit)
    }

    /// The same, once it has proved to be of the cluster that AMQP is connected to.
    pub(super) async fn management_of(&self, cluster: Option<&str>) -> Result<Management> {
        let management = self.management()?;
        management.must_belong_to(cluster).await?;
        Ok(management)
    }

    /// A client with another limit for each request.
    pub(super) fn management_within(&self, limit: Duration) -> Result<Management> {
        Management::new(self.management.clone(), limit)
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

fn no_url() -> Error {
    Error::new(ErrorKind::Configuration, "no AMQP URL is given").hint("set --url or MQ_URL")
}
