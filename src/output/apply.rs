//! What an apply did, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::output::{Table, one_line};
use crate::plan::{ApplyReport, Conflict, Difference, Done, ReadBack};
use crate::topology::VhostName;

/// One line for each object, the conflicts with their ways out, and a sum.
#[must_use]
pub fn apply_text(report: &ApplyReport) -> String {
    let mut text = format!("vhost '{}' on {}\n\n", report.vhost, report.broker);
    let mut table = Table::new(&["", "OBJECT", "NAME"]);
    for line in &report.lines {
        table.row([
            word(&line.done).to_owned(),
            line.object.kind().to_owned(),
            one_line(&line.object.name(), 120),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    for conflict in report.conflicts() {
        let _ = write!(text, "\n{conflict}\n");
        for way in conflict.ways_out(&report.vhost) {
            let _ = writeln!(text, "  - {way}");
        }
    }
    let _ = write!(text, "\n{}", sum(report));
    match &report.read_back {
        ReadBack::Proved => text.push_str("; read back: all as the file says"),
        ReadBack::Differs => text.push_str("; read back: not all is as the file says"),
        ReadBack::Impossible(why) => {
            let _ = write!(text, "; not read back: {}", one_line(why, 200));
        }
        ReadBack::NotNeeded => {}
    }
    text
}

fn sum(report: &ApplyReport) -> String {
    let count = |is: fn(&Done) -> bool| report.count(is);
    let created = count(|done| matches!(done, Done::Created));
    let changed = count(|done| matches!(done, Done::Changed(_)));
    let unchanged = count(|done| matches!(done, Done::Unchanged));
    let ensured = count(|done| matches!(done, Done::Ensured));
    let conflicts = count(|done| matches!(done, Done::Conflict(_)));
    let deleted = count(|done| matches!(done, Done::Deleted));
    let kept = count(|done| matches!(done, Done::Kept(_)));
    let failed = count(|done| matches!(done, Done::Failed(_)));
    let not_tried = count(|done| matches!(done, Done::NotTried));
    if conflicts > 0 {
        return format!(
            "nothing was changed: {conflicts} of {} objects are there otherwise",
            report.lines.len()
        );
    }
    if created + changed + ensured + deleted + kept + failed + not_tried == 0 {
        return format!("nothing to change: all {unchanged} objects are as the file says");
    }
    let parts = [
        (created, "created"),
        (changed, "changed"),
        (unchanged, "unchanged"),
        (
            ensured,
            "sent again (whether they were there cannot be seen without the management API)",
        ),
        (deleted, "deleted"),
        (kept, "kept that should go"),
        (failed, "failed"),
        (not_tried, "not tried"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    parts.join(", ")
}

/// The report as JSON: `vhost`, `broker`, `changed`, `read_back`, and `objects` with
/// `kind`, `name`, `result` and, where it applies, `conflict` or `error`.
#[must_use]
pub fn apply_json(report: &ApplyReport) -> Json {
    let objects: Vec<Json> = report
        .lines
        .iter()
        .map(|line| {
            let mut object = Map::new();
            object.insert("kind".to_owned(), json!(line.object.kind()));
            object.insert("name".to_owned(), json!(line.object.name()));
            let result = word(&line.done).replace(' ', "_");
            object.insert("result".to_owned(), json!(result));
            match &line.done {
                Done::Conflict(conflict) => {
                    object.insert(
                        "conflict".to_owned(),
                        conflict_json(conflict, &report.vhost),
                    );
                }
                Done::Failed(error) => {
                    let error = json!({ "message": error.message(), "way_out": error.way_out() });
                    object.insert("error".to_owned(), error);
                }
                Done::Changed(differences) => {
                    object.insert("differences".to_owned(), differences_json(differences));
                }
                Done::Kept(why) => {
                    object.insert("why".to_owned(), json!(why));
                }
                Done::Created
                | Done::Unchanged
                | Done::Ensured
                | Done::Deleted
                | Done::NotTried => {}
            }
            Json::Object(object)
        })
        .collect();
    json!({
        "vhost": report.vhost.as_str(),
        "broker": report.broker,
        "changed": report.changed(),
        "read_back": match &report.read_back {
            ReadBack::Proved => "proved",
            ReadBack::Differs => "differs",
            ReadBack::Impossible(_) => "impossible",
            ReadBack::NotNeeded => "not_needed",
        },
        "objects": objects,
    })
}

/// What differs, as the reports of plan and apply show it.
pub(super) fn differences_json(differences: &[Difference]) -> Json {
    differences
        .iter()
        .map(|difference| {
            json!({
                "argument": difference.argument,
                "file": difference.file,
                "broker": difference.broker,
                "ignored_by_broker": !difference.is_compared(),
            })
        })
        .collect()
}

fn conflict_json(conflict: &Conflict, vhost: &VhostName) -> Json {
    json!({
        "differences": differences_json(&conflict.differences),
        "said": conflict.said,
        "ways_out": conflict.ways_out(vhost),
    })
}

const fn word(done: &Done) -> &'static str {
    match done {
        Done::Created => "created",
        Done::Unchanged => "unchanged",
        Done::Changed(_) => "changed",
        Done::Ensured => "ensured",
        Done::Deleted => "deleted",
        Done::Kept(_) => "kept",
        Done::Conflict(_) => "conflict",
        Done::Failed(_) => "failed",
        Done::NotTried => "not tried",
    }
}
