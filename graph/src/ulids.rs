//! Canonical ULIDs (`docs/format/history.md`, conventions).

use ulid::Ulid;

/// Parse a canonical ULID: 26 upper-case Crockford characters that re-encode to themselves. `None`
/// for lower case, `I`/`L`/`O`/`U`, overflow and every other length.
pub fn parse_canonical(text: &str) -> Option<Ulid> {
    if text.len() != 26 {
        return None;
    }
    let parsed = Ulid::from_string(text).ok()?;
    (parsed.to_string() == text).then_some(parsed)
}

/// True when [`parse_canonical`] accepts `text`.
pub fn is_canonical(text: &str) -> bool {
    parse_canonical(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_text_parses() {
        for good in ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"] {
            assert!(is_canonical(good), "{good}");
        }
        for bad in [
            "",
            "01arz3ndektsv4rrffq69g5fav",
            "01ARZ3NDEKTSV4RRFFQ69G5FA",
            "01ARZ3NDEKTSV4RRFFQ69G5FAVV",
            "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "01ARZ3NDEKTSV4RRFFQ69G5FAI",
            "01ARZ3NDEKTSV4RRFFQ69G5FAU",
        ] {
            assert!(!is_canonical(bad), "{bad}");
        }
    }
}
