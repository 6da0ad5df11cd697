//! The ledger of `mq consume`: workers are killed, connections cut and the broker
//! killed at random moments, and afterwards every message is accounted for.
//!
//! It kills its broker, so it shares it with no other test: `scripts/test` gives
//! it a node of its own. All seeds run at once, so that one series of kills
//! strikes them all.

mod account;
mod audit;
mod fault;
mod message;
mod node;
#[path = "../broker/proxy.rs"]
#[expect(dead_code, reason = "the broker tests use more of it")]
mod proxy;
#[path = "../support/mod.rs"]
mod support;
#[path = "../broker/vhost.rs"]
#[expect(dead_code, reason = "the broker tests use more of it")]
mod vhost;

mod proof;
