//! What a detached commit says about the branch it was staged against (`docs/format/tables-and-schema.md` 3.5).

use std::collections::HashMap;

use graph::refs::BranchIdentifier;
use graph::{Error, Result};

const INCARNATION: &str = "omnigraph.staged_against_branch_incarnation";
const HEAD: &str = "omnigraph.staged_against_graph_head";

/// The two transaction properties of a staged version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    incarnation: String,
    head: String,
}

impl Witness {
    /// The witness of a write against the branch with this identifier (empty for main) and exact head.
    pub fn new(identifier: &BranchIdentifier, head: Option<&str>) -> Result<Self> {
        Ok(Self {
            incarnation: serde_json::to_string(identifier).map_err(|e| {
                Error::internal(format!("a branch identifier cannot be encoded: {e}"))
            })?,
            head: head.unwrap_or_default().to_string(),
        })
    }

    /// The transaction properties.
    pub fn properties(&self) -> HashMap<String, String> {
        [(INCARNATION, &self.incarnation), (HEAD, &self.head)]
            .map(|(key, value)| (key.to_string(), value.clone()))
            .into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_is_compact_json() {
        let main = Witness::new(&BranchIdentifier::main(), None).unwrap();
        assert_eq!(main.properties()[INCARNATION], r#"{"version_mapping":[]}"#);
        assert_eq!(main.properties()[HEAD], "");
        let identifier = BranchIdentifier {
            version_mapping: vec![(3, "ab".repeat(16))],
        };
        let named = Witness::new(&identifier, Some("x")).unwrap().properties();
        let text = format!(r#"{{"version_mapping":[[3,"{}"]]}}"#, "ab".repeat(16));
        assert_eq!(named[INCARNATION], text);
        assert_eq!(named[HEAD], "x");
    }
}
