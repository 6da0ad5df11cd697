//! What users do with a real broker. `MQ_URL` and `MQ_MANAGEMENT_URL` must point
//! at one (`scripts/test` sees to that); every test works in a vhost of its own.

#[path = "../support/mod.rs"]
mod support;
mod vhost;

mod apply;
mod consume;
mod consume_failures;
mod destroy;
mod export;
mod inspect;
mod ledger;
mod migrate;
mod orders;
mod plan;
mod policies;
mod proxy;
mod publish;
mod wait;
