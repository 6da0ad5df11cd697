//! Headers exchanges: `x-match` and the values of a binding.

use crate::field::{FieldTable, FieldValue};

/// Whether a binding with these arguments takes a message with these headers.
///
/// `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; without
/// `-with-x`, arguments whose name begins with `x-` are not compared. A binding
/// value of no type (void) asks only for the header to be there.
#[must_use]
pub fn matches(arguments: &FieldTable, headers: &FieldTable) -> bool {
    let mode = arguments
        .get("x-match")
        .and_then(FieldValue::as_text)
        .unwrap_or("all");
    let with_x = mode.ends_with("-with-x");
    let mut compared = arguments
        .iter()
        .filter(|(name, _)| *name != "x-match" && (with_x || !name.starts_with("x-")))
        .map(|(name, wanted)| match (headers.get(name), wanted) {
            (None, _) => false,
            (Some(_), FieldValue::Void) => true,
            (Some(found), wanted) => same(found, wanted),
        });
    if mode.starts_with("any") {
        compared.any(|equal| equal)
    } else {
        compared.all(|equal| equal)
    }
}

fn same(a: &FieldValue, b: &FieldValue) -> bool {
    match (a.as_integer(), b.as_integer()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pairs: &[(&str, FieldValue)]) -> FieldTable {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect()
    }

    #[test]
    fn all_any_and_x() {
        let message = table(&[
            ("kind", FieldValue::text("a")),
            ("n", FieldValue::I32(3)),
            ("x-n", FieldValue::I32(1)),
        ]);
        let kind = ("kind", FieldValue::text("a"));
        let other = ("kind", FieldValue::text("b"));
        let n = ("n", FieldValue::I64(3));
        let x = ("x-n", FieldValue::I64(2));
        let mode = |mode: &str| ("x-match", FieldValue::text(mode));
        for (arguments, expected) in [
            (vec![kind.clone(), n.clone()], true),
            (vec![other.clone(), n.clone()], false),
            (vec![mode("any"), other.clone(), n.clone()], true),
            (vec![mode("any")], false),
            (vec![], true),
            (vec![kind.clone(), x.clone()], true),
            (vec![mode("all-with-x"), kind, x.clone()], false),
            (vec![mode("any-with-x"), x, n], true),
            (vec![("n", FieldValue::Void)], true),
            (vec![("absent", FieldValue::Void)], false),
        ] {
            assert_eq!(
                matches(&table(&arguments), &message),
                expected,
                "{arguments:?}"
            );
        }
    }
}
