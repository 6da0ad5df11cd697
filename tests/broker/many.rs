//! A vhost with thousands of objects of every kind: exported, and made again from the file.

#![expect(
    clippy::indexing_slicing,
    reason = "a helper outside #[test] functions; four kinds, and n is taken modulo four"
)]

use std::fmt::Write as _;

use crate::definitions::of_vhost;
use crate::support::TextFile;
use crate::vhost::Vhost;

/// A topology of about 3,000 objects.
fn generated() -> String {
    let mut text = String::from("exchanges:\n");
    let kinds = ["direct", "topic", "fanout", "headers"];
    for n in 0..200 {
        let kind = kinds[n % 4];
        let alternate = if n > 0 && n % 3 == 0 {
            format!(", alternate: x{}", n - 1)
        } else {
            String::new()
        };
        let durable = n % 7 != 0;
        let _ = writeln!(
            text,
            "  x{n}: {{ type: {kind}, durable: {durable}{alternate} }}"
        );
    }
    text.push_str("queues:\n");
    for n in 0..700 {
        let x = n % 200;
        let settings = match n % 18 {
            0 => format!("type: quorum, max_length: {}", n + 1),
            2 => format!(
                "type: quorum, delivery_limit: {}, dead_letter: {{ exchange: x{x}, key: 'd {n}' }}",
                n + 1
            ),
            3 if n % 3 == 0 => "type: stream, max_length_bytes: 1GiB".to_owned(),
            4 | 13 => format!(
                "type: classic, max_priority: {}, single_active_consumer: true",
                n % 9 + 1
            ),
            5 | 14 => format!(
                "type: classic, message_ttl: {n}s, expires: {}h, overflow: reject-publish-dlx",
                n + 1
            ),
            6 | 15 => "type: classic, durable: false, auto_delete: true".to_owned(),
            7 | 16 => format!("type: classic, arguments: {{ x-own: [ {n}, {{ a: 'é' }} ] }}"),
            _ => "type: classic".to_owned(),
        };
        let _ = writeln!(
            text,
            "  'q {n} é/%': {{ {settings}, bind: [ {{ exchange: x{x}, key: 'k.{n}.#' }}, {{ exchange: x{}, key: k, arguments: {{ x-match: any, n: {n} }} }}, {{ exchange: x{}, key: '' }} ] }}",
            (x + 3) % 200,
            (x + 9) % 200
        );
    }
    text.push_str("bindings:\n");
    for n in 0..150 {
        let _ = writeln!(
            text,
            "  - {{ source: x{n}, destination: x{}, destination_type: exchange, key: 'e{n}' }}",
            n + 50
        );
    }
    text.push_str("policies:\n");
    for n in 0..40 {
        let _ = writeln!(
            text,
            "  p{n}: {{ pattern: '^q {n} ', apply_to: queues, priority: {n}, definition: {{ max-length: {} }} }}",
            100_000 + n
        );
    }
    text.push_str("operator_policies:\n");
    for n in 0..20 {
        let _ = writeln!(
            text,
            "  o{n}: {{ pattern: '^q {n}0 ', apply_to: queues, definition: {{ max-length: {} }} }}",
            200_000 + n
        );
    }
    text
}

#[test]
fn thousands_of_objects_are_exported_and_made_again_the_same() {
    let first = Vhost::new();
    first.apply(&generated());
    let exported = first.mq(["topology", "export"]).run().code(0);
    assert_eq!(exported.stderr, "");
    let file = TextFile::new("exported.yaml", &exported.stdout);
    let check = ["topology", "plan", "--no-lint", "--check", &file.path()];
    first.mq(check).run().code(0);

    let second = Vhost::new();
    second.mq(check).run().code(1);
    second
        .mq(["topology", "apply", "--no-lint", &file.path()])
        .run()
        .code(0);
    second.mq(check).run().code(0);
    assert_eq!(
        second.mq(["topology", "export"]).run().code(0).stdout,
        exported.stdout
    );
    let definitions = |vhost: &Vhost| of_vhost(&vhost.get(&["definitions"]), &vhost.name);
    let (before, after) = (definitions(&first), definitions(&second));
    assert!(before.len() > 3000, "{}", before.len());
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
}
