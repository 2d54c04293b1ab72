//! The JSON of the `metadata` column on commit, head and contract rows
//! (`docs/format/legacy-manifest.md` 3.1). Pins are decoded by [`graph::model::PinMetadata`].

use graph::model::ContractHead;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Metadata of a `graph_commit` row.
#[derive(Debug, Deserialize)]
pub(crate) struct CommitMetadata {
    #[serde(default)]
    pub parent_commit_id: Option<String>,
    #[serde(default)]
    pub merged_parent_commit_id: Option<String>,
    #[serde(default)]
    pub actor_id: Option<String>,
    /// Microseconds since the Unix epoch.
    pub created_at: i64,
}

/// Metadata of a `graph_head` row. Its `parent_commit_id` is never used.
#[derive(Debug, Deserialize)]
pub(crate) struct HeadMetadata {
    pub head_commit_id: String,
}

/// Parse commit metadata.
pub(crate) fn commit(text: Option<&str>) -> Result<CommitMetadata, String> {
    parse(text, "commit")
}

/// Parse head metadata.
pub(crate) fn head(text: Option<&str>) -> Result<HeadMetadata, String> {
    parse(text, "head")
}

/// Parse contract metadata.
pub(crate) fn contract(text: Option<&str>) -> Result<ContractHead, String> {
    parse(text, "contract")
}

fn parse<T: DeserializeOwned>(text: Option<&str>, what: &str) -> Result<T, String> {
    let text = text.ok_or("the column metadata is null, but this row type requires it")?;
    serde_json::from_str(text).map_err(|e| format!("{what} metadata is not valid JSON: {e}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn commits() {
        let whole = commit(Some(
            r#"{"parent_commit_id":"P","merged_parent_commit_id":"M","actor_id":"alice","created_at":-5}"#,
        ))
        .unwrap();
        assert_eq!(whole.parent_commit_id.as_deref(), Some("P"));
        assert_eq!(whole.merged_parent_commit_id.as_deref(), Some("M"));
        assert_eq!(whole.actor_id.as_deref(), Some("alice"));
        assert_eq!(whole.created_at, -5);
        let bare = commit(Some(r#"{"created_at":1}"#)).unwrap();
        assert!(bare.parent_commit_id.is_none() && bare.actor_id.is_none());
        for bad in [
            None,
            Some(""),
            Some("[]"),
            Some("{}"),
            Some(r#"{"created_at":1.5}"#),
            Some(r#"{"created_at":"1"}"#),
            Some(r#"{"created_at":1,"created_at":2}"#),
            Some(r#"{"created_at":9223372036854775808}"#),
            Some(r#"{"created_at":1,"parent_commit_id":7}"#),
        ] {
            assert!(commit(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn heads_and_contracts() {
        let parsed = head(Some(r#"{"head_commit_id":"C","parent_commit_id":"B"}"#)).unwrap();
        assert_eq!(parsed.head_commit_id, "C");
        assert!(head(Some(r#"{"parent_commit_id":"B"}"#)).is_err());
        let text = r#"{"schema_ir_hash":"sha256:0","schema_identity_version":2,"schema_identity_domain":"D"}"#;
        assert_eq!(contract(Some(text)).unwrap().to_json(), text);
        assert!(
            contract(Some(
                r#"{"schema_ir_hash":"x","schema_identity_version":2}"#
            ))
            .is_err()
        );
        assert!(contract(None).is_err());
    }
}
