//! Whether a broker is ready for a release: fourteen checks of what it says of
//! itself, its queues and its clients.
//!
//! Every check is a pure function over plain data ([`BrokerSeen`], [`VhostSeen`]).
//! What is not known is told as unknown, and never passes.

mod backlog;
mod check;
mod clients;
mod dead_letter_path;
mod deprecated;
mod end_of_life;
mod nodes;
mod put_back;
mod seen;
mod source;
mod survival;

#[cfg(test)]
mod bench;

pub use check::{CHECKS, Check, CheckRule, Finding, Fix, Report, Status, SubjectKind};
pub use seen::{
    BrokerSeen, Channel, ChannelCounts, Clients, Connection, Consumer, DeprecatedFeature, Node,
    NotTold, QueueCounts, QueueSeen, Told, VhostContents, VhostSeen,
};

/// Every check of a broker and of some of its vhosts, but those whose code is in
/// `skip`.
#[must_use]
pub fn examine(broker: &BrokerSeen, vhosts: &[VhostSeen], skip: &[String]) -> Report {
    let mut report = Report::new(skip);
    for vhost in vhosts {
        match &vhost.contents {
            Ok(contents) => {
                dead_letter_path::check(vhost, contents, &mut report);
                survival::check(vhost, contents, broker, &mut report);
                backlog::check(vhost, contents, &mut report);
                put_back::check(vhost, contents, broker, &mut report);
                clients::check(vhost, contents, broker, &mut report);
                deprecated::check_vhost(vhost, contents, &mut report);
            }
            Err(why) => report.unreadable(vhost, why),
        }
    }
    nodes::check(broker, &mut report);
    deprecated::check_broker(broker, &mut report);
    end_of_life::check(broker, &mut report);
    if !broker.counts_clients {
        report.without_statistics();
    }
    report
}

#[cfg(test)]
mod tests;
