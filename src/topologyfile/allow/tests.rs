//! What comments are for, and what is told of them.

use super::*;

fn source(text: &str) -> Source {
    Source {
        name: "t.yaml".to_owned(),
        text: text.to_owned(),
    }
}

/// The line and the codes of every comment.
fn scopes(text: &str, texts: &[Range<usize>]) -> Vec<(Option<usize>, String)> {
    of_source(0, &source(text), texts)
        .into_iter()
        .map(|allow| match allow.mark {
            Mark::Codes(codes) => (allow.line, codes.join("+")),
            Mark::Nearly(meant) => (allow.line, meant),
        })
        .collect()
}

#[test]
fn a_comment_is_for_its_line_the_next_or_all() {
    let text = "\
# mq: allow MQ212
version: 1
queues:
  # mq: allow MQ209, MQ211
  # why

  a: {}
  b: {} # mq: allow MQ207
  c: {} # not mq: allow MQ999
";
    assert_eq!(
        scopes(text, &[]),
        [
            (None, "MQ212".to_owned()),
            (Some(6), "MQ209+MQ211".to_owned()),
            (Some(7), "MQ207".to_owned()),
        ]
    );
}

#[test]
fn what_yaml_has_in_front_is_no_content() {
    for front in [
        "\u{feff}# mq: allow MQ212\n---\n",
        "\u{feff}---\r\n# mq: allow MQ212\r\n",
        "%YAML 1.2\n# mq: allow MQ212\n---\n",
        "%YAML 1.2\n---\n\n# mq: allow MQ212\n",
        "--- # mq: allow MQ212\n",
    ] {
        assert_eq!(
            scopes(&format!("{front}version: 1\n"), &[]),
            [(None, "MQ212".to_owned())],
            "{front:?}"
        );
    }
    let text = "--- {a: 1} # mq: allow MQ212\n";
    assert_eq!(scopes(text, &[]), [(Some(0), "MQ212".to_owned())]);
}

#[test]
fn what_stands_in_a_text_is_no_comment() {
    let text =
        "a: |\n  # mq: allow MQ209\n# mq: allow MQ211\nb: 'x # mq: allow MQ1' # mq: allow MQ212\n";
    let quoted = text.find("'x").expect("it");
    assert_eq!(
        scopes(text, &[7..25, quoted..quoted + 20]),
        [(Some(3), "MQ211".to_owned()), (Some(3), "MQ212".to_owned())]
    );
}

#[test]
fn what_silences_nothing_is_told() {
    let source = source(
        "a: 1 # mq: allow MQ209\nb: 2 # mq: allow MQ211\nc: 3 # mq: allow MQ999, MQ106, MQ998\nd: 4 #mq: allow MQ209\n",
    );
    let mut allows = Allows::of(std::slice::from_ref(&source), &[]);
    let at = |bytes| Place { source: 0, bytes };
    assert!(allows.silence("MQ209", &[&at(0..1)]));
    assert!(!allows.silence("MQ211", &[&at(0..1)]));
    let told: Vec<String> = allows.useless().into_iter().map(|d| d.message).collect();
    assert_eq!(
        told,
        [
            "nothing here is found by MQ211",
            "there is no rule 'MQ999'",
            "MQ106 cannot be allowed: what has such a code cannot be applied",
            "there is no rule 'MQ998'",
            "a comment that looks like an `allow` and is none",
        ]
    );
}
