//! The `.pg` schema language: source text to shape (`docs/format/tables-and-schema.md` 4).
//!
//! [`parse`] applies the grammar, [`compile`] the rules of 4.3 to 4.7 as well. Two modes exist: a new
//! schema is admitted under every rule, while a source that some release accepted and stored is read
//! without those that were added later (4.5). What the tolerant mode lets through is still compared
//! with the accepted IR, so tolerance can never change what a stored contract means.

pub mod ast;
mod budget;
mod constraints;
mod error;
mod lower;
mod parse;
mod properties;
mod scan;

#[cfg(test)]
mod tests;

pub use error::SourceError;
pub use lower::{Compiled, RenameHints};
pub use parse::parse;
pub use scan::MAX_TOKENS;

use super::vintage::Vintage;

/// Which rules a source has to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseMode {
    /// Every rule: for a schema that is accepted anew.
    Admission,
    /// Without the rules that later releases added: for a source that was accepted and stored.
    Tolerant,
}

/// What `@range(p, ..5)` means (`docs/format/tables-and-schema.md` 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpperBound {
    /// The first number found is the minimum. This is what 0.10 stored.
    #[default]
    AsMinimum,
    /// It is the maximum, in case a later release compiles it so.
    AsMaximum,
}

/// How to compile a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileOptions {
    /// Which rules apply.
    pub mode: ParseMode,
    /// The vintage of the graph. Without it only what neither vintage admits is refused: an edge
    /// constraint may name the endpoints bare or with `@`.
    pub vintage: Option<Vintage>,
    /// How a range without a minimum is read.
    pub upper_bound: UpperBound,
}

/// Compile a source to a shape, under the rules of `mode` and of `vintage` where it is known.
pub fn compile(
    source: &str,
    mode: ParseMode,
    vintage: Option<Vintage>,
) -> Result<Compiled, SourceError> {
    compile_with(
        source,
        CompileOptions {
            mode,
            vintage,
            upper_bound: UpperBound::default(),
        },
    )
}

/// As [`compile`], with every choice spelled out.
pub fn compile_with(source: &str, options: CompileOptions) -> Result<Compiled, SourceError> {
    let file = parse(source)?;
    lower::lower(source, &file, options)
}
