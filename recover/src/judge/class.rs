//! The generic classes (`docs/format/recovery-sidecars.md` 6). Pure.

use serde::Serialize;

use crate::sidecar::{TablePin, WriterKind};

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Class {
    /// The newest version is below the pin.
    InvariantViolation,
    /// The newest version is the pin.
    NoMovement,
    /// The write is complete in this table.
    RolledPastExpected,
    /// One version above, and not the write's own.
    UnexpectedAtP1,
    /// Several versions above, or another one than confirmed.
    UnexpectedMultistep,
    /// The newest version is not the confirmed transaction.
    UnexpectedEffectIdentity,
    /// The write was not confirmed.
    IncompletePhaseB,
}

/// How strictly a kind is classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Exactly one version.
    Strict,
    /// Any number of versions.
    Loose,
    /// The confirmed version.
    Confirmed,
    /// The confirmed version and transaction.
    Exact,
}

impl Mode {
    /// The mode of a kind at a schema version.
    pub fn of(kind: WriterKind, version: u32) -> Self {
        match kind {
            WriterKind::Mutation | WriterKind::Load if version >= 3 => Self::Exact,
            WriterKind::Mutation | WriterKind::Load => Self::Strict,
            WriterKind::BranchMerge if version >= 2 => Self::Confirmed,
            WriterKind::SchemaApply if version >= 7 => Self::Exact,
            WriterKind::EnsureIndices if version >= 8 => Self::Exact,
            _ => Self::Loose,
        }
    }
}

/// What all tables together call for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// A pin above its table: nothing can be done.
    Abort,
    /// Take back.
    RollBack,
    /// Publish.
    RollForward,
}

/// Classify one table: the catalog shows `pinned`, the newest version is `head`; `confirmed` is the phase,
/// `at_head` whether the newest version is the confirmed transaction.
pub fn classify(
    mode: Mode,
    pinned: u64,
    head: u64,
    pin: &TablePin,
    confirmed: bool,
    at_head: bool,
) -> Class {
    if head < pinned {
        return Class::InvariantViolation;
    }
    if head == pinned {
        return Class::NoMovement;
    }
    let expected = pin.expected_version == pinned;
    let unexpected = match head == pinned + 1 {
        true => Class::UnexpectedAtP1,
        false => Class::UnexpectedMultistep,
    };
    match mode {
        Mode::Strict if head == pinned + 1 && expected && pin.post_commit_pin == head => {
            Class::RolledPastExpected
        }
        Mode::Loose if expected => Class::RolledPastExpected,
        Mode::Strict | Mode::Loose => unexpected,
        Mode::Confirmed => match pin.confirmed_version {
            None => Class::IncompletePhaseB,
            Some(version) if version == head && expected => Class::RolledPastExpected,
            Some(_) => Class::UnexpectedMultistep,
        },
        Mode::Exact if !confirmed || pin.confirmed_version.is_none() => Class::IncompletePhaseB,
        Mode::Exact if !expected => Class::UnexpectedAtP1,
        Mode::Exact if pin.confirmed_version != Some(head) => Class::UnexpectedMultistep,
        Mode::Exact if !at_head => Class::UnexpectedEffectIdentity,
        Mode::Exact => Class::RolledPastExpected,
    }
}

/// What the classes of all tables call for.
pub fn decide(classes: impl IntoIterator<Item = Class> + Clone) -> Decided {
    let any = |wanted: fn(Class) -> bool| classes.clone().into_iter().any(wanted);
    if any(|c| c == Class::InvariantViolation) {
        Decided::Abort
    } else if any(|c| c != Class::RolledPastExpected) {
        Decided::RollBack
    } else {
        Decided::RollForward
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use graph::model::TableIdentity;

    fn pin(expected: u64, post: u64, confirmed: Option<u64>) -> TablePin {
        TablePin {
            identity: TableIdentity::new(1, 1).unwrap(),
            table_key: "node:A".into(),
            table_path: String::new(),
            expected_version: expected,
            post_commit_pin: post,
            confirmed_version: confirmed,
            table_branch: None,
            table_fork_owner: None,
        }
    }

    #[test]
    fn every_row_of_the_table() {
        use Class::*;
        // (mode, pinned, head, expected, post, confirmed version, confirmed phase, transaction at head)
        for (mode, m, h, e, p, c, phase, at_head, want) in [
            (
                Mode::Loose,
                5,
                4,
                5,
                6,
                None,
                false,
                false,
                InvariantViolation,
            ),
            (Mode::Exact, 5, 5, 3, 4, Some(4), true, false, NoMovement),
            (
                Mode::Strict,
                5,
                6,
                5,
                6,
                None,
                false,
                false,
                RolledPastExpected,
            ),
            (Mode::Strict, 5, 6, 4, 6, None, false, false, UnexpectedAtP1),
            (Mode::Strict, 5, 6, 5, 7, None, false, false, UnexpectedAtP1),
            (
                Mode::Strict,
                5,
                7,
                5,
                7,
                None,
                false,
                false,
                UnexpectedMultistep,
            ),
            (
                Mode::Loose,
                5,
                9,
                5,
                6,
                None,
                false,
                false,
                RolledPastExpected,
            ),
            (Mode::Loose, 5, 6, 4, 5, None, false, false, UnexpectedAtP1),
            (
                Mode::Loose,
                5,
                7,
                4,
                5,
                None,
                false,
                false,
                UnexpectedMultistep,
            ),
            (
                Mode::Confirmed,
                5,
                7,
                5,
                6,
                Some(7),
                false,
                false,
                RolledPastExpected,
            ),
            (
                Mode::Confirmed,
                5,
                7,
                5,
                6,
                None,
                false,
                false,
                IncompletePhaseB,
            ),
            (
                Mode::Confirmed,
                5,
                8,
                5,
                6,
                Some(7),
                false,
                false,
                UnexpectedMultistep,
            ),
            (
                Mode::Confirmed,
                5,
                7,
                4,
                5,
                Some(7),
                false,
                false,
                UnexpectedMultistep,
            ),
            (
                Mode::Exact,
                5,
                6,
                5,
                6,
                Some(6),
                true,
                true,
                RolledPastExpected,
            ),
            (
                Mode::Exact,
                5,
                6,
                5,
                6,
                Some(6),
                false,
                true,
                IncompletePhaseB,
            ),
            (Mode::Exact, 5, 6, 5, 6, None, true, true, IncompletePhaseB),
            (Mode::Exact, 5, 6, 4, 5, Some(6), true, true, UnexpectedAtP1),
            (
                Mode::Exact,
                5,
                7,
                5,
                6,
                Some(6),
                true,
                true,
                UnexpectedMultistep,
            ),
            (
                Mode::Exact,
                5,
                6,
                5,
                6,
                Some(6),
                true,
                false,
                UnexpectedEffectIdentity,
            ),
        ] {
            let got = classify(mode, m, h, &pin(e, p, c), phase, at_head);
            assert_eq!(got, want, "{mode:?} M={m} H={h} E={e} P={p} C={c:?}");
        }
    }

    #[test]
    fn modes_by_kind_and_version() {
        use WriterKind as K;
        for (kind, version, want) in [
            (K::Load, 9, Mode::Exact),
            (K::Mutation, 3, Mode::Exact),
            (K::Mutation, 2, Mode::Strict),
            (K::BranchMerge, 9, Mode::Confirmed),
            (K::BranchMerge, 1, Mode::Loose),
            (K::SchemaApply, 7, Mode::Exact),
            (K::SchemaApply, 6, Mode::Loose),
            (K::EnsureIndices, 8, Mode::Exact),
            (K::EnsureIndices, 7, Mode::Loose),
            (K::Optimize, 9, Mode::Loose),
        ] {
            assert_eq!(Mode::of(kind, version), want, "{kind:?} {version}");
        }
    }

    #[test]
    fn one_table_decides_for_all() {
        use Class::*;
        for (classes, want) in [
            (vec![RolledPastExpected; 2], Decided::RollForward),
            (vec![RolledPastExpected, NoMovement], Decided::RollBack),
            (vec![NoMovement, InvariantViolation], Decided::Abort),
            (vec![UnexpectedEffectIdentity], Decided::RollBack),
        ] {
            assert_eq!(decide(classes.clone()), want, "{classes:?}");
        }
    }
}
