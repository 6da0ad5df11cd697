//! What `mq publish` does when the whole broker is short of memory, or has limits
//! of its own. That concerns everybody on the node, so these tests have one for
//! themselves (`scripts/test` sees to that), and take turns on it.

mod alarm;
mod limits;
mod node;
#[path = "../support/mod.rs"]
mod support;
#[path = "../broker/vhost.rs"]
#[expect(dead_code, reason = "the broker tests use more of it")]
mod vhost;
