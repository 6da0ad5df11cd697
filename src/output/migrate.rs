//! What a migration did or would do.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::output::{Table, one_line};
use crate::plan::{MigrateReport, MigrateStep, Progress, StepLine};

/// What changes, one line for each step, and a sum.
#[must_use]
pub fn migrate_text(report: &MigrateReport) -> String {
    let mut text = format!(
        "queue '{}' in vhost '{}' on {}\n",
        report.queue, report.vhost, report.broker
    );
    for change in &report.changes {
        let _ = write!(text, "\n  {}", one_line(change, 200));
    }
    if !report.changes.is_empty() {
        text.push('\n');
    }
    if !report.steps.is_empty() {
        let mut table = Table::new(&["", "STEP", "MESSAGES"]);
        for line in &report.steps {
            table.row([
                word(line.progress).to_owned(),
                one_line(&what(&line.step), 160),
                if line.moved > 0 {
                    line.moved.to_string()
                } else {
                    String::new()
                },
            ]);
        }
        let _ = write!(text, "\n{}\n", table.render());
    }
    for note in &report.notes {
        let _ = write!(text, "\nnote: {}", one_line(note, 300));
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    let _ = write!(text, "\n{}", sum(report));
    text
}

fn sum(report: &MigrateReport) -> String {
    if report.steps.is_empty() {
        return "nothing to migrate: the queue is as the file says".to_owned();
    }
    let planned = |line: &StepLine| line.progress == Progress::Planned;
    if report.steps.iter().all(planned) {
        return format!("{} steps; none was taken", report.steps.len());
    }
    let mut sum = format!(
        "{} messages moved in {:.1} s",
        report.moved,
        report.took.as_secs_f64()
    );
    for (count, what) in [
        (report.skipped, "copies of an earlier run recognised"),
        (report.maybe_twice, "may be there twice"),
        (report.out_of_order, "stand behind later ones"),
        (report.user_ids_dropped, "lost their user_id"),
    ] {
        if count > 0 {
            let _ = write!(sum, ", {count} {what}");
        }
    }
    if !report.is_complete() {
        sum.push_str("; stopped half-way");
    }
    sum
}

/// The report as JSON: `queue`, `vhost`, `broker`, `complete`, `changes`, `notes`,
/// `steps` with `step`, `what`, `result` (`planned`, `done`, `stopped`) and
/// `messages`, and the sums.
#[must_use]
pub fn migrate_json(report: &MigrateReport) -> Json {
    let steps: Vec<Json> = report
        .steps
        .iter()
        .map(|line| {
            json!({
                "step": line.step.word(),
                "what": what(&line.step),
                "result": word(line.progress),
                "messages": line.moved,
            })
        })
        .collect();
    json!({
        "queue": report.queue.as_str(),
        "vhost": report.vhost.as_str(),
        "broker": report.broker,
        "complete": report.is_complete(),
        "changes": report.changes,
        "notes": report.notes,
        "steps": steps,
        "moved": report.moved,
        "skipped": report.skipped,
        "maybe_twice": report.maybe_twice,
        "out_of_order": report.out_of_order,
        "user_ids_dropped": report.user_ids_dropped,
        "seconds": report.took.as_secs_f64(),
    })
}

const fn word(progress: Progress) -> &'static str {
    match progress {
        Progress::Planned => "planned",
        Progress::Done => "done",
        Progress::Stopped => "stopped",
    }
}

fn what(step: &MigrateStep) -> String {
    match step {
        MigrateStep::Declare => "declare the temporary exchanges and queues".to_owned(),
        MigrateStep::Open => "bind the temporary exchange to the queue".to_owned(),
        MigrateStep::MoveBindings(bindings) => {
            format!("lead {} to the temporary exchange", count(bindings.len()))
        }
        MigrateStep::Close => "let what is published from now on wait aside".to_owned(),
        MigrateStep::Empty => "move the messages out".to_owned(),
        MigrateStep::Delete => "delete the empty queue".to_owned(),
        MigrateStep::Create => "declare the queue as the file says".to_owned(),
        MigrateStep::BindBack => "bind the way back".to_owned(),
        MigrateStep::Refill => "move the messages back".to_owned(),
        MigrateStep::CatchUp => {
            "move what waited behind them, and open the queue when nothing waits".to_owned()
        }
        MigrateStep::TurnBack => "let it wait aside once more, in order".to_owned(),
        MigrateStep::Restore(bindings) => {
            format!("lead {} to the queue again", count(bindings.len()))
        }
        MigrateStep::Detach => "unbind the temporary exchange".to_owned(),
        MigrateStep::Clear => "delete the temporary exchanges and queues".to_owned(),
    }
}

fn count(bindings: usize) -> String {
    match bindings {
        1 => "1 binding".to_owned(),
        n => format!("{n} bindings"),
    }
}
