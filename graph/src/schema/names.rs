//! Property names that a schema may not use (`docs/format/tables-and-schema.md` 4.6).

use super::vintage::Vintage;

/// What declares a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerKind {
    /// An interface.
    Interface,
    /// A node type.
    Node,
    /// An edge type.
    Edge,
}

impl std::fmt::Display for OwnerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interface => "interface",
            Self::Node => "node",
            Self::Edge => "edge",
        })
    }
}

/// Lance's virtual columns, as an accepted schema of either vintage may not name them.
const LANCE_COLUMNS: [&str; 5] = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
];

/// Why `name` may not be a property of `kind` in a graph of this vintage, or `None` when it may.
pub fn reserved(name: &str, kind: OwnerKind, vintage: Vintage) -> Option<&'static str> {
    match vintage {
        Vintage::Current if name.starts_with('_') => {
            Some("names that start with '_' are reserved for system columns")
        }
        Vintage::Current => None,
        Vintage::Legacy if LANCE_COLUMNS.contains(&name) => {
            Some("the name is a virtual column of the storage engine")
        }
        Vintage::Legacy if name == "id" || (kind == OwnerKind::Edge && is_endpoint(name)) => {
            Some("the name is a system column of this graph")
        }
        Vintage::Legacy if name == "__id" || (kind == OwnerKind::Edge && is_new_endpoint(name)) => {
            Some("the name is what a system column is upgraded to")
        }
        Vintage::Legacy => None,
    }
}

/// As [`reserved`], before the vintage is known: only what neither vintage admits.
pub fn reserved_in_both(name: &str, kind: OwnerKind) -> Option<&'static str> {
    reserved(name, kind, Vintage::Current).and_then(|_| reserved(name, kind, Vintage::Legacy))
}

/// Why a newly admitted schema may not use `name`, over and above [`reserved`].
pub fn reserved_at_admission(name: &str, kind: OwnerKind) -> Option<&'static str> {
    match name {
        "_distance" | "_score" => Some("the name is a column of search results"),
        "from" | "to" if kind == OwnerKind::Edge => {
            Some("the name is an endpoint in import and export records")
        }
        _ => None,
    }
}

fn is_endpoint(name: &str) -> bool {
    matches!(name, "src" | "dst")
}

fn is_new_endpoint(name: &str) -> bool {
    matches!(name, "__src" | "__dst")
}
