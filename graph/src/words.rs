//! Words that reports of every command share.

/// `3 live refs, 1 tags`: counts with their labels, in the given order.
pub fn counted(items: &[(u64, &str)]) -> String {
    items
        .iter()
        .map(|(n, label)| format!("{n} {label}"))
        .collect::<Vec<_>>()
        .join(", ")
}
