//! The stamp-14 graph: the manifest and history library every command shares.
//!
//! Folders are nouns of the format (`docs/format/`): [`store`] is the one handle every byte goes
//! through, [`stamp`] the guard, [`refs`] native branches and their retirement, [`manifest`] the rows of
//! `__manifest`, [`history`] the objects under `__history/`, [`table`] the table datasets at their pins,
//! [`schema`] the schema language and its contract, [`view`] what a reader sees. Stamps below 14 are refused here and read in the
//! `legacy` crate.

pub mod digest;
pub mod error;
pub mod history;
pub mod manifest;
pub mod model;
pub mod refs;
pub mod schema;
pub mod stamp;
pub mod store;
pub mod table;
pub mod ulids;
pub mod view;
pub mod words;

pub use error::{Error, Result};
