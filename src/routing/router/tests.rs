//! The walk through bindings and alternate exchanges.

use super::*;
use crate::topology::{Exchange, ExchangeType, Queue};

fn exchange(name: &str) -> ExchangeName {
    ExchangeName::new(name).expect("exchange name")
}

fn bind(topology: &mut Topology, source: &str, key: &str, destination: Destination) {
    topology.bindings.push(Binding {
        source: exchange(source),
        destination,
        key: RoutingKey::new(key).expect("key"),
        arguments: FieldTable::new(),
    });
}

fn queue(topology: &mut Topology, name: &str) -> Destination {
    let name = QueueName::new(name).expect("queue name");
    topology.queues.insert(name.clone(), Queue::default());
    Destination::Queue(name)
}

fn sample() -> Topology {
    let mut topology = Topology::default();
    let mut orders = Exchange::durable(ExchangeType::Topic);
    orders.alternate = Some(exchange("unrouted"));
    topology.exchanges.insert(exchange("orders"), orders);
    for (name, kind) in [
        ("unrouted", ExchangeType::Fanout),
        ("audit", ExchangeType::Direct),
    ] {
        topology
            .exchanges
            .insert(exchange(name), Exchange::durable(kind));
    }
    let work = queue(&mut topology, "work");
    let lost = queue(&mut topology, "lost");
    let log = queue(&mut topology, "log");
    bind(&mut topology, "orders", "order.*", work);
    bind(&mut topology, "unrouted", "", lost);
    let audit = Destination::Exchange(exchange("audit"));
    bind(&mut topology, "orders", "order.paid", audit);
    bind(&mut topology, "audit", "order.paid", log);
    // A loop of exchanges must not loop the simulation.
    let orders = Destination::Exchange(exchange("orders"));
    bind(&mut topology, "audit", "order.paid", orders);
    topology
}

#[test]
fn follows_keys_exchanges_and_alternates() {
    let topology = sample();
    for (from, key, expected) in [
        ("orders", "order.new", vec!["work"]),
        ("orders", "order.paid", vec!["log", "work"]),
        ("orders", "invoice", vec!["lost"]),
        ("", "log", vec!["log"]),
        ("", "nobody", vec![]),
        ("missing", "x", vec![]),
    ] {
        let key = RoutingKey::new(key).expect("key");
        let reached = Router::new(&topology).queues(&exchange(from), &key);
        let names: Vec<&str> = reached.iter().map(QueueName::as_str).collect();
        assert_eq!(names, expected, "{from} {key}");
    }
}

#[test]
fn tells_the_way_it_took() {
    let topology = sample();
    let router = Router::new(&topology);
    let sent = |from: &str, key: &str| {
        let key = RoutingKey::new(key).expect("key");
        Message::new(exchange(from), key, FieldTable::new())
    };
    let way = |from: &str, key: &str, to: &str| {
        let routed = router.route(&sent(from, key));
        let hops = routed.path(&QueueName::new(to).expect("name"));
        let hops: Vec<String> = hops
            .iter()
            .map(|(exchange, hop)| match hop {
                Hop::Default => "default".to_owned(),
                Hop::Binding(binding) => format!("{exchange} by {}", binding.key),
                Hop::Alternate => format!("{exchange} by alternate"),
            })
            .collect();
        hops.join(", ")
    };
    assert_eq!(
        way("orders", "order.paid", "log"),
        "orders by order.paid, audit by order.paid"
    );
    assert_eq!(
        way("orders", "invoice", "lost"),
        "orders by alternate, unrouted by "
    );
    assert_eq!(way("", "log", "log"), "default");
    assert_eq!(way("orders", "order.new", "log"), "");
}

#[test]
fn further_keys_route_too_and_nothing_arrives_twice() {
    let topology = sample();
    let cc = crate::field::FieldValue::Array(vec![
        crate::field::FieldValue::text("order.new"),
        crate::field::FieldValue::text("log"),
    ]);
    let headers = FieldTable::from([("CC".to_owned(), cc)]);
    let reached = |from: &str, key: &str| {
        let key = RoutingKey::new(key).expect("key");
        let message = Message::new(exchange(from), key, headers.clone());
        let router = Router::new(&topology);
        let routed = router.route(&message);
        routed.queues().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(reached("orders", "order.old"), ["work"]);
    assert_eq!(reached("orders", "nothing"), ["work"]);
    assert_eq!(reached("", "work"), ["log", "work"]);
}

#[test]
fn the_default_exchange_as_alternate_takes_nothing_and_strangers_are_named() {
    let mut topology = sample();
    let mut direct = Exchange::durable(ExchangeType::Direct);
    direct.alternate = Some(exchange(""));
    topology.exchanges.insert(exchange("direct"), direct);
    let plugin = Exchange::durable(ExchangeType::Plugin("x-random".to_owned()));
    topology.exchanges.insert(exchange("random"), plugin);
    let router = Router::new(&topology);
    let routed = |from: &str| {
        let key = RoutingKey::new("work").expect("key");
        router.route(&Message::new(exchange(from), key, FieldTable::new()))
    };
    assert!(routed("direct").is_empty());
    assert!(routed("direct").unknown.is_empty());
    assert_eq!(
        routed("random").unknown,
        BTreeSet::from([exchange("random")])
    );
    assert_eq!(
        routed("nowhere").unknown,
        BTreeSet::from([exchange("nowhere")])
    );
}
