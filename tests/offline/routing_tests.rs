//! The `tests:` of topology files: read, and run without a broker.

use crate::support::{Mq, TextFile};

#[test]
fn what_is_wrong_in_tests_is_a_mistake() {
    let mistakes = |text: &str| {
        let file = TextFile::new("t.yaml", text);
        let ran = Mq::new(["topology", "validate", &file.path()])
            .run()
            .code(65);
        file.normalise(&ran.stderr)
    };
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { in: { type: topic } }
queues: { work: {} }
tests:
  - { reaches: [work] }
  - { name: empty, publish: { exchange: in } }
  - { name: forgotten, publish: { exchange: in }, reaches: }
  - { name: 5, publish: { exchange: in, keys: a }, reaches: work }
  - { publish: { exchange: in, headers: { CC: text } }, reaches: ['', 7], reject: [work] }
"
    ));
    insta::assert_snapshot!(mistakes(
        "version: 1
exchanges: { in: { type: topic } }
queues: { work: {} }
tests:
  - { name: names, publish: { exchange: inn }, reaches: [work], rejected: [wrok] }
"
    ));
}
