//! Definitions that a real broker exports, as a file that plans empty there.

use crate::definitions::of_vhost;
use crate::support::TextFile;
use crate::vhost::Vhost;

#[test]
fn exported_definitions_become_a_file_that_plans_empty_and_back_again() {
    let vhost = Vhost::new();
    vhost.apply(
        "vhost: { description: 'an odd one', limits: { max_queues: 60 } }
exchanges:
  t: { type: topic, alternate: f }
  f: { type: fanout, durable: false }
  'odd {name}: #1': { type: headers, arguments: { x-note: [ 1, true ] } }
queues:
  quorum: { type: quorum, delivery_limit: unlimited, dead_letter: { exchange: t, key: dead }, max_length: 9, overflow: reject-publish }
  classic: { type: classic, max_priority: 3, message_ttl: 90s, expires: 24h, dead_letter: { exchange: '' } }
  stream: { type: stream, max_length_bytes: 1GiB }
  plain: { type: classic, bind: [ { exchange: amq.topic, key: 'x.#' }, { exchange: 'odd {name}: #1', arguments: { x-match: any, n: 5, s: '5' } } ] }
bindings: [ { source: t, destination: f, destination_type: exchange, key: 'a.*' } ]
policies: { p: { pattern: '^plain$', apply_to: queues, priority: 3, definition: { max-length: 7 } } }
operator_policies: { cap: { pattern: '^quorum$', apply_to: queues, definition: { max-length: 8 } } }
",
    );
    let definitions = vhost.get(&["definitions"]);
    let json = TextFile::new("definitions.json", &definitions.to_string());
    let converted = vhost
        .mq(["topology", "convert", &json.path(), "--vhost", &vhost.name])
        .run();
    // Other vhosts of the broker may hold what a file cannot say.
    assert!(
        !converted.stderr.contains("queue '"),
        "{}",
        converted.stderr
    );
    let yaml = TextFile::new("t.yaml", &converted.stdout);
    vhost
        .mq(["topology", "plan", "--no-lint", "--check", &yaml.path()])
        .run()
        .code(0);
    let back = vhost.mq(["topology", "convert", &yaml.path()]).run().json();
    assert_eq!(
        of_vhost(&back, &vhost.name),
        of_vhost(&definitions, &vhost.name)
    );
}
