//! `replaced_table` rows: what a publish read for an identity it then changed, stored as a difference
//! from the row as it is now (`docs/format/manifest-v14.md` 3.3 and 5.2).

use serde_json::{Map, Value};

use super::packed::{COMMIT_MASK, Field, Record};
use super::row::{self, LogicalRow, object_type};
use super::state::Replaced;
use crate::error::{Error, Result};
use crate::model::table::canonical_path;
use crate::model::{PinMetadata, TableRow, TableState};

const PATH: &str = "manifest_path";
const FILE: &str = "manifest_file";

/// The JSON object of pin metadata.
fn object(metadata: &PinMetadata) -> Result<Map<String, Value>> {
    match serde_json::to_value(metadata) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(Error::internal("pin metadata does not encode as an object")),
    }
}

/// The members of `before` that `base` lacks or holds otherwise, members only `base` holds as null, and
/// a manifest path in the same folder reduced to its file name.
pub fn delta_between(before: &PinMetadata, base: &PinMetadata) -> Result<Map<String, Value>> {
    let (before, base) = (object(before)?, object(base)?);
    let mut delta = Map::new();
    for (key, value) in &before {
        if base.get(key) != Some(value) {
            delta.insert(key.clone(), value.clone());
        }
    }
    for key in base.keys().filter(|k| !before.contains_key(*k)) {
        delta.insert(key.clone(), Value::Null);
    }
    let (Some(Value::String(path)), Some(Value::String(base_path))) =
        (delta.get(PATH), base.get(PATH))
    else {
        return Ok(delta);
    };
    if let (Some((folder, file)), Some((base_folder, _))) =
        (path.rsplit_once('/'), base_path.rsplit_once('/'))
        && folder == base_folder
    {
        let file = file.to_string();
        delta.remove(PATH);
        delta.insert(FILE.into(), Value::String(file));
    }
    Ok(delta)
}

/// Apply a stored delta to `base`. `object_id` names the row in errors ([`Error::Internal`]).
pub fn apply_delta(text: &str, base: &PinMetadata, object_id: &str) -> Result<PinMetadata> {
    let refuse = |why: String| Error::internal(format!("row '{object_id}': metadata delta {why}"));
    let Ok(Value::Object(delta)) = serde_json::from_str::<Value>(text) else {
        return Err(refuse("is not a JSON object".into()));
    };
    let mut merged = object(base)?;
    for (key, value) in delta {
        if key == FILE {
            let Value::String(file) = value else {
                return Err(refuse(format!("has a {FILE} that is no text")));
            };
            let folder = merged
                .get(PATH)
                .and_then(Value::as_str)
                .and_then(|p| p.rsplit_once('/'))
                .map(|(folder, _)| folder.to_string())
                .ok_or_else(|| {
                    refuse(format!("has a {FILE}, but the current path has no folder"))
                })?;
            merged.insert(PATH.into(), Value::String(format!("{folder}/{file}")));
        } else if value.is_null() {
            merged.remove(&key);
        } else {
            merged.insert(key, value);
        }
    }
    serde_json::from_value(Value::Object(merged))
        .map_err(|e| refuse(format!("does not apply: {e}")))
}

/// Encode one replaced row against the `table` row of the version being written.
pub fn encode(replaced: &Replaced, current: &TableRow) -> Result<LogicalRow> {
    let identity = replaced.before.identity;
    let mut record = Record::default();
    if replaced.before.table_key != current.table_key {
        record.set_text(Field::TableKey, replaced.before.table_key.clone());
    }
    record.set_u64(Field::StableTableId, identity.stable_table_id);
    record.set_u64(Field::TableIncarnationId, identity.table_incarnation_id);
    row::set_state(&mut record, &replaced.before.state);
    if let (Some(before), Some(now)) = (replaced.before.state.pin(), current.state.pin()) {
        let delta = delta_between(&before.metadata, &now.metadata)?;
        record.set_text(Field::Metadata, Value::Object(delta).to_string());
    }
    record.set_u64(Field::ReplacedAt, replaced.replaced_at);
    if replaced.registered {
        record.set_u64(Field::RegisteredAt, replaced.replaced_at);
    }
    Ok(LogicalRow {
        object_id: row::replaced_object_id(identity, replaced.replaced_at),
        object_type: object_type::REPLACED_TABLE.into(),
        record,
        ..LogicalRow::default()
    })
}

/// Decode one replaced row standing in `version`; `current` finds the `table` row of an identity.
pub fn decode<'a>(
    stored: &LogicalRow,
    version: u64,
    current: impl Fn(crate::model::TableIdentity) -> Option<&'a TableRow>,
) -> Result<Replaced> {
    row::require_null(stored, COMMIT_MASK, "a commit")?;
    let identity = row::identity(stored)?;
    let refuse = |why: String| Error::internal(format!("row '{}': {why}", stored.object_id));
    let replaced_at = stored
        .record
        .u64(Field::ReplacedAt)
        .ok_or_else(|| refuse("replaced_at is null".into()))?;
    row::require_id(stored, &row::replaced_object_id(identity, replaced_at))?;
    if replaced_at > version {
        return Err(refuse(format!(
            "replaced_at {replaced_at} is above the version {version} it stands in"
        )));
    }
    let registered = match stored.record.u64(Field::RegisteredAt) {
        None => false,
        Some(at) if at == replaced_at => true,
        Some(at) => return Err(refuse(format!("registered_at {at} is not {replaced_at}"))),
    };
    let now = current(identity)
        .ok_or_else(|| refuse("there is no table row of its identity in this version".into()))?;
    if stored.record.text(Field::Location).is_some() {
        return Err(refuse("location must be null, it is derived".into()));
    }
    let table_key = stored
        .record
        .text(Field::TableKey)
        .unwrap_or(&now.table_key)
        .to_string();
    let metadata = match (stored.record.text(Field::Metadata), now.state.pin()) {
        (None, _) => None,
        (Some(text), Some(pin)) => Some(apply_delta(text, &pin.metadata, &stored.object_id)?),
        (Some(text), None) => Some(PinMetadata::parse(text, &stored.object_id)?),
    };
    let state = row::state(stored, metadata)?;
    row::check_clock(&stored.object_id, &state, version)?;
    if registered && state != TableState::Registered {
        return Err(refuse("it is marked registered but carries a state".into()));
    }
    Ok(Replaced {
        before: TableRow {
            identity,
            table_path: canonical_path(&table_key, identity)?,
            table_key,
            state,
        },
        replaced_at,
        registered,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn metadata() -> impl Strategy<Value = PinMetadata> {
        (
            prop_oneof![
                Just("g/a/_versions/1.manifest"),
                Just("g/a/_versions/2.manifest"),
                Just("g/b/_versions/2.manifest"),
                Just("flat")
            ],
            proptest::option::of(0u64..3),
            proptest::option::of(Just("e".to_string())),
            proptest::option::of(Just("own".to_string())),
            proptest::option::of(any::<u64>()),
        )
            .prop_map(|(path, size, e_tag, owner, staged)| PinMetadata {
                manifest_path: path.into(),
                manifest_size: size,
                e_tag,
                naming_scheme: Some("V2".into()),
                table_fork_owner: owner,
                staged_version: staged,
                transaction_uuid: None,
                last_linear_version: staged,
            })
    }

    proptest! {
        #[test]
        fn a_delta_applies_back(before in metadata(), base in metadata()) {
            let delta = Value::Object(delta_between(&before, &base).unwrap()).to_string();
            prop_assert_eq!(apply_delta(&delta, &base, "x").unwrap(), before);
        }
    }

    #[test]
    fn a_path_in_the_same_folder_is_stored_as_a_file() {
        let of = |path: &str| PinMetadata {
            manifest_path: path.into(),
            ..PinMetadata::default()
        };
        let delta = delta_between(&of("a/b/1.manifest"), &of("a/b/2.manifest")).unwrap();
        assert_eq!(
            Value::Object(delta).to_string(),
            r#"{"manifest_file":"1.manifest"}"#
        );
        let delta = delta_between(&of("a/c/1.manifest"), &of("a/b/2.manifest")).unwrap();
        assert_eq!(
            Value::Object(delta).to_string(),
            r#"{"manifest_path":"a/c/1.manifest"}"#
        );
    }

    #[test]
    fn only_objects_are_deltas() {
        for bad in [
            "",
            "[]",
            "null",
            "3",
            r#"{"manifest_file":1}"#,
            r#"{"manifest_file":"x"}"#,
        ] {
            let base = PinMetadata {
                manifest_path: "flat".into(),
                ..PinMetadata::default()
            };
            assert!(apply_delta(bad, &base, "x").is_err(), "{bad}");
        }
    }
}
