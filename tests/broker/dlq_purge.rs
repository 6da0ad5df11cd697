//! Purging a dead-letter queue: asked first, kept in a file first.
#![expect(clippy::disallowed_methods, reason = "files that are read back")]

use crate::dlq_export::{Folder, bodies, lines};
use crate::support::Mq;
use crate::vhost::Vhost;

fn with_letters(kind: &str) -> Vhost {
    let vhost = Vhost::new();
    vhost.dead_letters("work", "dead", kind, 30);
    vhost
}

fn purge(vhost: &Vhost, more: &[&str]) -> Mq {
    vhost.mq(["dlq", "purge", "dead"]).args(more)
}

#[test]
fn without_a_yes_nothing_happens() {
    let vhost = with_letters("classic");
    for more in [
        &[][..],
        &["--no-backup"],
        &["--filter", "true", "--no-backup"],
    ] {
        purge(&vhost, more)
            .run()
            .code(2)
            .says(&["nobody said yes; nothing was removed", "--yes"]);
    }
    assert_eq!(vhost.ready("dead"), 30);
}

#[test]
fn what_is_purged_can_be_brought_back() {
    for kind in ["classic", "quorum"] {
        let vhost = with_letters(kind);
        let folder = Folder::new();
        let file = folder.path("backup.jsonl");
        let path = file.to_str().unwrap();
        let ran = purge(&vhost, &["--yes", "--backup", path, "-o", "json"])
            .run()
            .code(0);
        assert_eq!(ran.json()["purged"], 30);
        assert_eq!(ran.json()["backup"], path);
        assert_eq!(vhost.ready("dead"), 0);
        assert_eq!(bodies(&lines(&file)).len(), 30);
        vhost
            .mq(["publish", "--jsonl", path, "-q", "dead"])
            .run()
            .code(0);
        assert_eq!(vhost.ready("dead"), 30);
        purge(&vhost, &["--yes", "--backup", path])
            .run()
            .code(64)
            .says(&["is there already"]);
        assert_eq!(vhost.ready("dead"), 30);
    }
}

#[test]
fn a_filter_and_a_limit_are_kept_to() {
    for kind in ["classic", "quorum"] {
        let vhost = with_letters(kind);
        let small = ".body | tonumber < 10";
        purge(&vhost, &["--yes", "--no-backup", "--filter", small])
            .run()
            .code(0)
            .shows(&["purged 10 messages of queue 'dead'; 20 left by the filter"]);
        vhost.wait_for_ready("dead", 20);
        purge(&vhost, &["--yes", "--no-backup", "--limit", "5"])
            .run()
            .code(0);
        vhost.wait_for_ready("dead", 15);
        purge(&vhost, &["--yes", "--no-backup"])
            .run()
            .code(0)
            .shows(&["purged 15 messages of queue 'dead'\n"]);
        assert_eq!(vhost.ready("dead"), 0);
    }
}

#[test]
fn the_backup_has_a_name_of_its_own() {
    let vhost = Vhost::new();
    let queue = "../dead letters\u{202e}";
    vhost.dead_letter_queue(queue, "classic");
    vhost.publish(queue, "x");
    let folder = Folder::new();
    let run = || {
        vhost
            .mq(["dlq", "purge", queue, "--yes"])
            .inside(folder.path(""))
            .run()
            .code(0)
    };
    run().shows(&["purged 1 message of", "they are in _.._dead_letters_-"]);
    // An empty queue leaves no empty file.
    run().shows(&["purged 0 messages"]);
    let names: Vec<String> = std::fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].ends_with("Z.jsonl"), "{names:?}");
    assert_eq!(bodies(&lines(&folder.path(&names[0]))), ["x"]);
}

#[test]
fn on_a_terminal_the_name_of_the_queue_is_the_yes() {
    for (typed, code, left) in [("dead\n", 0, 0), ("no\n", 2, 30), ("\n", 2, 30)] {
        let vhost = with_letters("classic");
        purge(&vhost, &["--no-backup"])
            .on_terminal(200)
            .stdin(typed)
            .run()
            .code(code)
            .shows(&["purge 30 messages of queue 'dead'; no copy is kept. Type the queue's name"]);
        assert_eq!(vhost.ready("dead"), left, "{typed:?}");
    }
}

#[test]
fn a_queue_that_is_not_there_is_65() {
    let vhost = Vhost::new();
    for more in [&["--yes"][..], &["--yes", "--no-backup"]] {
        purge(&vhost, more).run().code(65).says(&["queue 'dead'"]);
    }
}
