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
const SIZE: &str = "manifest_size";
/// What the text of a delta takes as a rule.
const TEXT_BYTES: usize = 256;

/// The JSON object of pin metadata.
fn object(metadata: &PinMetadata) -> Result<Map<String, Value>> {
    match serde_json::to_value(metadata) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(Error::internal("pin metadata does not encode as an object")),
    }
}

/// A member of the JSON object of pin metadata; an absent one is `None`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member<'m> {
    Null,
    Text(&'m str),
    Number(u64),
}

impl Member<'_> {
    fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => text.into(),
            Self::Number(n) => n.into(),
        }
    }
}

/// The members as serde writes them. A buffer holds hundreds of rows, each read against the same base: going through a
/// JSON object for each is most of what a publish would cost.
fn members(metadata: &PinMetadata) -> [(&'static str, Option<Member<'_>>); 8] {
    let PinMetadata {
        manifest_path,
        manifest_size,
        e_tag,
        naming_scheme,
        table_fork_owner,
        staged_version,
        transaction_uuid,
        last_linear_version,
    } = metadata;
    fn text(text: &Option<String>) -> Option<Member<'_>> {
        text.as_deref().map(Member::Text)
    }
    [
        (PATH, Some(Member::Text(manifest_path))),
        (
            SIZE,
            Some(manifest_size.map_or(Member::Null, Member::Number)),
        ),
        ("e_tag", Some(text(e_tag).unwrap_or(Member::Null))),
        (
            "naming_scheme",
            Some(text(naming_scheme).unwrap_or(Member::Null)),
        ),
        ("table_fork_owner", text(table_fork_owner)),
        ("staged_version", staged_version.map(Member::Number)),
        ("transaction_uuid", text(transaction_uuid)),
        (
            "last_linear_version",
            last_linear_version.map(Member::Number),
        ),
    ]
}

/// The difference of pin metadata from a base: the members that the base lacks or holds otherwise, members only the base
/// holds as null, and a manifest path in the same folder reduced to its file name.
pub struct Delta<'m> {
    /// Ascending by name.
    members: Vec<(&'static str, Member<'m>)>,
}

impl<'m> Delta<'m> {
    /// What `before` has other than `base`.
    pub fn between(before: &'m PinMetadata, base: &PinMetadata) -> Self {
        let mut differing: Vec<(&'static str, Member<'m>)> = members(before)
            .into_iter()
            .zip(members(base))
            .filter(|((_, was), (_, now))| was != now)
            .map(|((key, was), _)| (key, was.unwrap_or(Member::Null)))
            .collect();
        if let Some((key, path)) = differing.iter_mut().find(|(key, _)| *key == PATH)
            && let Some((folder, file)) = before.manifest_path.rsplit_once('/')
            && let Some((base_folder, _)) = base.manifest_path.rsplit_once('/')
            && folder == base_folder
        {
            (*key, *path) = (FILE, Member::Text(file));
        }
        differing.sort_unstable_by_key(|(key, _)| *key);
        Self { members: differing }
    }

    /// The compact JSON object.
    pub fn text(&self) -> String {
        self.text_of(|_| true)
    }

    /// Bytes of the compact JSON object without its `manifest_size`.
    pub fn measured_bytes(&self) -> u64 {
        self.text_of(|key| key != SIZE).len() as u64
    }

    fn text_of(&self, holds: impl Fn(&str) -> bool) -> String {
        let mut text = String::with_capacity(TEXT_BYTES);
        text.push('{');
        for (key, member) in self.members.iter().filter(|(key, _)| holds(key)) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push('"');
            text.push_str(key);
            text.push_str("\":");
            match member {
                Member::Text(value) if is_plain(value) => {
                    text.push('"');
                    text.push_str(value);
                    text.push('"');
                }
                other => text.push_str(&other.value().to_string()),
            }
        }
        text.push('}');
        text
    }
}

/// Whether JSON holds a text as it is, between quotes.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\')
}

/// Apply a stored delta to `base`. `object_id` names the row in errors ([`Error::Internal`]).
pub fn apply_delta(text: &str, base: &PinMetadata, object_id: &str) -> Result<PinMetadata> {
    let refuse = |why: String| Error::internal(format!("row '{object_id}': metadata delta {why}"));
    let Ok(Value::Object(delta)) = serde_json::from_str::<Value>(text) else {
        return Err(refuse("is not a JSON object".into()));
    };
    if let Some(merged) = applied(&delta, base) {
        return Ok(merged);
    }
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

/// The delta applied, when each of its members is one that a writer puts there; `None` leaves it to the general way.
fn applied(delta: &Map<String, Value>, base: &PinMetadata) -> Option<PinMetadata> {
    fn text(value: &Value) -> Option<Option<String>> {
        match value {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(text.clone())),
            _ => None,
        }
    }
    fn number(value: &Value) -> Option<Option<u64>> {
        match value {
            Value::Null => Some(None),
            Value::Number(n) => Some(Some(n.as_u64()?)),
            _ => None,
        }
    }
    if delta.contains_key(FILE) && delta.contains_key(PATH) {
        return None;
    }
    let mut merged = base.clone();
    for (key, value) in delta {
        match key.as_str() {
            FILE => {
                let (folder, _) = base.manifest_path.rsplit_once('/')?;
                merged.manifest_path = format!("{folder}/{}", value.as_str()?);
            }
            PATH => merged.manifest_path = value.as_str()?.to_string(),
            SIZE => merged.manifest_size = number(value)?,
            "e_tag" => merged.e_tag = text(value)?,
            "naming_scheme" => merged.naming_scheme = text(value)?,
            "table_fork_owner" => merged.table_fork_owner = text(value)?,
            "staged_version" => merged.staged_version = number(value)?,
            "transaction_uuid" => merged.transaction_uuid = text(value)?,
            "last_linear_version" => merged.last_linear_version = number(value)?,
            _ => return None,
        }
    }
    Some(merged)
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
        let delta = Delta::between(&before.metadata, &now.metadata);
        record.set_text(Field::Metadata, delta.text());
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
                Just("g/b/_versions/\"ü\\\n.manifest"),
                Just("flat")
            ],
            proptest::option::of(0u64..3),
            proptest::option::of(
                prop_oneof![Just("e"), Just("\"\u{1}\u{7f}\\é")].prop_map(String::from),
            ),
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
            let delta = Delta::between(&before, &base).text();
            prop_assert_eq!(apply_delta(&delta, &base, "x").unwrap(), before);
        }

        #[test]
        fn a_delta_is_compact_json_and_measured_without_its_size(before in metadata(), base in metadata()) {
            let delta = Delta::between(&before, &base);
            let mut json: Value = serde_json::from_str(&delta.text()).unwrap();
            prop_assert_eq!(json.to_string(), delta.text());
            json.as_object_mut().unwrap().remove(SIZE);
            prop_assert_eq!(json.to_string().len() as u64, delta.measured_bytes());
        }

        #[test]
        fn members_are_those_of_the_json_object(of in metadata()) {
            let listed: Map<String, Value> = members(&of)
                .into_iter()
                .filter_map(|(key, member)| Some((key.to_string(), member?.value())))
                .collect();
            prop_assert_eq!(listed, object(&of).unwrap());
        }
    }

    #[test]
    fn a_path_in_the_same_folder_is_stored_as_a_file() {
        let of = |path: &str| PinMetadata {
            manifest_path: path.into(),
            ..PinMetadata::default()
        };
        let text = |before, base| Delta::between(&of(before), &of(base)).text();
        assert_eq!(
            text("a/b/1.manifest", "a/b/2.manifest"),
            r#"{"manifest_file":"1.manifest"}"#
        );
        assert_eq!(
            text("a/c/1.manifest", "a/b/2.manifest"),
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
            r#"{"manifest_path":null}"#,
            r#"{"staged_version":-1}"#,
            r#"{"e_tag":7}"#,
        ] {
            let base = PinMetadata {
                manifest_path: "flat".into(),
                ..PinMetadata::default()
            };
            assert!(apply_delta(bad, &base, "x").is_err(), "{bad}");
        }
    }
}
