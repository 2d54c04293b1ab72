//! What a held buffer measures (`docs/format/manifest-v14.md` 8). A pure function of one version; all sums
//! saturate.

use serde_json::{Map, Value};

use super::delta::Delta;
use super::state::{BranchState, Replaced};
use crate::error::{Error, Result};
use crate::model::measure::{
    COMMIT_ROW_BYTES, MANIFEST_SIZE_MEASURE_BYTES, TABLE_ROW_BYTES, commit_bytes,
};
use crate::model::{Commit, PinMetadata, TableRow};

/// `buffered_bytes`: the buffer of a version as stored, and its head whole. This is the buffer that the next
/// publish writes.
pub fn buffered_bytes(state: &BranchState) -> Result<u64> {
    let commits = state.buffer.iter().enumerate().map(|(index, commit)| {
        let previous = index.checked_sub(1).and_then(|i| state.buffer.get(i));
        let child = state.buffer.get(index + 1).unwrap_or(&state.head);
        settled_bytes(commit, previous, child)
    });
    let mut sum = commits.fold(commit_bytes(&state.head), u64::saturating_add);
    for replaced in &state.replaced {
        let current = state.table(replaced.before.identity);
        sum = sum.saturating_add(replaced_bytes(replaced, current)?);
    }
    Ok(sum)
}

/// A buffered commit: what its row elides costs nothing.
fn settled_bytes(commit: &Commit, previous: Option<&Commit>, child: &Commit) -> u64 {
    let mut whole = commit_bytes(commit);
    let elided = |text: Option<&String>| text.map_or(0, |t| t.len() as u64);
    if previous.is_some_and(|p| Some(&p.graph_commit_id) == commit.parent_commit_id.as_ref()) {
        whole -= elided(commit.parent_commit_id.as_ref());
    }
    if commit.schema_contract == child.schema_contract
        && commit.schema_content_hash == child.schema_content_hash
    {
        let head = commit.schema_contract.as_ref();
        whole -= elided(head.map(|h| &h.schema_ir_hash));
        whole -= elided(head.map(|h| &h.schema_identity_domain));
        whole -= elided(commit.schema_content_hash.as_ref());
    }
    debug_assert!(whole >= COMMIT_ROW_BYTES);
    whole
}

fn replaced_bytes(replaced: &Replaced, current: Option<&TableRow>) -> Result<u64> {
    let before = &replaced.before;
    let mut sum = TABLE_ROW_BYTES;
    if current.is_none_or(|c| c.table_key != before.table_key) {
        sum = sum.saturating_add(before.table_key.len() as u64);
    }
    if let Some(pin) = before.state.pin() {
        let branch = pin.table_branch.as_deref().map_or(0, str::len) as u64;
        let base = current.and_then(|c| c.state.pin()).map(|pin| &pin.metadata);
        sum = sum
            .saturating_add(branch)
            .saturating_add(delta_measure(&pin.metadata, base)?);
    }
    Ok(sum)
}

/// `metadata_measure(before, base)`: the compact JSON of the difference, `manifest_size` left out on both sides and
/// charged 37 bytes whatever is stored.
pub fn delta_measure(before: &PinMetadata, base: Option<&PinMetadata>) -> Result<u64> {
    let length = match base {
        Some(base) => Delta::between(before, base).measured_bytes(),
        None => Value::Object(without_size(before)?).to_string().len() as u64,
    };
    Ok(length.saturating_add(MANIFEST_SIZE_MEASURE_BYTES))
}

fn without_size(metadata: &PinMetadata) -> Result<Map<String, Value>> {
    match serde_json::to_value(metadata) {
        Ok(Value::Object(mut map)) => {
            map.remove("manifest_size");
            Ok(map)
        }
        _ => Err(Error::internal("pin metadata does not encode as an object")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::model::measure::metadata_measure;
    use crate::model::{ContractHead, Pin, TableIdentity, TableState};

    fn metadata(file: &str, size: Option<u64>) -> PinMetadata {
        PinMetadata {
            manifest_path: format!("r/nodes/a/_versions/{file}"),
            manifest_size: size,
            naming_scheme: Some("V2".into()),
            ..PinMetadata::default()
        }
    }

    fn table(key: &str, metadata: PinMetadata, branch: Option<&str>) -> TableRow {
        let identity = TableIdentity::new(1, 2).unwrap();
        TableRow {
            identity,
            table_key: key.into(),
            table_path: crate::model::table::canonical_path(key, identity).unwrap(),
            state: TableState::Pinned(Pin {
                table_version: 1,
                table_branch: branch.map(str::to_string),
                row_count: 0,
                metadata,
                manifest_version: 1,
            }),
        }
    }

    fn commit(id: &str, parent: Option<&str>, contract: Option<&str>) -> Commit {
        Commit {
            graph_commit_id: id.into(),
            schema_contract: contract.map(|hash| ContractHead {
                schema_ir_hash: hash.into(),
                schema_identity_version: 2,
                schema_identity_domain: "dom".into(),
            }),
            schema_content_hash: contract.map(|hash| format!("c{hash}")),
            graph_branch: None,
            native_branch: None,
            graph_manifest_version: 1,
            generation: 0,
            parent_commit_id: parent.map(str::to_string),
            merged_parent_commit_id: None,
            actor_id: Some("me".into()),
            created_at: 0,
        }
    }

    #[test]
    fn the_measure_of_a_whole_pin_is_that_of_records() {
        for size in [None, Some(1), Some(u64::MAX)] {
            let m = metadata("1.manifest", size);
            assert_eq!(delta_measure(&m, None).unwrap(), metadata_measure(&m));
        }
    }

    #[test]
    fn the_size_costs_the_same_whatever_is_stored() {
        let before = metadata("1.manifest", Some(7));
        for size in [None, Some(7), Some(8)] {
            let now = metadata("22.manifest", size);
            let text = r#"{"manifest_file":"1.manifest"}"#;
            assert_eq!(
                delta_measure(&before, Some(&now)).unwrap(),
                text.len() as u64 + 37
            );
        }
        assert_eq!(delta_measure(&before, Some(&before)).unwrap(), 2 + 37);
    }

    #[test]
    fn commits_and_tables_cost_what_their_rows_store() {
        let state =
            |buffer: Vec<Commit>, replaced: Vec<Replaced>, tables: Vec<TableRow>| BranchState {
                version: 9,
                native: None,
                tables,
                head: commit("head", Some("b"), Some("x")),
                buffer,
                replaced,
                contract: commit("", None, Some("x")).schema_contract.unwrap(),
                contract_texts: None,
            };
        let of =
            |buffer, replaced, tables| buffered_bytes(&state(buffer, replaced, tables)).unwrap();
        // 128 + "head" + "b" + "me" + "x" + "dom" + "cx".
        let head = 128 + 4 + 1 + 2 + 1 + 3 + 2;
        assert_eq!(of(vec![], vec![], vec![]), head);
        // The oldest keeps its parent, the second elides it; equal contracts are elided.
        let older = commit("a", Some("root"), Some("y"));
        let newer = commit("b", Some("a"), Some("x"));
        assert_eq!(
            of(vec![older, newer], vec![], vec![]),
            head + (128 + 1 + 4 + 2 + 1 + 3 + 2) + (128 + 1 + 2)
        );
        let before = |key: &str| Replaced {
            before: table(key, metadata("1.manifest", None), Some("fork")),
            replaced_at: 3,
            registered: false,
        };
        let now = table("node:A", metadata("2.manifest", Some(3)), None);
        let delta = r#"{"manifest_file":"1.manifest"}"#.len() as u64 + 37;
        let whole = metadata_measure(&metadata("1.manifest", None));
        for (key, tables, cost) in [
            ("node:A", vec![now.clone()], 256 + 4 + delta),
            ("node:Old", vec![now.clone()], 256 + 8 + 4 + delta),
            ("node:A", vec![], 256 + 6 + 4 + whole),
            (
                "node:A",
                vec![TableRow {
                    state: TableState::Dropped {
                        dropped_at: 4,
                        sealed_version: 2,
                    },
                    ..now
                }],
                256 + 4 + whole,
            ),
        ] {
            assert_eq!(of(vec![], vec![before(key)], tables), head + cost, "{key}");
        }
        let registered = Replaced {
            before: TableRow {
                state: TableState::Registered,
                ..table("node:A", metadata("1", None), None)
            },
            replaced_at: 3,
            registered: true,
        };
        assert_eq!(of(vec![], vec![registered], vec![]), head + 256 + 6);
    }
}
