//! Branch names: logical, native and their split (`docs/format/manifest-v14.md` 11.1).

use crate::ulids;

/// The logical name of the ref a 0.11.x schema apply holds while it runs.
pub const SCHEMA_APPLY_LOCK: &str = "__schema_apply_lock__";
/// The public name of main.
pub const MAIN: &str = "main";

/// The logical name of a native ref: what precedes the last `.` when a canonical ULID follows and
/// the part before is non-empty and does not end with `/`; otherwise the whole name.
pub fn logical_name(native: &str) -> &str {
    match native.rsplit_once('.') {
        Some((before, after))
            if !before.is_empty() && !before.ends_with('/') && ulids::is_canonical(after) =>
        {
            before
        }
        _ => native,
    }
}

/// Why a logical name is not a valid branch name, or `None` when it is.
pub fn logical_name_error(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the name is empty".into());
    }
    if name == MAIN {
        return Some("'main' is reserved".into());
    }
    for segment in name.split('/') {
        if segment.is_empty() {
            return Some("a path segment is empty".into());
        }
        if logical_name(segment) != segment {
            return Some(format!("segment '{segment}' ends in a ULID suffix"));
        }
        if segment.contains("..") || segment.contains('\\') {
            return Some(format!("segment '{segment}' holds '..' or a backslash"));
        }
        if let Some(c) = segment
            .chars()
            .find(|c| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_')))
        {
            return Some(format!("character '{c}' is not allowed"));
        }
    }
    if name.ends_with(".lock") {
        return Some("the name ends in '.lock'".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    #[test]
    fn splits_only_canonical_suffixes() {
        assert_eq!(logical_name(&format!("team/a.{ULID}")), "team/a");
        for whole in [
            "main".to_string(),
            "release.1.2".into(),
            format!(".{ULID}"),
            format!("team/.{ULID}"),
            ULID.into(),
            format!("a.{}", ULID.to_lowercase()),
            "a.ZZZZZZZZZZZZZZZZZZZZZZZZZZ".into(),
        ] {
            assert_eq!(logical_name(&whole), whole);
        }
    }

    #[test]
    fn refuses_reserved_and_suffixed_segments() {
        assert_eq!(logical_name_error("team/idle"), None);
        assert_eq!(logical_name_error("größe"), None);
        for bad in [
            "",
            "main",
            "a//b",
            "a b",
            "x.lock",
            "a/..",
            &format!("a.{ULID}/b"),
        ] {
            assert!(logical_name_error(bad).is_some(), "{bad}");
        }
    }
}
