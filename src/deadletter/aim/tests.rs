//! Original routes, wait queues, copies and what comes straight back.

use serde_json::{Value as Json, json};

use super::*;
use crate::field::table_from_json;
use crate::message::Properties;
use crate::topology::Topology;
use crate::topologyfile::parsed as topology;

const SHOP: &str = "
exchanges:
  orders: { type: topic }
  inner: { type: fanout, internal: true }
  dlx: { type: fanout }
  spread: { type: fanout }
queues:
  work: { type: quorum, delivery_limit: unlimited, dead_letter: { exchange: dlx }, bind: [{ exchange: orders, key: 'order.#' }] }
  audit: { bind: [{ exchange: orders, key: 'order.created' }] }
  wait: { message_ttl: 1s, dead_letter: { exchange: '', key: work } }
  short: { message_ttl: 1s, dead_letter: { exchange: dlx } }
  dlq: { bind: [{ exchange: dlx }, { exchange: spread }] }
";

fn letter(headers: &Json) -> Letter {
    Letter::read(&Properties {
        headers: table_from_json(headers.as_object().expect("object")),
        ..Properties::default()
    })
}

fn died(queue: &str, exchange: &str, keys: &[&str]) -> Json {
    json!({"x-death": [{"queue": queue, "reason": "rejected", "count": 1, "time": 1,
                        "exchange": exchange, "routing-keys": keys}]})
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("name")
}

/// `exchange/key -> queues`, or why it stays.
fn aimed(topology: &Topology, headers: &Json, to: &ReplayTo) -> String {
    let router = Router::new(topology);
    let dlq = queue("dlq");
    let aiming = Aiming {
        router: &router,
        queue: &dlq,
        to,
    };
    match aiming.aim(&letter(headers), &FieldTable::new()) {
        Ok(aim) => {
            let lands: Vec<&str> = aim.lands.iter().map(QueueName::as_str).collect();
            format!("{}/{} -> {}", aim.exchange, aim.key, lands.join(" "))
        }
        Err(astray) => format!("{astray:?}"),
    }
}

#[test]
fn each_goes_where_it_came_from_or_stays() {
    let shop = topology(SHOP);
    let created = died("work", "orders", &["order.created"]);
    for (headers, to, told) in [
        (
            created.clone(),
            ReplayTo::Original,
            "orders/order.created -> audit work",
        ),
        (created.clone(), ReplayTo::OriginQueue, "/work -> work"),
        (
            created.clone(),
            ReplayTo::Queue(queue("audit")),
            "/audit -> audit",
        ),
        (created.clone(), ReplayTo::Queue(queue("gone")), "/gone -> "),
        (
            created.clone(),
            ReplayTo::Exchange(ExchangeName::new("orders").expect("name"), None),
            "orders/order.created -> audit work",
        ),
        (
            created,
            ReplayTo::Exchange(
                ExchangeName::new("orders").expect("name"),
                Some(RoutingKey::new("order.paid").expect("key")),
            ),
            "orders/order.paid -> work",
        ),
        // The default exchange has an empty name, which is no missing one.
        (
            died("work", "", &["work"]),
            ReplayTo::Original,
            "/work -> work",
        ),
        // Of several keys the one that leads home.
        (
            died("work", "orders", &["billing", "order.paid"]),
            ReplayTo::Original,
            "orders/order.paid -> work",
        ),
        (
            died("work", "orders", &["billing", "nothing"]),
            ReplayTo::Original,
            "orders/billing -> ",
        ),
        (
            died("work", "spread", &["k"]),
            ReplayTo::Original,
            "ComesBack",
        ),
        (
            died("dlq", "", &["dlq"]),
            ReplayTo::OriginQueue,
            "ComesBack",
        ),
        (
            died("work", "gone", &["k"]),
            ReplayTo::Original,
            "NoExchange(\"gone\")",
        ),
        (
            died("work", "inner", &["k"]),
            ReplayTo::Original,
            "Internal(\"inner\")",
        ),
        (
            died("work", "amq.topic", &["k"]),
            ReplayTo::Original,
            "amq.topic/k -> ",
        ),
        (died("work", "orders", &[]), ReplayTo::Original, "NoOrigin"),
        (json!({}), ReplayTo::Original, "NoOrigin"),
        (json!({}), ReplayTo::OriginQueue, "NoOrigin"),
        (json!({}), ReplayTo::Queue(queue("work")), "/work -> work"),
        (
            died("", "orders", &["k"]),
            ReplayTo::Original,
            "NoName(\"\")",
        ),
    ] {
        assert_eq!(aimed(&shop, &headers, &to), told, "{headers} {to:?}");
    }
}

#[test]
fn a_workers_own_headers_tell_too() {
    let shop = topology(SHOP);
    let parked = json!({"mq-queue": "work", "mq-error-kind": "poison", "mq-exchange": "orders",
                        "mq-routing-key": "order.paid"});
    assert_eq!(
        aimed(&shop, &parked, &ReplayTo::Original),
        "orders/order.paid -> work"
    );
}

#[test]
fn the_origin_is_no_wait_queue_if_there_is_another() {
    let shop = topology(SHOP);
    let republished = json!({"x-death": [
        {"queue": "work", "reason": "rejected", "count": 1, "time": 20,
         "exchange": "", "routing-keys": ["work"]},
        {"queue": "wait", "reason": "expired", "count": 2, "time": 10,
         "exchange": "", "routing-keys": ["wait"]},
    ]});
    assert_eq!(
        aimed(&shop, &republished, &ReplayTo::OriginQueue),
        "/work -> work"
    );
    let only_waited = died("wait", "", &["wait"]);
    assert_eq!(
        aimed(&shop, &only_waited, &ReplayTo::OriginQueue),
        "/wait -> wait"
    );
}

#[test]
fn what_leads_back_is_known() {
    let shop = topology(SHOP);
    let router = Router::new(&shop);
    let facts = BrokerFacts::newest_measured();
    for (from, back) in [
        ("work", ComingBack::Failed),
        ("short", ComingBack::Unconsumed),
        ("audit", ComingBack::Not),
        ("gone", ComingBack::Not),
    ] {
        assert_eq!(
            ComingBack::of(&router, &queue(from), &queue("dlq"), &facts),
            back,
            "{from}"
        );
    }
}
