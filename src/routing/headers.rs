//! Headers exchanges: `x-match` and the values of a binding.

use crate::field::{FieldTable, FieldValue};

/// What a broker takes for the same value. Types count for nothing in either,
/// only the number or the bytes they stand for; inside arrays and tables they
/// count (all measured on 3.10.8, 4.0.5 and 4.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Equality {
    /// Since 3.13: `1` and `1.0` differ, so do `0.0` and `-0.0`, and a
    /// message's timestamp counts in milliseconds, a binding's in seconds.
    Exact,
    /// Before: `1` and `1.0` are the same number, and a timestamp is its seconds.
    Numeric,
}

/// Whether a binding with these arguments takes a message with these headers.
///
/// `x-match` is `all` (default), `any`, `all-with-x` or `any-with-x`; without
/// `-with-x`, arguments whose name begins with `x-` are not compared. A binding
/// value of no type (void) asks only for the header to be there.
pub(super) fn matches(arguments: &FieldTable, headers: &FieldTable, equality: Equality) -> bool {
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
            (Some(found), wanted) => equality.holds(found, wanted),
        });
    if mode.starts_with("any") {
        compared.any(|equal| equal)
    } else {
        compared.all(|equal| equal)
    }
}

/// Whether a binding with these arguments takes every message, whatever its headers.
#[must_use]
pub fn takes_everything(arguments: &FieldTable) -> bool {
    matches(arguments, &FieldTable::new(), Equality::Exact)
}

/// A value as the broker sees it, without its AMQP type.
#[derive(PartialEq)]
enum Seen<'v> {
    Whole(i128),
    Broken(f64),
    Bytes(&'v [u8]),
    /// Arrays and tables without an element are the same.
    Empty,
    Other(&'v FieldValue),
}

impl Equality {
    fn holds(self, found: &FieldValue, wanted: &FieldValue) -> bool {
        let second = match self {
            Self::Exact => 1_000,
            Self::Numeric => 1,
        };
        match (Seen::of(found, second), Seen::of(wanted, 1)) {
            (Seen::Broken(a), Seen::Broken(b)) if self == Self::Exact => a.to_bits() == b.to_bits(),
            (Seen::Whole(whole), Seen::Broken(broken))
            | (Seen::Broken(broken), Seen::Whole(whole)) => {
                self == Self::Numeric && is_whole(broken, whole)
            }
            (a, b) => a == b,
        }
    }
}

impl<'v> Seen<'v> {
    fn of(value: &'v FieldValue, second: i128) -> Self {
        match value {
            FieldValue::F32(v) => Self::Broken(f64::from(*v)),
            FieldValue::F64(v) => Self::Broken(*v),
            FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => Self::Bytes(bytes),
            FieldValue::Timestamp(seconds) => Self::Whole(i128::from(*seconds) * second),
            FieldValue::Array(items) if items.is_empty() => Self::Empty,
            FieldValue::Table(entries) if entries.is_empty() => Self::Empty,
            other => match other.as_integer() {
                Some(whole) => Self::Whole(whole.into()),
                None => Self::Other(other),
            },
        }
    }
}

/// Whether both are the same number, without rounding either.
#[expect(clippy::cast_possible_truncation, reason = "what is too large differs")]
fn is_whole(broken: f64, whole: i128) -> bool {
    broken.fract() == 0.0 && broken as i128 == whole
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
            for equality in [Equality::Exact, Equality::Numeric] {
                assert_eq!(
                    matches(&table(&arguments), &message, equality),
                    expected,
                    "{arguments:?}"
                );
            }
        }
    }

    #[test]
    fn types_count_inside_arrays_and_tables_only() {
        let array = |value| FieldValue::Array(vec![value]);
        for (found, wanted, exact, numeric) in [
            (FieldValue::I8(1), FieldValue::U32(1), true, true),
            (FieldValue::I8(1), FieldValue::F64(1.0), false, true),
            (FieldValue::I64(1), FieldValue::text("1"), false, false),
            (FieldValue::F32(1.0), FieldValue::F64(1.0), true, true),
            (FieldValue::F32(0.1), FieldValue::F64(0.1), false, false),
            (FieldValue::F64(0.0), FieldValue::F64(-0.0), false, true),
            (
                FieldValue::F64(9e99),
                FieldValue::I64(i64::MAX),
                false,
                false,
            ),
            (
                FieldValue::Bytes(b"a".to_vec()),
                FieldValue::text("a"),
                true,
                true,
            ),
            (FieldValue::I64(1), FieldValue::Timestamp(1), true, true),
            (FieldValue::Timestamp(1), FieldValue::I64(1), false, true),
            (
                FieldValue::Timestamp(1),
                FieldValue::I64(1_000),
                true,
                false,
            ),
            (FieldValue::Void, FieldValue::text(""), false, false),
            (
                FieldValue::Array(Vec::new()),
                FieldValue::Table(FieldTable::new()),
                true,
                true,
            ),
            (
                array(FieldValue::I64(1)),
                array(FieldValue::I64(1)),
                true,
                true,
            ),
            (
                array(FieldValue::I32(1)),
                array(FieldValue::I64(1)),
                false,
                false,
            ),
            (
                array(FieldValue::Timestamp(1)),
                array(FieldValue::Timestamp(1)),
                true,
                true,
            ),
        ] {
            let found_and_wanted = format!("{found:?} {wanted:?}");
            assert_eq!(
                Equality::Exact.holds(&found, &wanted),
                exact,
                "{found_and_wanted}"
            );
            assert_eq!(
                Equality::Numeric.holds(&found, &wanted),
                numeric,
                "{found_and_wanted}"
            );
        }
    }
}
