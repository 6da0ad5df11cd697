//! The dashboard and the alerts of `docker/` speak of metrics that mq has.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers outside #[test] functions read the files of the repository"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use mq::metrics::{Labels, metrics_text};
use mq::worker::Status;
use serde_json::Value as Json;

use crate::support::exposition::Exposition;

fn docker() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docker")
}

fn yaml(path: &str) -> Json {
    let text = std::fs::read_to_string(docker().join(path)).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn exposed() -> Exposition {
    let labels = Labels {
        vhost: String::new(),
        queue: String::new(),
    };
    Exposition::parse(&metrics_text(&labels, Duration::ZERO, &Status::default()))
}

/// Words of an expression, without what stands between quotes.
fn words(expression: &str) -> Vec<String> {
    let unquoted: String = expression
        .split('"')
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ");
    unquoted
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(str::to_owned)
        .collect()
}

/// Every word is a series that mq has, a label it has, or of PromQL.
#[track_caller]
fn must_be_known(expression: &str) {
    const LANGUAGE: [&str; 12] = [
        "by",
        "sum",
        "rate",
        "increase",
        "and",
        "on",
        "up",
        "job",
        "instance",
        "le",
        "histogram_quantile",
        "min_over_time",
    ];
    let exposed = exposed();
    for word in words(expression) {
        let is_series = exposed.series.keys().any(|(name, _)| *name == word);
        let is_label = exposed
            .series
            .keys()
            .any(|(_, labels)| labels.iter().any(|(label, _)| *label == word));
        assert!(
            is_series || is_label || LANGUAGE.contains(&word.as_str()),
            "'{word}' is nothing that mq exposes: {expression}"
        );
    }
}

/// The labels that a text names as `{{ $labels.NAME }}` are there.
#[track_caller]
fn must_have_labels(text: &str, labels: &[&str]) {
    for piece in text.split("$labels.").skip(1) {
        let label = piece.split_once(' ').unwrap().0;
        assert!(labels.contains(&label), "{label}: {text}");
    }
}

#[test]
fn alerts_are_of_metrics_that_exist_and_say_what_to_do() {
    let file = yaml("prometheus/mq-alerts.yaml");
    let mut alerts = 0;
    for rule in file["groups"][0]["rules"].as_array().unwrap() {
        let name = rule["alert"].as_str().unwrap();
        let expression = rule["expr"].as_str().unwrap();
        must_be_known(expression);
        // Without an aggregation all labels are left.
        let all = ["vhost", "queue", "reason", "instance", "job"];
        let kept: Vec<&str> = match expression.split_once("by (") {
            Some((before, by)) if !before.contains("mq_") => {
                by.split_once(')').unwrap().0.split(", ").collect()
            }
            _ => all.to_vec(),
        };
        for key in ["summary", "action"] {
            let text = rule["annotations"][key].as_str().unwrap_or_default();
            assert!(
                text.len() > 20 && text.ends_with('.'),
                "{name}: {key}: {text}"
            );
            must_have_labels(text, &kept);
        }
        let severity = rule["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{name}");
        alerts += 1;
    }
    assert!(alerts >= 7, "{alerts}");
}

#[test]
fn the_dashboard_shows_metrics_that_exist_and_all_of_them() {
    let text = std::fs::read_to_string(docker().join("grafana/mq-worker.json")).unwrap();
    let board: Json = serde_json::from_str(&text).unwrap();
    let mut shown = Vec::new();
    let mut ids = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        assert!(!panel["title"].as_str().unwrap().is_empty());
        assert!(!ids.contains(&&panel["id"]), "{}", panel["id"]);
        ids.push(&panel["id"]);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            must_be_known(expression);
            shown.extend(words(expression));
        }
    }
    for variable in board["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            let query = variable["definition"].as_str().unwrap();
            must_be_known(&query.replace("label_values", "sum"));
            shown.extend(words(query));
        }
    }
    for (name, kind) in exposed().kinds {
        let is_it = |word: &String| {
            *word == name || (kind == "histogram" && word.starts_with(&format!("{name}_")))
        };
        assert!(shown.iter().any(is_it), "{name} is shown nowhere");
    }
}

#[test]
fn what_the_compose_file_mounts_is_there() {
    let file = yaml("compose.metrics.yaml");
    let mut mounts = 0;
    for service in file["services"].as_object().unwrap().values() {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(docker().join(from).exists(), "{from}");
            mounts += 1;
        }
    }
    assert_eq!(mounts, 5);
    let scraped = yaml("prometheus/prometheus.yaml");
    let target = &scraped["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let command = file["services"]["worker"]["entrypoint"][2]
        .as_str()
        .unwrap();
    let port = target.as_str().unwrap().strip_prefix("worker:").unwrap();
    assert!(
        command.contains(&format!("--metrics 0.0.0.0:{port} ")),
        "{command}"
    );
    for provisioned in ["datasources/prometheus.yaml", "dashboards/mq.yaml"] {
        assert_eq!(
            yaml(&format!("grafana/provisioning/{provisioned}"))["apiVersion"],
            1
        );
    }
}
