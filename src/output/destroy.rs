//! What a destroy did or would do.

use serde_json::{Value as Json, json};

use crate::output::{Table, one_line};
use crate::plan::{DestroyReport, Gone};

/// One line for each object, and a sum.
#[must_use]
pub fn destroy_text(report: &DestroyReport) -> String {
    let mut table = Table::new(&["", "OBJECT", "NAME", ""]);
    for (object, gone) in &report.lines {
        let why = match gone {
            Gone::Kept(why) => one_line(why, 120),
            Gone::Planned | Gone::Deleted | Gone::NotThere => String::new(),
        };
        table.row([
            word(gone).to_owned(),
            object.kind().to_owned(),
            one_line(&object.name(), 120),
            why,
        ]);
    }
    let count = |is: fn(&Gone) -> bool| report.lines.iter().filter(|(_, gone)| is(gone)).count();
    let planned = count(|gone| *gone == Gone::Planned);
    let deleted = count(|gone| *gone == Gone::Deleted);
    let sum = if planned > 0 && deleted > 0 {
        format!("{deleted} deleted, {planned} not yet")
    } else if planned > 0 {
        format!("{planned} would be deleted; nothing was")
    } else {
        format!(
            "{} deleted, {} were not there, {} kept",
            deleted,
            count(|gone| *gone == Gone::NotThere),
            count(|gone| matches!(gone, Gone::Kept(_)))
        )
    };
    format!(
        "vhost '{}' on {}\n\n{}\n\n{sum}",
        report.vhost,
        report.broker,
        table.render()
    )
}

/// The report as JSON: `vhost`, `broker`, and `objects` with `kind`, `name`,
/// `result` (`planned`, `deleted`, `not_there`, `kept`) and `why` for kept ones.
#[must_use]
pub fn destroy_json(report: &DestroyReport) -> Json {
    let objects: Vec<Json> = report
        .lines
        .iter()
        .map(|(object, gone)| {
            json!({
                "kind": object.kind(),
                "name": object.name(),
                "result": word(gone).replace(' ', "_"),
                "why": match gone {
                    Gone::Kept(why) => Some(why),
                    Gone::Planned | Gone::Deleted | Gone::NotThere => None,
                },
            })
        })
        .collect();
    json!({ "vhost": report.vhost.as_str(), "broker": report.broker, "objects": objects })
}

const fn word(gone: &Gone) -> &'static str {
    match gone {
        Gone::Planned => "planned",
        Gone::Deleted => "deleted",
        Gone::NotThere => "not there",
        Gone::Kept(_) => "kept",
    }
}
