//! What may stand behind the `?` of an AMQP URL.
//!
//! Source: RabbitMQ's "URI Query Parameters" page. What is a flag of mq's is
//! refused with the flag's name, for a switch that is silently without effect is
//! worse than none. Other clients have parameters of their own; those are told.

use url::Url;

use super::Mechanism;

/// The parameters of one URL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) mechanism: Mechanism,
    /// In seconds.
    pub(super) heartbeat: Option<u16>,
    /// Names that mq does not know or has no use for.
    pub(super) ignored: Vec<String>,
}

/// Why a parameter is not taken. Its value is not shown: it may be a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

impl Parameters {
    pub(super) fn of(url: &Url) -> Result<Self, Refusal> {
        let mut found = Self::default();
        for (name, value) in url.query_pairs() {
            match (&*name, &*value) {
                ("heartbeat", seconds) => {
                    found.heartbeat =
                        Some(seconds.parse().map_err(|_| {
                            Refusal {
                                what: "has a heartbeat that is not a number of seconds up to 65535"
                                    .to_owned(),
                                hint: None,
                            }
                        })?);
                }
                ("auth_mechanism", mechanism) => found.mechanism = self::mechanism(mechanism)?,
                ("verify", "verify_none") => {
                    return Err(flag(
                        "verify=verify_none",
                        "--insecure, or better name the CA with --ca-cert FILE (MQ_CA_CERT)",
                    ));
                }
                // What is done anyway, and what only a server can do.
                ("verify", "verify_peer") | ("fail_if_no_peer_cert", _) => {}
                ("verify", _) => {
                    return Err(Refusal {
                        what: "has a 'verify' that is not verify_peer".to_owned(),
                        hint: Some("leave it away: certificates are always checked".to_owned()),
                    });
                }
                ("cacertfile", _) => return Err(flag("cacertfile", "--ca-cert FILE (MQ_CA_CERT)")),
                ("certfile", _) => {
                    return Err(flag("certfile", "--client-cert FILE (MQ_CLIENT_CERT)"));
                }
                ("keyfile", _) => return Err(flag("keyfile", "--client-key FILE (MQ_CLIENT_KEY)")),
                ("password", _) => {
                    return Err(Refusal {
                        what: "has a password for a key, but mq takes only keys that are not encrypted"
                            .to_owned(),
                        hint: Some(
                            "decrypt it with `openssl pkey -in KEY -out NEW`, and name the new file with --client-key"
                                .to_owned(),
                        ),
                    });
                }
                ("server_name_indication", _) => {
                    return Err(Refusal {
                        what: "has the parameter 'server_name_indication', which mq does not have"
                            .to_owned(),
                        hint: Some(
                            "connect by a name that the broker's certificate is for".to_owned(),
                        ),
                    });
                }
                (unknown, _) => found.ignored.push(unknown.to_owned()),
            }
        }
        Ok(found)
    }
}

fn mechanism(text: &str) -> Result<Mechanism, Refusal> {
    match text.to_ascii_lowercase().as_str() {
        "plain" => Ok(Mechanism::Plain),
        "external" => Ok(Mechanism::External),
        _ => Err(Refusal {
            what: "has an auth_mechanism that is neither plain nor external".to_owned(),
            hint: Some(
                "leave it away to log in with user and password; external takes the client certificate"
                    .to_owned(),
            ),
        }),
    }
}

fn flag(parameter: &str, flag: &str) -> Refusal {
    Refusal {
        what: format!("has the parameter '{parameter}', which is a flag of mq"),
        hint: Some(format!("use {flag}; it counts for all URLs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Parameters, Refusal> {
        Parameters::of(&Url::parse(&format!("amqps://h/v?{query}")).expect(query))
    }

    #[test]
    fn what_is_known_is_taken_and_the_rest_is_named() {
        let found =
            of("heartbeat=7&auth_mechanism=External&verify=verify_peer").expect("all known");
        assert_eq!(
            found,
            Parameters {
                mechanism: Mechanism::External,
                heartbeat: Some(7),
                ignored: vec![]
            }
        );
        let found = of("connection_timeout=5&heartbeet=9&fail_if_no_peer_cert=true").expect("told");
        assert_eq!(found.ignored, ["connection_timeout", "heartbeet"]);
        assert_eq!(found.heartbeat, None);
    }

    #[test]
    fn what_is_a_flag_is_refused_with_its_name() {
        for (query, what, way_out) in [
            ("cacertfile=/sesame", "cacertfile", "--ca-cert"),
            ("certfile=/sesame", "certfile", "--client-cert"),
            ("keyfile=/sesame", "keyfile", "--client-key"),
            ("password=sesame", "not encrypted", "openssl pkey"),
            ("verify=verify_none", "verify_none", "--insecure"),
            ("verify=sesame", "'verify'", "always checked"),
            (
                "server_name_indication=sesame",
                "server_name_indication",
                "connect by a name",
            ),
            (
                "auth_mechanism=sesame",
                "neither plain nor external",
                "client certificate",
            ),
        ] {
            let refusal = of(query).expect_err(query);
            assert!(refusal.what.contains(what), "{query}: {refusal:?}");
            let hint = refusal.hint.unwrap_or_default();
            assert!(hint.contains(way_out), "{query}: {hint}");
            assert!(!refusal.what.contains("sesame"), "{query}");
        }
        assert!(of("heartbeat=often").is_err());
    }
}
