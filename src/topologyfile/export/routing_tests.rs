//! Tests as a file says them.

use serde_json::{Map, Value as Json, json};

use crate::field::table_to_json;
use crate::topology::{QueueName, RoutingTest, Topology};
use crate::topologyfile::export::insert;

pub(super) fn tests_json(topology: &Topology) -> Json {
    Json::Array(topology.tests.iter().map(test_json).collect())
}

fn test_json(test: &RoutingTest) -> Json {
    let mut publish = Map::new();
    publish.insert("exchange".to_owned(), json!(test.exchange.as_str()));
    publish.insert("key".to_owned(), json!(test.key.as_str()));
    insert(&mut publish, "headers", table_to_json(&test.headers));
    let mut json = Map::new();
    json.insert("name".to_owned(), json!(test.name));
    json.insert("publish".to_owned(), Json::Object(publish));
    for (key, queues) in test.expectations() {
        if let Some(queues) = queues {
            let names: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
            json.insert(key.to_owned(), json!(names));
        }
    }
    Json::Object(json)
}
