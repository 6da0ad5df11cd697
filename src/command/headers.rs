//! Headers from the command line.

use serde_json::Value as Json;

use crate::cli::HeaderArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::field::{FieldTable, FieldValue};

/// The headers as they were typed.
pub(super) fn table(args: &HeaderArgs) -> Result<FieldTable> {
    let mut headers = FieldTable::new();
    for header in &args.headers {
        let (name, text) = split(header, "--header", "NAME=TEXT")?;
        insert(&mut headers, name, FieldValue::text(text))?;
    }
    for header in &args.json_headers {
        let (name, text) = split(header, "--header-json", "NAME=JSON")?;
        let json: Json = serde_json::from_str(text).map_err(|error| {
            Error::new(
                ErrorKind::Usage,
                format!("--header-json {name}: not JSON ({error})"),
            )
            .hint("quote it for the shell: --header-json 'n=5', --header-json 'list=[1,2]'")
        })?;
        if let Some(number) = too_large(&json) {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--header-json {name}: {number} does not fit into 64 bits"),
            )
            .hint("send it as text: --header NAME=TEXT"));
        }
        insert(&mut headers, name, FieldValue::from_json(&json))?;
    }
    Ok(headers)
}

fn insert(headers: &mut FieldTable, name: String, value: FieldValue) -> Result<()> {
    if headers.contains_key(&name) {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("the header '{name}' is given twice"),
        )
        .hint("a message has each header once; for several values use --header-json 'NAME=[…]'"));
    }
    headers.insert(name, value);
    Ok(())
}

/// A whole number that AMQP has no type for.
fn too_large(json: &Json) -> Option<String> {
    match json {
        Json::Number(number) => {
            let text = number.to_string();
            let whole = !text.contains(['.', 'e', 'E']);
            let float_of_whole =
                number.as_f64().is_some_and(|n| n.abs() > 9.3e18) && !number.is_i64();
            (whole && !number.is_i64() || float_of_whole).then_some(text)
        }
        Json::Array(items) => items.iter().find_map(too_large),
        Json::Object(object) => object.values().find_map(too_large),
        Json::Null | Json::Bool(_) | Json::String(_) => None,
    }
}

fn split<'t>(header: &'t str, flag: &str, form: &str) -> Result<(String, &'t str)> {
    match header.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text)),
        _ => Err(Error::new(
            ErrorKind::Usage,
            format!("{flag} '{header}' is not of the form {form}"),
        )
        .hint(format!("write {flag} {form}"))),
    }
}
