//! Requests to the management API and what their failures mean.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::endpoint::ManagementEndpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::tls::Tls;

use super::reach::{Ask, Reach};

/// A client for one broker's management API, which may be had at several of its
/// nodes.
#[derive(Debug)]
pub struct Management {
    reach: Reach,
}

impl Management {
    /// Prepares the client; nothing is sent yet. The endpoints are nodes of one
    /// broker: the first that can be reached is asked, and kept. `limit` bounds
    /// each request.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when TLS cannot be set up, or when there is
    /// no endpoint or one without a user.
    pub fn new(endpoints: Vec<ManagementEndpoint>, tls: &Tls, limit: Duration) -> Result<Self> {
        let reach = Reach::new(endpoints, tls, limit)?;
        Ok(Self { reach })
    }

    /// Where it asks now.
    #[must_use]
    pub fn endpoint(&self) -> &ManagementEndpoint {
        self.reach.endpoint()
    }

    /// Makes sure that this is the management API of the cluster that AMQP is
    /// connected to: an inferred URL may well lead to a neighbour's broker.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when it is another one.
    pub async fn must_belong_to(&self, cluster: Option<&str>) -> Result<()> {
        let overview: Json = self.get(&["overview"], "ask the management API").await?;
        let ours = overview.get("cluster_name").and_then(Json::as_str);
        match (ours, cluster) {
            (Some(ours), Some(cluster)) if ours != cluster => Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the management API at {} belongs to the cluster '{ours}', but AMQP is connected to '{cluster}'",
                    self.endpoint()
                ),
            )
            .hint("set --management-url (MQ_MANAGEMENT_URL) to the API of the same broker")),
            _ => Ok(()),
        }
    }

    /// Asks for the overview: answers only when the node really serves requests
    /// and knows the user. Gives the version of RabbitMQ.
    ///
    /// # Errors
    /// What keeps it from answering.
    pub async fn version(&self) -> Result<String> {
        let overview: Json = self.get(&["overview"], "ask the management API").await?;
        overview
            .get("rabbitmq_version")
            .and_then(Json::as_str)
            .map(str::to_owned)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Protocol,
                    format!("{} is no RabbitMQ management API", self.endpoint()),
                )
                .hint("check --management-url (MQ_MANAGEMENT_URL)")
            })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str], doing: &str) -> Result<T> {
        self.get_with(path, &[], doing).await
    }

    /// The same with parameters.
    pub(super) async fn get_with<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[(&str, &str)],
        doing: &str,
    ) -> Result<T> {
        let ask = Ask {
            method: Method::GET,
            path,
            parameters,
            body: None,
        };
        let response = self.accepted(&ask, doing).await?;
        self.content(response, doing).await
    }

    /// The same where a broker that is not well answers 503 with what is wrong.
    pub(super) async fn get_even_if_unwell<T: DeserializeOwned>(
        &self,
        path: &[&str],
        doing: &str,
    ) -> Result<T> {
        let ask = Ask {
            method: Method::GET,
            path,
            parameters: &[],
            body: None,
        };
        let response = self.answer(&ask, doing).await?;
        match response.status() {
            StatusCode::SERVICE_UNAVAILABLE => self.content(response, doing).await,
            status if status.is_success() => self.content(response, doing).await,
            status => Err(self.refused(status, response, doing).await),
        }
    }

    /// A list, with parameters of its own.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        parameters: &[(&str, &str)],
        doing: &str,
    ) -> Result<Vec<T>> {
        self.get_with(path, parameters, doing).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &Json,
        doing: &str,
    ) -> Result<T> {
        let ask = Ask {
            method: Method::POST,
            path,
            parameters: &[],
            body: Some(body),
        };
        let response = self.accepted(&ask, doing).await?;
        self.content(response, doing).await
    }

    pub(super) async fn put(&self, path: &[&str], body: &Json, doing: &str) -> Result<()> {
        let ask = Ask {
            method: Method::PUT,
            path,
            parameters: &[],
            body: Some(body),
        };
        self.accepted(&ask, doing).await.map(drop)
    }

    pub(super) async fn delete(&self, path: &[&str], doing: &str) -> Result<()> {
        let ask = Ask {
            method: Method::DELETE,
            path,
            parameters: &[],
            body: None,
        };
        self.accepted(&ask, doing).await.map(drop)
    }

    /// An answer that says yes.
    async fn accepted(&self, ask: &Ask<'_>, doing: &str) -> Result<Response> {
        let response = self.answer(ask, doing).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(self.refused(status, response, doing).await)
    }

    /// URLs cannot name an object called `.` or `..`, however it is escaped: the
    /// request would go to what stands above it.
    async fn answer(&self, ask: &Ask<'_>, doing: &str) -> Result<Response> {
        if let Some(name) = ask
            .path
            .iter()
            .find(|name| matches!(**name, "" | "." | ".."))
        {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{doing}: the management API cannot address the name '{name}'"),
            )
            .hint("use rabbitmqctl for it, and another name in future"));
        }
        self.reach.send(ask, doing).await
    }

    async fn content<T: DeserializeOwned>(&self, response: Response, doing: &str) -> Result<T> {
        let bytes = response
            .bytes()
            .await
            .map_err(|error| self.reach.unreachable(&error, doing))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(
                ErrorKind::Protocol,
                format!(
                    "{doing}: {} gave an answer that cannot be read ({error})",
                    self.endpoint()
                ),
            )
            .hint("check that --management-url (MQ_MANAGEMENT_URL) is a RabbitMQ management API")
        })
    }

    async fn refused(&self, status: StatusCode, response: Response, doing: &str) -> Error {
        let body = response.bytes().await.unwrap_or_default();
        let reason = serde_json::from_slice::<Json>(&body)
            .ok()
            .and_then(|body| body.get("reason").and_then(Json::as_str).map(str::to_owned))
            .unwrap_or_else(|| status.to_string());
        let user = &self.endpoint().user;
        let tag = ["administrator", "policymaker"]
            .into_iter()
            .find(|tag| reason.contains(tag))
            .unwrap_or("management");
        let (kind, hint) = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (
                ErrorKind::AccessRefused,
                format!(
                    "check the password of user '{user}'; it needs the tag {tag} (`rabbitmqctl set_user_tags {user} {tag}`) and permissions in the vhost"
                ),
            ),
            StatusCode::NOT_FOUND => (
                ErrorKind::NotFound,
                "check the name and the vhost (4.3 also answers this to users without access to the vhost)".to_owned(),
            ),
            StatusCode::BAD_REQUEST => (
                ErrorKind::InvalidInput,
                "the broker did not accept the request".to_owned(),
            ),
            status if status.is_server_error() => (
                ErrorKind::Unavailable,
                "the broker may be starting or stopping; run this again".to_owned(),
            ),
            _ => (
                ErrorKind::Protocol,
                "check that --management-url (MQ_MANAGEMENT_URL) is a RabbitMQ management API"
                    .to_owned(),
            ),
        };
        Error::new(
            kind,
            format!(
                "{doing}: the management API at {} says: {reason}",
                self.endpoint()
            ),
        )
        .hint(hint)
    }
}
