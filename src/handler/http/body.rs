//! The body of an answer, never more of it than asked for.

use reqwest::Response;

use crate::error::root;

/// What is left of a body after reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// All of it was read.
    Nothing,
    /// More than was asked for.
    TooMuch,
    /// The connection broke before the end.
    Broken(String),
    /// The end did not come in time.
    Late,
}

/// Reads at most `most` bytes into `body`; what was read stays there when this
/// is dropped.
pub(super) async fn read(response: &mut Response, body: &mut Vec<u8>, most: usize) -> Rest {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = most.saturating_sub(body.len());
                match chunk.get(..room) {
                    Some(fitting) if fitting.len() < chunk.len() => {
                        body.extend_from_slice(fitting);
                        return Rest::TooMuch;
                    }
                    _ => body.extend_from_slice(&chunk),
                }
            }
            Ok(None) => return Rest::Nothing,
            Err(error) => return Rest::Broken(root(&error).to_string()),
        }
    }
}
