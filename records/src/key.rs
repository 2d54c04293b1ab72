//! Ids that are derived from a key (`docs/format/tables-and-schema.md` 2.7).

use graph::schema::SystemRole;
use graph::schema::types::Scalar;

use crate::calendar::{parse_date, parse_date_time};
use crate::error::RecordError;
use crate::types::{Member, TableType};
use crate::value::{Value, canonical_text};

/// The id of a row of a keyed type; `None` for a type without key.
///
/// Errors, without line and table: a member that is null, a float that is not finite, or an empty id.
pub(crate) fn derive(
    table: &TableType,
    endpoints: Option<&(String, String)>,
    values: &[Value],
) -> Result<Option<String>, RecordError> {
    let Some(key) = &table.key else {
        return Ok(None);
    };
    let texts = key
        .iter()
        .map(|member| member_text(table, *member, endpoints, values))
        .collect::<Result<Vec<String>, RecordError>>()?;
    let id = match <[String; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => tuple(&texts)?,
    };
    if id.is_empty() {
        return Err(RecordError::new(
            "the key is an empty string, expected a key that can serve as the id: give it a value",
        ));
    }
    Ok(Some(id))
}

fn member_text(
    table: &TableType,
    member: Member,
    endpoints: Option<&(String, String)>,
    values: &[Value],
) -> Result<String, RecordError> {
    match (member, endpoints) {
        (Member::System(SystemRole::Src), Some((src, _))) => Ok(src.clone()),
        (Member::System(SystemRole::Dst), Some((_, dst))) => Ok(dst.clone()),
        (Member::System(_), _) => Err(RecordError::new("the key needs both endpoints of an edge")),
        (Member::Property(index), _) => {
            let name = table.properties.get(index).map_or("", |p| p.name.as_str());
            let text = values.get(index).map(canonical_text).transpose();
            text.map_err(|e| e.on(name))?.flatten().ok_or_else(|| {
                RecordError::new("found null, expected a value: it is part of the key").on(name)
            })
        }
    }
}

fn tuple(texts: &[String]) -> Result<String, RecordError> {
    serde_json::to_string(texts).map_err(|e| RecordError::new(e.to_string()))
}

/// Whether `supplied` spells the key of these values in another way: each component, typed as its member,
/// has the canonical text of the value (8.2).
pub(crate) fn denotes(table: &TableType, values: &[Value], supplied: &str) -> bool {
    let Some(key) = &table.key else {
        return false;
    };
    let components = match key.as_slice() {
        [_] => vec![supplied.to_string()],
        _ => match serde_json::from_str::<Vec<serde_json::Value>>(supplied) {
            Ok(components) => components
                .into_iter()
                .map(|component| match component {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                })
                .collect(),
            Err(_) => return false,
        },
    };
    components.len() == key.len()
        && key.iter().zip(&components).all(|(member, component)| {
            let Member::Property(index) = *member else {
                return false;
            };
            let (Some(property), Some(value)) = (table.properties.get(index), values.get(index))
            else {
                return false;
            };
            let typed = respell(property.prop_type.scalar, component);
            typed.is_some_and(|typed| same(&typed, value))
        })
}

fn same(a: &Value, b: &Value) -> bool {
    match (canonical_text(a), canonical_text(b)) {
        (Ok(Some(a)), Ok(Some(b))) => a == b,
        _ => false,
    }
}

/// The value that a text of a key component stands for.
fn respell(scalar: Scalar, text: &str) -> Option<Value> {
    Some(match scalar {
        Scalar::String => Value::Text(text.to_string()),
        Scalar::Bool => Value::Bool(text.parse().ok()?),
        Scalar::I32 => Value::I32(text.parse().ok()?),
        Scalar::I64 => Value::I64(text.parse().ok()?),
        Scalar::U32 => Value::U32(text.parse().ok()?),
        Scalar::U64 => Value::U64(text.parse().ok()?),
        Scalar::F32 => Value::F32(text.parse().ok()?),
        Scalar::F64 => Value::F64(text.parse().ok()?),
        Scalar::Date => Value::Date(text.parse().ok().or_else(|| parse_date(text))?),
        Scalar::DateTime => Value::DateTime(text.parse().ok().or_else(|| parse_date_time(text))?),
        Scalar::Blob | Scalar::Vector(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_component() {
        let cases = [
            (Scalar::I64, "007", Some(Value::I64(7))),
            (Scalar::I64, "+7", Some(Value::I64(7))),
            (Scalar::I64, "7.0", None),
            (Scalar::I64, " 7", None),
            (Scalar::I32, "2147483648", None),
            (Scalar::U32, "-1", None),
            (
                Scalar::U64,
                "018446744073709551615",
                Some(Value::U64(u64::MAX)),
            ),
            (Scalar::F64, "1.0", Some(Value::F64(1.0))),
            (Scalar::F64, "1e0", Some(Value::F64(1.0))),
            (Scalar::F32, "0.10000000149011612", Some(Value::F32(0.1))),
            (Scalar::Bool, "true", Some(Value::Bool(true))),
            (Scalar::Bool, "TRUE", None),
            (Scalar::Date, "2026-03-05", Some(Value::Date(20517))),
            (Scalar::Date, "20517", Some(Value::Date(20517))),
            (
                Scalar::DateTime,
                "1970-01-01T00:00:01Z",
                Some(Value::DateTime(1000)),
            ),
            (Scalar::String, "a", Some(Value::Text("a".into()))),
            (Scalar::Blob, "a", None),
        ];
        for (scalar, text, value) in cases {
            assert_eq!(respell(scalar, text), value, "{scalar:?} {text}");
        }
    }

    #[test]
    fn no_two_keys_are_the_same_without_a_text() {
        assert!(same(&Value::F64(-0.0), &Value::F64(0.0)));
        assert!(!same(&Value::F64(f64::NAN), &Value::F64(f64::NAN)));
        assert!(!same(&Value::Null, &Value::Null));
    }
}
