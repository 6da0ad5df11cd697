//! What users do with a real broker. `MQ_URL` and `MQ_MANAGEMENT_URL` must point
//! at one (`scripts/test` sees to that); every test works in a vhost of its own.

mod random;
#[path = "../support/mod.rs"]
mod support;
mod vhost;

mod apply;
mod consume;
mod consume_failures;
mod contracts;
mod convert;
mod dead_letters;
mod dedupe;
mod dedupe_proof;
mod definitions;
mod destroy;
mod dlq_browse;
mod dlq_check;
mod dlq_export;
mod dlq_ledger;
mod dlq_list;
mod dlq_purge;
mod dlq_replay;
mod dlq_watch;
mod doctor;
mod doctor_wrong;
mod exec_stream;
mod exec_stream_failures;
mod export;
mod graph;
mod http;
mod in_use;
mod inspect;
mod journey;
mod ledger;
mod logs;
mod many;
mod metrics;
mod migrate;
mod orders;
mod outage;
mod peek;
mod plan;
mod policies;
mod progress;
#[expect(dead_code, reason = "the ledger uses more of it")]
mod proxy;
mod prune;
mod publish;
mod publish_bulk;
mod publish_jsonl;
mod publish_receipts;
mod publish_refused;
mod real_input;
mod results;
mod retries;
mod routing;
mod streams;
mod topology_test;
mod users;
mod versions;
mod wait;
mod walk;
mod what_died;
mod workers;
