//! How a body is repaired.

use serde_json::Value as Json;

use crate::error::Result;
use crate::query::program::Program;
use crate::query::value;

/// A program that makes one JSON body of another.
#[derive(Debug)]
pub struct Transform {
    program: Program,
}

impl Transform {
    /// Reads a jq program; `$message` is the JSON form of the message.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] with the place of the mistake.
    pub fn parse(code: &str) -> Result<Self> {
        Ok(Self {
            program: Program::parse("--transform", code, &["$message"])?,
        })
    }

    /// The body that the program makes of `body`, on one line. Numbers that it
    /// does not compute with keep all their digits.
    ///
    /// # Errors
    /// When `body` is not JSON, the program fails, gives no answer within
    /// [`crate::query::ANSWER_LIMIT`], or gives anything but exactly one value.
    pub fn apply(&self, body: &[u8], message: &Json) -> Result<Vec<u8>> {
        let (body, message) = (body.to_vec(), value::of_json(message));
        self.program.ask(move |program| {
            let input = value::of_text(&body).map_err(|why| format!("the body: {why}"))?;
            let outputs = program.run(input, vec![message], 2)?;
            match outputs.as_slice() {
                [] => Err("it gave nothing; it must give one value".to_owned()),
                [one] => value::to_text(one),
                _ => Err("it gave more than one value; it must give exactly one".to_owned()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_keeps_what_is_not_touched() {
        let message = json!({"origin": "work", "properties": {"message_id": "m1"}});
        for (code, body, made) in [
            (".", "{\"b\": 1, \"a\": 2}", "{\"b\":1,\"a\":2}"),
            (
                ".x = 1",
                "{\"big\":123456789012345678901234567890,\"exact\":0.10000000000000000001,\"e\":1e400}",
                "{\"big\":123456789012345678901234567890,\"exact\":0.10000000000000000001,\"e\":1e400,\"x\":1}",
            ),
            (".price = 1.50", "{\"price\":\"1.50\"}", "{\"price\":1.50}"),
            (
                ".id = $message.properties.message_id",
                "{}",
                "{\"id\":\"m1\"}",
            ),
            (
                "del(.a)",
                "{\"a\":1,\"é\":\"\\u0000\\ud83d\\ude00\"}",
                "{\"é\":\"\\u0000😀\"}",
            ),
            ("\"text\"", "null", "\"text\""),
            ("if .a then . else .a = 1 end", "{}", "{\"a\":1}"),
        ] {
            let transform = Transform::parse(code).expect(code);
            let found = transform.apply(body.as_bytes(), &message).expect(code);
            assert_eq!(String::from_utf8(found).expect("UTF-8"), made, "{code}");
        }
    }

    #[test]
    fn what_cannot_be_told_for_sure_is_an_error() {
        for (code, body, why) in [
            (".", &b"no json"[..], "the body: it is not JSON"),
            (".", b"", "the body: it is not JSON"),
            (".", b"\"\xff\"", "the body: it is not UTF-8"),
            (".", b"1 2", "the body: it is not JSON"),
            (".", b"NaN", "the body: it is not JSON"),
            (".", b"{} # remark", "the body: it is not JSON"),
            ("empty", b"{}", "it gave nothing"),
            ("1, 2", b"{}", "more than one value"),
            ("repeat(1)", b"{}", "more than one value"),
            ("nan", b"{}", "what it gave is not JSON"),
            ("infinite", b"{}", "what it gave is not JSON"),
            ("tobytes", b"\"a\"", "what it gave is not JSON"),
            ("{(1|tostring): 1} | error", b"{}", "--transform"),
            (".a.b.c", b"{\"a\":1}", "cannot index"),
        ] {
            let transform = Transform::parse(code).expect(code);
            let error = transform.apply(body, &json!({})).expect_err(code);
            assert!(error.message().contains(why), "{code}: {error}");
        }
        let nested = vec![b'['; 1_000_000];
        let transform = Transform::parse(".").expect("transform");
        assert!(transform.apply(&nested, &json!({})).is_err());
    }
}
