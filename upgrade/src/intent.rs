//! The upgrade intent, which main carries from fence to activation
//! (`docs/format/upgrade-protocol.md` 5.2).

use std::collections::HashSet;

use graph::digest::is_sha256_hex;
use graph::history::legacy::LegacyPlan;
use graph::model::ContractHead;
use graph::refs::BranchIdentifier;
use graph::stamp::{CURRENT, UPGRADE_SOURCES};
use graph::ulids;
use serde::{Deserialize, Serialize};

/// The protocol this build speaks.
pub const UPGRADE_PROTOCOL: u32 = 6;
/// Most bytes of an intent or a receipt.
pub const MAX_INTENT_BYTES: usize = 1_048_576;
/// Most live refs, main included.
pub const MAX_BRANCHES: usize = 1024;

/// One ref to convert, pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceBranch {
    /// Native name; null for main.
    pub native: Option<String>,
    /// Lance identity of the ref.
    pub identity: BranchIdentifier,
    /// Pinned source version.
    pub version: u64,
    /// Fork version; 0 for main.
    #[serde(default)]
    pub parent_version: u64,
}

impl SourceBranch {
    /// `main` or the native name.
    pub fn name(&self) -> &str {
        self.native.as_deref().unwrap_or("main")
    }
}

/// A schema-apply lock to retire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceLock {
    /// Native name.
    pub native: String,
    /// Lance identity of the ref.
    pub identity: BranchIdentifier,
}

/// The contract the conversion binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpgradeSchemaContract {
    /// The contract's identity; its own unknown members are ignored.
    pub identity: ContractHead,
    /// SHA-256 of the source text.
    pub source_sha256: String,
    /// SHA-256 of the IR text.
    pub ir_sha256: String,
    /// SHA-256 of the archive object, which is its name.
    pub content_sha256: String,
}

/// The value of the pending key; members in stored order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpgradeIntent {
    /// [`UPGRADE_PROTOCOL`].
    pub protocol: u32,
    /// ULID minted by the run that fences.
    pub attempt: String,
    /// 8, 9 or 13.
    pub source_format: u32,
    /// 14.
    pub target_format: u32,
    /// Identity domain of the contract.
    pub graph_identity: String,
    /// Named live refs ascending, main last.
    pub branches: Vec<SourceBranch>,
    /// Locks to retire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retire: Vec<SourceLock>,
    /// Required by validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_contract: Option<UpgradeSchemaContract>,
    /// The legacy objects.
    pub legacy: LegacyPlan,
}

impl UpgradeIntent {
    /// Accept a stored intent, or say why its ownership is not established. Any reason means "not
    /// ours", never "no intent".
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_INTENT_BYTES {
            return Err(format!(
                "it has {} bytes, above the limit of {MAX_INTENT_BYTES}",
                text.len()
            ));
        }
        let intent: Self =
            serde_json::from_str(text).map_err(|e| format!("it is not an intent: {e}"))?;
        let layout = intent.legacy.layout.version;
        if layout != graph::history::legacy::LEGACY_LAYOUT_VERSION {
            return Err(format!(
                "it plans legacy objects of layout version {layout}, this build writes version {}",
                graph::history::legacy::LEGACY_LAYOUT_VERSION
            ));
        }
        intent.validate()?;
        Ok(intent)
    }

    /// The stored text.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|e| e.to_string())
    }

    /// The contract, which validation requires.
    pub fn contract(&self) -> Option<&UpgradeSchemaContract> {
        self.schema_contract.as_ref()
    }

    fn validate(&self) -> Result<(), String> {
        let want = |ok: bool, why: &str| if ok { Ok(()) } else { Err(why.to_string()) };
        if self.protocol != UPGRADE_PROTOCOL {
            return Err(format!(
                "it speaks protocol {}, this build speaks {UPGRADE_PROTOCOL}",
                self.protocol
            ));
        }
        if !UPGRADE_SOURCES.contains(&self.source_format) || self.target_format != CURRENT {
            return Err(format!(
                "it converts stamp {} to {}, expected 8, 9 or 13 to {CURRENT}",
                self.source_format, self.target_format
            ));
        }
        let contract = self
            .contract()
            .ok_or_else(|| "it names no schema contract".to_string())?;
        want(
            contract.identity.schema_identity_domain == self.graph_identity,
            "its contract belongs to another graph identity",
        )?;
        want(
            contract.identity.schema_identity_version != 0,
            "its contract has identity version 0",
        )?;
        let hex = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        want(
            contract
                .identity
                .schema_ir_hash
                .strip_prefix("sha256:")
                .is_some_and(hex),
            "its schema_ir_hash is not sha256: and 64 hex digits",
        )?;
        want(
            hex(&contract.source_sha256)
                && hex(&contract.ir_sha256)
                && is_sha256_hex(&contract.content_sha256.to_ascii_lowercase()),
            "a contract digest is not 64 hex digits",
        )?;
        self.validate_refs()?;
        want(
            hex(&self.legacy.directory_sha256),
            "directory_sha256 is not 64 hex digits",
        )?;
        want(
            ulid::Ulid::from_string(&self.attempt).is_ok(),
            "its attempt is not a ULID",
        )?;
        want(!self.graph_identity.is_empty(), "graph_identity is empty")?;
        self.legacy.layout.check().map_err(|e| e.to_string())
    }

    fn validate_refs(&self) -> Result<(), String> {
        let count = self.branches.len();
        if count == 0 || count > MAX_BRANCHES {
            return Err(format!(
                "it pins {count} refs, expected 1 to {MAX_BRANCHES}"
            ));
        }
        if self.branches.last().is_none_or(|b| b.native.is_some()) {
            return Err("main is not its last ref".into());
        }
        let mut names = HashSet::new();
        for branch in &self.branches {
            if branch.version == 0
                || branch.native.is_none() != (branch.parent_version == 0)
                || branch.parent_version > branch.version
            {
                return Err(format!(
                    "the pin of ref '{}' is impossible: version {}, fork version {}",
                    branch.name(),
                    branch.version,
                    branch.parent_version
                ));
            }
            if !names.insert(branch.native.as_deref()) {
                return Err(format!("it pins ref '{}' twice", branch.name()));
            }
        }
        for lock in &self.retire {
            if lock.native.is_empty() || !names.insert(Some(&lock.native)) {
                return Err(format!("it retires ref '{}' twice", lock.native));
            }
        }
        Ok(())
    }

    /// The attempt as a ULID, in the canonical spelling validation leaves possible.
    pub fn attempt_ulid(&self) -> Option<ulid::Ulid> {
        ulids::parse_canonical(&self.attempt)
            .or_else(|| ulid::Ulid::from_string(&self.attempt).ok())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(crate) mod tests {
    use graph::history::legacy::LegacyLayout;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn intent() -> UpgradeIntent {
        let hex = "ab".repeat(32);
        UpgradeIntent {
            protocol: 6,
            attempt: "01K6X9V0000000000000000000".into(),
            source_format: 9,
            target_format: 14,
            graph_identity: "01K0000000000000000000000A".into(),
            branches: vec![
                SourceBranch {
                    native: Some("f".into()),
                    identity: BranchIdentifier {
                        version_mapping: vec![(4, "cd".repeat(16))],
                    },
                    version: 6,
                    parent_version: 4,
                },
                SourceBranch {
                    native: None,
                    identity: BranchIdentifier::main(),
                    version: 9,
                    parent_version: 0,
                },
            ],
            retire: Vec::new(),
            schema_contract: Some(UpgradeSchemaContract {
                identity: ContractHead {
                    schema_ir_hash: format!("sha256:{hex}"),
                    schema_identity_version: 2,
                    schema_identity_domain: "01K0000000000000000000000A".into(),
                },
                source_sha256: hex.clone(),
                ir_sha256: hex.clone(),
                content_sha256: hex.clone(),
            }),
            legacy: LegacyPlan {
                layout: LegacyLayout::CURRENT,
                commits: 12,
                data_files: 4,
                id_shards: 1,
                writer_shards: 1,
                directory_sha256: hex,
            },
        }
    }

    #[test]
    fn the_stored_text_is_the_protocols_example() {
        let text = intent().to_json().unwrap();
        let hex = "ab".repeat(32);
        assert_eq!(
            text,
            format!(
                r#"{{"protocol":6,"attempt":"01K6X9V0000000000000000000","source_format":9,"target_format":14,"graph_identity":"01K0000000000000000000000A","branches":[{{"native":"f","identity":{{"version_mapping":[[4,"{}"]]}},"version":6,"parent_version":4}},{{"native":null,"identity":{{"version_mapping":[]}},"version":9,"parent_version":0}}],"schema_contract":{{"identity":{{"schema_ir_hash":"sha256:{hex}","schema_identity_version":2,"schema_identity_domain":"01K0000000000000000000000A"}},"source_sha256":"{hex}","ir_sha256":"{hex}","content_sha256":"{hex}"}},"legacy":{{"layout":{{"version":1,"release_bytes":262144,"file_record_bytes":2097152,"block_slots":16384,"shard_entries":21844}},"commits":12,"data_files":4,"id_shards":1,"writer_shards":1,"directory_sha256":"{hex}"}}}}"#,
                "cd".repeat(16)
            )
        );
        assert_eq!(UpgradeIntent::parse(&text).unwrap(), intent());
    }

    #[test]
    fn every_impossible_intent_is_refused_with_its_cause() {
        type Change = fn(&mut Value);
        let cases: [(&str, Change); 19] = [
            ("protocol 5", |v| v["protocol"] = json!(5)),
            ("layout version 2", |v| {
                v["legacy"]["layout"]["version"] = json!(2)
            }),
            ("stamp 10", |v| v["source_format"] = json!(10)),
            ("to 13", |v| v["target_format"] = json!(13)),
            ("missing field", |v| {
                v.as_object_mut().unwrap().remove("attempt");
            }),
            ("unknown field", |v| v["extra"] = json!(1)),
            ("unknown field", |v| v["legacy"]["extra"] = json!(1)),
            ("names no schema contract", |v| {
                v.as_object_mut().unwrap().remove("schema_contract");
            }),
            ("another graph identity", |v| {
                v["graph_identity"] = json!("x")
            }),
            ("identity version 0", |v| {
                v["schema_contract"]["identity"]["schema_identity_version"] = json!(0);
            }),
            ("sha256:", |v| {
                v["schema_contract"]["identity"]["schema_ir_hash"] = json!("abc");
            }),
            ("64 hex digits", |v| {
                v["schema_contract"]["ir_sha256"] = json!("zz")
            }),
            ("pins 0 refs", |v| v["branches"] = json!([])),
            ("main is not its last", |v| {
                v["branches"].as_array_mut().unwrap().reverse();
            }),
            ("impossible", |v| v["branches"][0]["version"] = json!(3)),
            ("impossible", |v| {
                v["branches"][1]["parent_version"] = json!(1)
            }),
            ("retires ref 'f' twice", |v| {
                v["retire"] = json!([{"native":"f","identity":{"version_mapping":[]}}]);
            }),
            ("directory_sha256", |v| {
                v["legacy"]["directory_sha256"] = json!("")
            }),
            ("not a ULID", |v| v["attempt"] = json!("x")),
        ];
        for (words, change) in cases {
            let mut value = serde_json::to_value(intent()).unwrap();
            change(&mut value);
            let why = UpgradeIntent::parse(&value.to_string()).expect_err(words);
            assert!(why.contains(words), "{why} does not say {words}");
        }
        assert!(
            UpgradeIntent::parse("{}")
                .unwrap_err()
                .contains("missing field")
        );
        let long = " ".repeat(MAX_INTENT_BYTES + 1);
        assert!(UpgradeIntent::parse(&long).unwrap_err().contains("limit"));
    }

    #[test]
    fn unknown_members_of_identity_are_ignored() {
        let mut value = serde_json::to_value(intent()).unwrap();
        value["schema_contract"]["identity"]["extra"] = json!(1);
        value["branches"][0]["identity"]["extra"] = json!(1);
        value["branches"][1]
            .as_object_mut()
            .unwrap()
            .remove("parent_version");
        assert_eq!(UpgradeIntent::parse(&value.to_string()).unwrap(), intent());
    }

    proptest::proptest! {
        /// A changed byte, an insertion or a cut: an owned intent of the same meaning, or a refusal.
        #[test]
        fn damaged_intents_are_refused_or_whole(
            at in 0_usize..2000,
            byte in proptest::prelude::any::<u8>(),
            kind in 0_u8..3,
        ) {
            let mut bytes = serde_json::to_vec(&intent()).unwrap();
            let at = at % bytes.len();
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
            if let Ok(text) = String::from_utf8(bytes)
                && let Ok(found) = UpgradeIntent::parse(&text)
            {
                proptest::prop_assert!(kind != 2);
                proptest::prop_assert_eq!(found.protocol, 6);
                proptest::prop_assert_eq!(found.target_format, 14);
                proptest::prop_assert!(found.attempt_ulid().is_some());
            }
        }
    }
}
