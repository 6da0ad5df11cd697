//! Which messages are meant.

use serde_json::Value as Json;

use crate::error::Result;
use crate::query::program::Program;
use crate::query::value;

/// A condition on the JSON form of a message.
#[derive(Debug)]
pub struct Filter {
    program: Program,
}

impl Filter {
    /// Reads a jq program.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] with the place of the mistake.
    pub fn parse(code: &str) -> Result<Self> {
        Ok(Self {
            program: Program::parse("--filter", code, &[])?,
        })
    }

    /// Whether `message` is meant: the first output decides. None at all, `null`
    /// and `false` are a no, everything else is a yes.
    ///
    /// # Errors
    /// When the program fails, or gives no answer within
    /// [`crate::query::ANSWER_LIMIT`]: then nothing is known about the message.
    pub fn accepts(&self, message: &Json) -> Result<bool> {
        let input = value::of_json(message);
        self.program.ask(|program| {
            let outputs = program.run(input, Vec::new(), 1)?;
            Ok(outputs.first().is_some_and(jaq_core::ValT::as_bool))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_output_decides() {
        let message = json!({
            "origin": "work", "attempts": 3, "body": "{\"id\":9007199254740993}",
            "properties": {"headers": {"tenant": "acme", "big": 9_007_199_254_740_993_i64}},
        });
        for (code, accepted) in [
            (".origin == \"work\"", true),
            (".origin == \"other\"", false),
            (".nothing", false),
            ("empty", false),
            ("false, true", false),
            ("true, error", true),
            (".attempts", true),
            ("0", true),
            ("select(.attempts > 2)", true),
            ("select(.attempts > 5)", false),
            (".properties.headers.tenant | test(\"^ac\")", true),
            (".properties.headers.big == 9007199254740993", true),
            (".properties.headers.big == 9007199254740992", false),
            (".body | fromjson | .id == 9007199254740993", true),
            (".body | fromjson | .id == 9007199254740992", false),
            (".origin.x? // \"none\" | . == \"none\"", true),
            ("first(range(1e12)) == 0", true),
            ("first(repeat(1))", true),
            ("now > 1700000000", true),
            ("[limit(3; repeat(1))] | length == 3", true),
            (".origin as $o | $o == \"work\"", true),
        ] {
            let filter = Filter::parse(code).expect(code);
            assert_eq!(filter.accepts(&message).expect(code), accepted, "{code}");
            // It can be asked again.
            assert_eq!(filter.accepts(&message).expect(code), accepted, "{code}");
        }
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        for (code, place) in [
            (".a ==", "after its end"),
            (".a == foo", "at character 7: undefined filter 'foo'"),
            ("\"é\" | $x", "at character 7: undefined variable '$x'"),
            (".a | (.b", "after its end: expected closing parenthesis"),
            (".a ]", "at character 4"),
            ("", "after its end"),
            ("input", "undefined filter 'input'"),
            ("inputs", "undefined filter 'inputs'"),
            ("env", "undefined filter 'env'"),
            ("$ENV", "undefined variable '$ENV'"),
            ("halt", "undefined filter 'halt'"),
            ("halt_error", "undefined filter 'halt_error'"),
            ("halt(1)", "undefined filter 'halt'"),
            ("debug", "undefined filter 'debug'"),
            ("stderr", "undefined filter 'stderr'"),
            ("include \"a\"; .", "module loading not supported"),
            ("import \"a\" as a; .", "module loading not supported"),
            ("import \"a\" as $a; $a", "files cannot be read"),
        ] {
            let error = Filter::parse(code).expect_err(code);
            assert_eq!(error.kind(), crate::error::ErrorKind::Usage, "{code}");
            assert!(error.message().contains(place), "{code}: {error}");
        }
    }

    #[test]
    fn a_failure_names_the_filter_and_what_failed() {
        let filter = Filter::parse(".body | fromjson | .id").expect("filter");
        for body in ["no json", "", "{} {}", "NaN", "[1"] {
            let error = filter.accepts(&json!({"body": body})).expect_err(body);
            let text = error.to_string();
            assert!(text.contains("--filter '.body | fromjson | .id'"), "{text}");
            assert!(text.contains("not JSON") && text.contains('?'), "{text}");
        }
        let index = Filter::parse(".body.x").expect("filter");
        let error = index.accepts(&json!({"body": "a"})).expect_err("index");
        assert!(error.message().contains("cannot index"), "{error}");
    }

    #[test]
    fn a_body_nested_without_end_is_an_error_and_no_crash() {
        let filter = Filter::parse(".body | fromjson").expect("filter");
        let body = "[".repeat(1_000_000);
        let error = filter
            .accepts(&json!({ "body": body }))
            .expect_err("nested");
        assert!(error.message().contains("nested 1000000 deep"), "{error}");
    }

    #[test]
    #[ignore = "it takes as long as a program may think"]
    fn a_program_without_end_is_given_up() {
        let filter = Filter::parse("last(range(1; infinite))").expect("filter");
        let error = filter.accepts(&json!({})).expect_err("endless");
        assert!(error.message().contains("no answer within 10s"), "{error}");
    }
}
