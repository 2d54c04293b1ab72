//! Readers of the legacy catalog: `__manifest` versions of stamps 6 to 13, the root schema objects of
//! stamps 8 and 9, and the listing of recovery sidecars (`docs/format/legacy-manifest.md`).
//!
//! Nothing here writes but [`publish`], for the commands that finish what a release left. A version is admitted first ([`admission`]), then read as logical rows
//! ([`row`]), whatever shape it is stored in ([`shape`]): a whole head at once ([`head_scan`]), or only
//! the registrations of a retained version ([`version_schema`]). Pins of older versions are derived
//! from the head by clock ([`fold`]). [`LegacySource`] is the one place that knows how the sources
//! differ.

pub mod admission;
mod contract;
pub mod fold;
pub mod head_scan;
mod metadata;
mod packed;
pub mod proof;
pub mod publish;
pub mod recovery;
pub mod root_objects;
pub mod row;
mod scan;
pub mod shape;
mod source;
pub mod version_schema;

pub use admission::{AdmittedStamp, Candidate, RefusalReason, Role};
pub use contract::SourceContract;
pub use head_scan::HeadScan;
pub use root_objects::{RootContract, RootRefusal, TablesDiffer};
pub use row::{LegacyCommit, Registration};
pub use shape::Shape;
pub use source::LegacySource;
pub use version_schema::{ReadVersion, SchemaReader, VersionSchema, read_contract, registered};
