//! The types that JSON forgets: which of them a binding was made with.

use crate::field::{FieldTable, FieldValue};

/// How a client may have written the numbers of a binding's arguments.
type Retyped = fn(i64) -> Option<FieldValue>;

/// The arguments in every spelling that looks the same in JSON, the most usual
/// first. All numbers of one table have the same width: clients write them so.
///
/// The broker takes two bindings for the same only if the types of their
/// arguments agree too, and its answers are JSON.
#[must_use]
pub fn spellings(arguments: &FieldTable) -> Vec<FieldTable> {
    const INTEGERS: [Retyped; 8] = [
        |n| Some(FieldValue::I64(n)),
        |n| Some(FieldValue::I32(i32::try_from(n).ok()?)),
        |n| Some(FieldValue::I8(i8::try_from(n).ok()?)),
        |n| Some(FieldValue::I16(i16::try_from(n).ok()?)),
        |n| Some(FieldValue::U8(u8::try_from(n).ok()?)),
        |n| Some(FieldValue::U16(u16::try_from(n).ok()?)),
        |n| Some(FieldValue::U32(u32::try_from(n).ok()?)),
        |n| Some(FieldValue::Timestamp(u64::try_from(n).ok()?)),
    ];
    let mut found: Vec<FieldTable> = Vec::new();
    for retype in INTEGERS {
        let spelled: Option<FieldTable> = arguments
            .iter()
            .map(|(name, value)| {
                let value = match value.as_integer() {
                    Some(number) => retype(number)?,
                    None => value.clone(),
                };
                Some((name.clone(), value))
            })
            .collect();
        if let Some(spelled) = spelled.filter(|spelled| !found.contains(spelled)) {
            found.push(spelled);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_in_every_width_they_fit_into() {
        let table = |number: i64| {
            FieldTable::from([
                ("n".to_owned(), FieldValue::I64(number)),
                ("x-match".to_owned(), FieldValue::text("all")),
            ])
        };
        assert_eq!(spellings(&table(5)).len(), 8);
        assert_eq!(spellings(&table(-5)).len(), 4);
        assert_eq!(spellings(&table(1 << 40)).len(), 2);
        assert_eq!(spellings(&FieldTable::new()).len(), 1);
        assert_eq!(spellings(&table(5)).first(), Some(&table(5)));
    }
}
