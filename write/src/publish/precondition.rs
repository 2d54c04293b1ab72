//! What must still hold when a publish reads the branch again (`docs/format/manifest-v14.md` 9 step 2). Pure.

use graph::manifest::BranchState;
use graph::refs::BranchIdentifier;

use crate::error::{Result, WriteError};

/// The condition of a publish; one that fails is never retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// None.
    Any,
    /// The branch is the same incarnation with the same exact head.
    ExactGraphHead(Authority),
    /// [`Precondition::ExactGraphHead`], and the version is the same too.
    ExactGraphVersion(Authority, u64),
}

/// What a write transaction captured of its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Lance's identifier of its ref; empty for main.
    pub identifier: BranchIdentifier,
    /// Id of the exact head; `None` for a fork that has not published.
    pub head: Option<String>,
}

impl Precondition {
    /// Check the condition against the branch as it was just read.
    pub fn check(&self, identifier: &BranchIdentifier, state: &BranchState) -> Result<()> {
        let (authority, version) = match self {
            Self::Any => return Ok(()),
            Self::ExactGraphHead(authority) => (authority, None),
            Self::ExactGraphVersion(authority, version) => (authority, Some(*version)),
        };
        let branch = authority
            .branch
            .as_deref()
            .unwrap_or(graph::model::names::MAIN);
        if authority.identifier != *identifier {
            let text = |i: &BranchIdentifier| serde_json::to_string(i).unwrap_or_default();
            return Err(WriteError::changed(
                format!("branch_identifier:{branch}"),
                text(&authority.identifier),
                text(identifier),
            ));
        }
        let head = state.exact_head().map(|c| c.graph_commit_id.as_str());
        if authority.head.as_deref() != head {
            return Err(WriteError::changed(
                format!("graph_head:{branch}"),
                authority.head.as_deref().unwrap_or("none"),
                head.unwrap_or("none"),
            ));
        }
        match version {
            Some(expected) if expected != state.version => Err(WriteError::changed(
                "prepared_schema_manifest_version",
                expected,
                state.version,
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::testing::{chain, state};

    #[test]
    fn each_member_is_named() {
        let held = state(chain(&["a", "b"]));
        let main = BranchIdentifier::main();
        let authority = Authority {
            branch: None,
            identifier: main.clone(),
            head: Some("b".into()),
        };
        let other = BranchIdentifier {
            version_mapping: vec![(1, "a".repeat(32))],
        };
        let member = |precondition: Precondition, identifier: &BranchIdentifier| match precondition
            .check(identifier, &held)
        {
            Ok(()) => "ok".to_string(),
            Err(WriteError::ReadSetChanged { member, .. }) => member,
            Err(e) => panic!("{e}"),
        };
        assert_eq!(member(Precondition::Any, &other), "ok");
        let exact = Precondition::ExactGraphHead(authority.clone());
        assert_eq!(member(exact.clone(), &main), "ok");
        assert_eq!(member(exact, &other), "branch_identifier:main");
        let moved = Authority {
            head: None,
            ..authority.clone()
        };
        assert_eq!(
            member(Precondition::ExactGraphHead(moved), &main),
            "graph_head:main"
        );
        let at = |version| Precondition::ExactGraphVersion(authority.clone(), version);
        assert_eq!(member(at(2), &main), "ok");
        assert_eq!(member(at(3), &main), "prepared_schema_manifest_version");
    }

    #[test]
    fn a_fork_that_has_not_published_has_no_exact_head() {
        let mut fork = state(chain(&["a"]));
        fork.native = Some("b".into());
        let identifier = BranchIdentifier {
            version_mapping: vec![(1, "a".repeat(32))],
        };
        let authority = |head: Option<&str>| Authority {
            branch: Some("b".into()),
            identifier: identifier.clone(),
            head: head.map(str::to_string),
        };
        let check = |head| Precondition::ExactGraphHead(authority(head)).check(&identifier, &fork);
        check(None).unwrap();
        assert!(check(Some("a")).is_err());
    }
}
