//! A plan, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::output::apply::differences_json;
use crate::output::{Table, one_line};
use crate::plan::{Object, Plan, Planned, Step, Verb};

/// One line for each object that would change, and a sum.
#[must_use]
pub fn plan_text(plan: &Plan, broker: &str) -> String {
    let mut text = format!("vhost '{}' on {broker}\n", plan.vhost);
    let changing: Vec<&Planned> = plan
        .steps
        .iter()
        .filter(|planned| planned.verb != Verb::Keep)
        .collect();
    if !changing.is_empty() || !plan.prune.is_empty() {
        let mut table = Table::new(&["", "OBJECT", "NAME", ""]);
        for planned in &changing {
            let object = planned.step.object();
            table.row([
                word(&planned.verb).to_owned(),
                object.kind().to_owned(),
                one_line(&object.name(), 120),
                about(planned),
            ]);
        }
        for object in &plan.prune {
            table.row([
                "delete".to_owned(),
                object.kind().to_owned(),
                one_line(&object.name(), 120),
                if_unused(object).to_owned(),
            ]);
        }
        let _ = write!(text, "\n{}\n", table.render());
    }
    for planned in changing {
        if let Verb::Blocked(differences) | Verb::Change(differences) = &planned.verb {
            let how = match planned.verb {
                Verb::Blocked(_) => "cannot be changed in place",
                Verb::Change(_) | Verb::Create | Verb::Keep => "changes in place",
            };
            let _ = write!(text, "\n{} {how}:\n", planned.step.object());
            for difference in differences {
                let _ = write!(text, "  {difference}");
                if !difference.is_compared() {
                    text.push_str(" (RabbitMQ accepts this change and ignores it)");
                }
                text.push('\n');
            }
        }
    }
    let _ = write!(text, "\n{}", sum(plan));
    text
}

fn sum(plan: &Plan) -> String {
    let create = plan.count(|verb| *verb == Verb::Create);
    let keep = plan.count(|verb| *verb == Verb::Keep);
    let blocked = plan.count(|verb| matches!(verb, Verb::Blocked(_)));
    if plan.is_empty() {
        return format!("nothing to change: all {keep} objects are as the file says");
    }
    let change = plan.count(|verb| matches!(verb, Verb::Change(_)));
    let mut sum = format!(
        "plan: {create} to create, {change} to change, {keep} unchanged, {blocked} blocked"
    );
    if !plan.prune.is_empty() {
        let _ = write!(sum, ", {} to delete", plan.prune.len());
    }
    sum
}

/// What holds a deletion off.
const fn if_unused(object: &Object) -> &'static str {
    match object {
        Object::Queue(_) => "if it is empty and has no consumers",
        Object::Exchange(_) => "if it feeds nothing else",
        Object::Binding(_)
        | Object::Policy(..)
        | Object::Vhost
        | Object::User(_)
        | Object::Permissions(_)
        | Object::TopicPermission(_) => "",
    }
}

/// What a new object is, in a few words.
fn about(planned: &Planned) -> String {
    if planned.verb != Verb::Create {
        return String::new();
    }
    match &planned.step {
        Step::Exchange(_, exchange) => exchange.kind.to_string(),
        Step::Queue(_, queue) => queue.kind.as_ref().map_or_else(
            || "the vhost's default type".to_owned(),
            ToString::to_string,
        ),
        Step::Binding(_)
        | Step::Vhost(_)
        | Step::User(..)
        | Step::Permissions(..)
        | Step::TopicPermission(..) => String::new(),
        Step::Policy(_, _, policy) => one_line(policy.pattern.as_str(), 60),
    }
}

/// The plan as JSON: `vhost`, `broker`, `empty`, `blocked`, and `steps` with
/// `action` (`create`, `change`, `keep`, `blocked`, `delete`), `kind`, `name` and `differences`.
#[must_use]
pub fn plan_json(plan: &Plan, broker: &str) -> Json {
    let steps: Vec<Json> = plan
        .steps
        .iter()
        .map(|planned| {
            let object: Object = planned.step.object();
            let mut step = Map::new();
            step.insert("action".to_owned(), json!(word(&planned.verb)));
            step.insert("kind".to_owned(), json!(object.kind()));
            step.insert("name".to_owned(), json!(object.name()));
            if let Verb::Blocked(differences) | Verb::Change(differences) = &planned.verb {
                step.insert("differences".to_owned(), differences_json(differences));
            }
            Json::Object(step)
        })
        .chain(plan.prune.iter().map(
            |object| json!({ "action": "delete", "kind": object.kind(), "name": object.name() }),
        ))
        .collect();
    json!({
        "vhost": plan.vhost.as_str(),
        "broker": broker,
        "empty": plan.is_empty(),
        "blocked": plan.count(|verb| matches!(verb, Verb::Blocked(_))),
        "steps": steps,
    })
}

const fn word(verb: &Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Keep => "keep",
        Verb::Change(_) => "change",
        Verb::Blocked(_) => "blocked",
    }
}
