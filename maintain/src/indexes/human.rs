//! The index commands for a person and for a log.

use std::fmt::Write as _;

use super::declared::IndexKind;
use super::report::{BuildPlan, BuildReport, BuiltIndex, PendingIndex, RebuildPlan, RebuildReport};
use crate::optimize::report::subject;

impl IndexKind {
    fn words(self) -> &'static str {
        match self {
            Self::Btree => "B-tree",
            Self::FullText => "full-text",
            Self::Vector => "vector",
        }
    }
}

// Writing into a String cannot fail.
fn built(text: &mut String, all: &[BuiltIndex]) {
    for index in all {
        let (subject, kind) = (subject(&index.type_key), index.kind.words());
        let _ = writeln!(text, "  {subject:40} {kind} index on '{}'", index.column);
    }
}

fn pending(text: &mut String, all: &[PendingIndex]) {
    for index in all {
        let subject = subject(&index.type_key);
        let _ = writeln!(
            text,
            "  {subject:40} ↳ index pending on property '{}': {}",
            index.property, index.reason
        );
    }
}

impl BuildReport {
    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!(
            "build-indexes {} branch {} — {} built\n",
            self.uri,
            self.branch,
            self.built_indexes.len()
        );
        built(&mut text, &self.built_indexes);
        pending(&mut text, &self.pending_indexes);
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        format!(
            "build-indexes: commit {}, {} indexes built, {} pending",
            self.graph_commit_id.as_deref().unwrap_or("none"),
            self.built_indexes.len(),
            self.pending_indexes.len()
        )
    }
}

impl BuildPlan {
    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!(
            "build-indexes {} branch {} --check — {} missing, nothing was changed\n",
            self.uri,
            self.branch,
            self.missing_indexes.len()
        );
        built(&mut text, &self.missing_indexes);
        pending(&mut text, &self.pending_indexes);
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        format!(
            "build-indexes --check: {} indexes missing, {} pending, nothing was changed",
            self.missing_indexes.len(),
            self.pending_indexes.len()
        )
    }
}

impl RebuildReport {
    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!(
            "rebuild-full-text-indexes {} branch {} — {} rebuilt\n",
            self.uri,
            self.branch,
            self.rebuilt_indexes.len()
        );
        for index in &self.rebuilt_indexes {
            let subject = subject(&index.type_key);
            let _ = writeln!(
                text,
                "  {subject:40} full-text index on '{}'",
                index.property
            );
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "  warning: {warning}");
        }
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        format!(
            "rebuild-full-text-indexes: commit {}, {} indexes rebuilt",
            self.graph_commit_id.as_deref().unwrap_or("none"),
            self.rebuilt_indexes.len()
        )
    }
}

impl RebuildPlan {
    /// For a person.
    pub fn human(&self) -> String {
        let mut text = format!(
            "rebuild-full-text-indexes {} branch {} --check — {} to rebuild, nothing was changed\n",
            self.uri,
            self.branch,
            self.full_text_indexes.len()
        );
        for index in &self.full_text_indexes {
            let subject = subject(&index.type_key);
            let _ = writeln!(
                text,
                "  {subject:40} full-text index on '{}'",
                index.property
            );
        }
        text
    }

    /// One line for a log.
    pub fn summary(&self) -> String {
        format!(
            "rebuild-full-text-indexes --check: {} indexes, nothing was changed",
            self.full_text_indexes.len()
        )
    }
}
