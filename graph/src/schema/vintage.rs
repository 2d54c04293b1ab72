//! The two spellings of the system columns (`docs/format/tables-and-schema.md` 2.1).

use serde::{Deserialize, Serialize};

/// How a graph spells its system columns. Decided by the accepted IR's feature set, never by the
/// storage stamp; all tables of a graph share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vintage {
    /// Columns `id`, `src`, `dst`; constraints name the endpoints bare.
    Legacy,
    /// Columns `__id`, `__src`, `__dst`; constraints name the endpoints `@src`, `@dst`.
    Current,
}

impl Vintage {
    /// The name of the physical column of `role`.
    pub fn column(self, role: SystemRole) -> &'static str {
        match (self, role) {
            (Self::Legacy, SystemRole::Id) => "id",
            (Self::Legacy, SystemRole::Src) => "src",
            (Self::Legacy, SystemRole::Dst) => "dst",
            (Self::Current, SystemRole::Id) => "__id",
            (Self::Current, SystemRole::Src) => "__src",
            (Self::Current, SystemRole::Dst) => "__dst",
        }
    }

    /// How a constraint's member list names `role`.
    pub fn member(self, role: SystemRole) -> &'static str {
        match self {
            Self::Legacy => role.name(),
            Self::Current => role.meta(),
        }
    }
}

impl std::fmt::Display for Vintage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Current => "current",
        })
    }
}

/// What a system column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemRole {
    /// The identity of the node or edge.
    Id,
    /// The id of the node an edge starts at.
    Src,
    /// The id of the node an edge ends at.
    Dst,
}

impl SystemRole {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Id, Self::Src, Self::Dst];

    /// `id`, `src` or `dst`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Src => "src",
            Self::Dst => "dst",
        }
    }

    /// `@id`, `@src` or `@dst`.
    pub fn meta(self) -> &'static str {
        match self {
            Self::Id => "@id",
            Self::Src => "@src",
            Self::Dst => "@dst",
        }
    }

    /// The role whose `@` spelling is `member`.
    pub fn from_meta(member: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.meta() == member)
    }

    /// The role whose bare name is `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}
