//! Whether a new branch may have a name, given the refs there are. Pure.

use graph::model::names::{SCHEMA_APPLY_LOCK, logical_name_error};
use graph::refs::NativeRef;

use crate::error::{Result, WriteError};

/// Whether `a` is a path ancestor of `b`.
fn above(a: &str, b: &str) -> bool {
    b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'))
}

/// Refuse a logical name that is malformed, taken, or a path ancestor or descendant of a live branch: the objects of
/// one branch would lie inside the tree of the other.
pub(super) fn check(logical: &str, live: &[NativeRef]) -> Result<()> {
    let refuse = |why: String| Err(WriteError::invalid(format!("branch '{logical}' {why}")));
    if let Some(why) = logical_name_error(logical) {
        return refuse(format!("has no valid name: {why}"));
    }
    // Lance spells other letters differently in the ref object and in the tree, and its own check of dots comes only
    // after the tree is written.
    if let Some(c) = logical.chars().find(|c| !c.is_ascii()) {
        return refuse(format!(
            "has no valid name: '{c}' is not an ASCII letter, digit, '.', '-', '_' or '/'"
        ));
    }
    if logical
        .split('/')
        .any(|s| s.starts_with('.') || s.ends_with('.'))
    {
        return refuse("has no valid name: a path segment starts or ends with '.'".into());
    }
    if logical == SCHEMA_APPLY_LOCK {
        return refuse("has a reserved name".into());
    }
    for other in live.iter().map(NativeRef::logical) {
        if other == logical {
            return refuse("exists already".into());
        }
        if above(other, logical) || above(logical, other) {
            return refuse(format!(
                "cannot stand beside branch '{other}': one name is a path prefix of the other. Choose another name, \
                 or delete that branch first"
            ));
        }
    }
    Ok(())
}

/// The native names of which the tree of `native` would be a part, `native` itself included.
pub(super) fn enclosing(native: &str) -> Vec<&str> {
    let cuts = native.match_indices('/').map(|(at, _)| &native[..at]);
    cuts.chain(std::iter::once(native)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use graph::refs::{BranchIdentifier, RefContents};

    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn native(name: &str) -> NativeRef {
        NativeRef {
            native: name.into(),
            contents: RefContents {
                parent_branch: None,
                identifier: BranchIdentifier::main(),
                parent_version: 1,
                create_at: 0,
                manifest_size: 0,
                metadata: Default::default(),
            },
        }
    }

    #[test]
    fn prefixes_and_taken_names_are_refused() {
        let live = [native(&format!("team/a.{ULID}")), native("old")];
        for good in ["team/b", "teams", "x", "old2", "team/a2"] {
            assert!(check(good, &live).is_ok(), "{good}");
        }
        for bad in [
            "team/a",
            "team",
            "team/a/b",
            "old",
            "old/x",
            "main",
            "a b",
            "größe",
            ".",
            "a.",
            "a/.b",
            "./a",
            SCHEMA_APPLY_LOCK,
        ] {
            assert!(check(bad, &live).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tree_lies_inside_those_of_its_path() {
        assert_eq!(enclosing("a/b/c.X"), ["a", "a/b", "a/b/c.X"]);
        assert_eq!(enclosing("c.X"), ["c.X"]);
    }
}
