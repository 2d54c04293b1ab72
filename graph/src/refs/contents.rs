//! The JSON of a ref object and of its retirement record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Metadata entry that marks a retired ref.
pub const RETIRED_KEY: &str = "omnigraph.retired_manifest_branch";

/// Lance's branch identifier: pairs of parent version and uuid, oldest ancestor first; main's is
/// empty (`docs/format/upgrade-protocol.md` 5.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchIdentifier {
    /// `[parent version, 32 lower-case hex digits]` pairs.
    pub version_mapping: Vec<(u64, String)>,
}

impl BranchIdentifier {
    /// Main's identifier.
    pub fn main() -> Self {
        Self::default()
    }

    /// Lance's stand-in for a ref object without identifier.
    pub fn sentinel() -> Self {
        Self {
            version_mapping: vec![(0, "0".repeat(32))],
        }
    }

    /// Whether this is main's identifier.
    pub fn is_main(&self) -> bool {
        self.version_mapping.is_empty()
    }

    /// What Lance derives on read for a ref object that stores no identifier
    /// (`docs/format/lance-notes.md` 5).
    fn synthetic(native: &str, parent: Option<&str>, parent_version: u64, create_at: u64) -> Self {
        let text = format!(
            "branch_name={native}\nparent_branch={}\nparent_version={parent_version}\ncreate_at={create_at}",
            parent.unwrap_or("")
        );
        let fnv = |basis: u64| {
            text.bytes().fold(basis, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        };
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        let (high, low) = (fnv(BASIS), fnv(BASIS ^ 0x9e37_79b9_7f4a_7c15));
        Self {
            version_mapping: vec![(0, format!("{high:016x}{low:016x}"))],
        }
    }
}

/// A ref object (`BranchContents` of Lance 11), members in stored order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefContents {
    /// Ref it was forked from; `None` = main.
    pub parent_branch: Option<String>,
    /// Its identity.
    #[serde(default = "BranchIdentifier::sentinel")]
    pub identifier: BranchIdentifier,
    /// Version of the parent it was forked at.
    pub parent_version: u64,
    /// Unix seconds.
    pub create_at: u64,
    /// Bytes of the first manifest.
    pub manifest_size: u64,
    /// String entries, retirement among them.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// The value of [`RETIRED_KEY`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetiredRecord {
    /// Always 1.
    pub version: u32,
    /// The native ref it sits on.
    pub native_branch: String,
    /// That ref's identifier.
    pub identifier: BranchIdentifier,
}

impl RefContents {
    /// Decode a ref object. `object` names it in the error ([`Error::Internal`]).
    pub fn parse(bytes: &[u8], native: &str, object: &str) -> Result<Self> {
        let mut contents: Self = serde_json::from_slice(bytes)
            .map_err(|e| Error::internal(format!("{object} is not a valid ref object: {e}")))?;
        if contents.identifier == BranchIdentifier::sentinel() {
            contents.identifier = BranchIdentifier::synthetic(
                native,
                contents.parent_branch.as_deref(),
                contents.parent_version,
                contents.create_at,
            );
        }
        Ok(contents)
    }

    /// Whether the ref carries a valid retirement record. No key: live, `false`. A record that does
    /// not parse, has another version, names another ref, main, or another identifier is
    /// [`Error::Internal`]: such a ref is neither live nor retired.
    pub fn is_retired(&self, native: &str, object: &str) -> Result<bool> {
        let Some(value) = self.metadata.get(RETIRED_KEY) else {
            return Ok(false);
        };
        let refuse = |why: String| {
            Error::internal(format!(
                "{object}: the retirement record is not valid ({why}); the ref is neither live nor \
                 retired, restore the whole root from a backup"
            ))
        };
        let record: RetiredRecord =
            serde_json::from_str(value).map_err(|e| refuse(e.to_string()))?;
        if record.version != 1 {
            return Err(refuse(format!("version {}, expected 1", record.version)));
        }
        if record.native_branch != native || native == crate::model::names::MAIN {
            return Err(refuse(format!(
                "it names ref '{}', expected '{native}'",
                record.native_branch
            )));
        }
        if record.identifier != self.identifier {
            return Err(refuse("its identifier is not the ref's".into()));
        }
        if record.identifier.is_main() || record.identifier == BranchIdentifier::sentinel() {
            return Err(refuse("its identifier is main's or missing".into()));
        }
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn contents(metadata: &[(&str, &str)]) -> RefContents {
        RefContents {
            parent_branch: None,
            identifier: BranchIdentifier {
                version_mapping: vec![(4, "a".repeat(32))],
            },
            parent_version: 4,
            create_at: 1,
            manifest_size: 9,
            metadata: metadata
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
        }
    }

    #[test]
    fn retirement_is_exact_or_an_error() {
        let id = format!(r#"{{"version_mapping":[[4,"{}"]]}}"#, "a".repeat(32));
        let ok = format!(r#"{{"version":1,"native_branch":"f","identifier":{id}}}"#);
        assert!(!contents(&[("other", "x")]).is_retired("f", "o").unwrap());
        assert!(
            contents(&[(RETIRED_KEY, &ok)])
                .is_retired("f", "o")
                .unwrap()
        );
        for bad in [
            "",
            "{}",
            &ok.replace("\"version\":1", "\"version\":2"),
            &ok.replace("\"f\"", "\"g\""),
            &ok.replace("[4,", "[5,"),
            &ok.replace("{\"version\"", "{\"extra\":0,\"version\""),
            r#"{"version":1,"native_branch":"f","identifier":{"version_mapping":[]}}"#,
        ] {
            assert!(
                contents(&[(RETIRED_KEY, bad)])
                    .is_retired("f", "o")
                    .is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn stored_members_are_camel_case_in_order() {
        let text = serde_json::to_string(&contents(&[])).unwrap();
        assert_eq!(
            text,
            format!(
                r#"{{"parentBranch":null,"identifier":{{"version_mapping":[[4,"{}"]]}},"parentVersion":4,"createAt":1,"manifestSize":9,"metadata":{{}}}}"#,
                "a".repeat(32)
            )
        );
    }

    #[test]
    fn a_missing_identifier_is_derived_alike_each_time() {
        let bytes = br#"{"parentBranch":null,"parentVersion":3,"createAt":7,"manifestSize":1}"#;
        let a = RefContents::parse(bytes, "x", "o").unwrap();
        let b = RefContents::parse(bytes, "x", "o").unwrap();
        assert_eq!(a, b);
        assert_ne!(a.identifier, BranchIdentifier::sentinel());
        assert_ne!(
            a.identifier,
            RefContents::parse(bytes, "y", "o").unwrap().identifier
        );
    }

    proptest::proptest! {
        /// One byte of a ref object is another: an answer or an error, and a retired ref never turns live unless
        /// the name of the key itself is hit.
        #[test]
        fn damaged_ref_objects_are_answered(at in 0_usize..400, byte in proptest::prelude::any::<u8>()) {
            let identifier = contents(&[]).identifier;
            let record = RetiredRecord { version: 1, native_branch: "f".into(), identifier };
            let record = serde_json::to_string(&record).unwrap();
            let mut bytes = serde_json::to_vec(&contents(&[(RETIRED_KEY, &record)])).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(found) = RefContents::parse(&bytes, "f", "o")
                && let Ok(retired) = found.is_retired("f", "o")
            {
                let keyed = found.metadata.contains_key(RETIRED_KEY);
                proptest::prop_assert_eq!(retired, keyed);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = RefContents::parse(&bytes, "f", "o");
        }
    }
}
