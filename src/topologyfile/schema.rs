//! The file format as a JSON Schema, for editors: completion, descriptions,
//! and unknown keys underlined while they are typed.
//!
//! What the reader takes, the schema takes; a test tries every key with every
//! kind of value. The other way round it knows less: names that are declared
//! nowhere, what a type cannot have, and whether a pattern is one are told by
//! `mq topology validate` only. Draft-07 is the newest draft that
//! yaml-language-server, which stands behind most editors, knows whole.
//!
//! Keys that have a meaning are expected as they are: variables in them, which
//! the reader would replace too, make no sense to an editor.

mod binding;
mod exchange;
mod policy;
mod queue;
mod retry;
mod short_form;
mod test_case;
mod user;
mod values;
mod vhost;

use serde_json::{Value as Json, json};

use values::{Names, list_of, map_of, object, reference, texts};

/// What `$ref` of the schema is about, and the word that an editor shows.
fn definitions() -> Json {
    json!({
        "variable": values::variable(),
        "exchange": exchange::exchange(),
        "queue": queue::queue(),
        "queue_binding": binding::of_queue(),
        "binding": binding::binding(),
        "worker": short_form::worker(),
        "super_stream": short_form::super_stream(),
        "policy": policy::policy(),
        "user": user::user(),
        "permissions": user::permissions(),
        "test": test_case::test_case(),
    })
}

/// The JSON Schema (draft-07) of a topology file.
#[must_use]
pub fn schema() -> Json {
    let file = object(
        "Exchanges, queues and bindings of RabbitMQ, for `mq topology`.",
        file(),
        &["version"],
    );
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "mq topology file",
    });
    if let (Json::Object(schema), Json::Object(file)) = (&mut schema, file) {
        schema.extend(file);
        schema.insert("definitions".to_owned(), definitions());
    }
    schema
}

/// The keys of a whole file.
fn file() -> Json {
    let policies = |description| map_of(description, Names::Any, "policy");
    json!({
        "version": {
            "description": "The version of the file format: 1.",
            "const": 1,
            "default": 1,
        },
        "vhost": vhost::vhost(),
        "exchanges": map_of(
            "Exchanges by name; bindings may name `amq.topic` and the like without declaring them.",
            Names::Own,
            "exchange",
        ),
        "queues": map_of("Queues by name.", Names::Own, "queue"),
        "workers": map_of(
            "Work queues in short: each becomes the queue, its dead-letter exchange, its dead-letter queue and its wait queues.",
            Names::Own,
            "worker",
        ),
        "super_streams": map_of(
            "Super streams in short: each becomes a direct exchange and its partitions.",
            Names::Own,
            "super_stream",
        ),
        "bindings": list_of(
            "Bindings that do not stand under their queue: to other exchanges, or to queues that others declare.",
            reference("binding"),
        ),
        "policies": policies(
            "Policies by name: settings that can change later, unlike arguments.",
        ),
        "operator_policies": policies(
            "Operator policies by name: they limit what policies and arguments may set.",
        ),
        "users": map_of(
            "Users by name; they belong to the whole cluster.",
            Names::Any,
            "user",
        ),
        "permissions": map_of(
            "What users may do in the vhost, by user name.",
            Names::Any,
            "permissions",
        ),
        "owns": texts(
            "Patterns (Perl syntax) of names of queues, exchanges and policies that nobody else uses: `mq topology apply --prune` deletes what has such a name and is in no file.",
        ),
        "elsewhere": object(
            "Names that are used here and declared by others.",
            json!({
                "exchanges": texts("Exchanges that others declare."),
                "queues": texts("Queues that others declare."),
            }),
            &[],
        ),
        "tests": list_of(
            "Messages, and where the broker must put them: checked without a broker.",
            reference("test"),
        ),
    })
}

#[cfg(test)]
pub(super) mod tests;
