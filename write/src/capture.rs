//! The one read a write rests on: identity, head, schema and pins of its branch, taken together.

use std::sync::Arc;

use graph::Error;
use graph::manifest::BranchState;
use graph::manifest::scan::{open_captured, read_captured};
use graph::model::names;
use graph::model::{Pin, TableRow};
use graph::refs::BranchIdentifier;
use graph::schema::ir::SchemaIr;
use graph::store::{ManifestVersion, Root};

use crate::error::Result;
use crate::publish::{Authority, Precondition};
use crate::table::Witness;

/// A branch as a write transaction saw it.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Logical branch; `None` is main.
    pub branch: Option<String>,
    /// Lance's identifier of its ref; empty for main.
    pub identifier: BranchIdentifier,
    /// The version read.
    pub version: ManifestVersion,
    /// What it holds, with its contract texts.
    pub state: Arc<BranchState>,
    /// The accepted schema, checked.
    pub ir: SchemaIr,
}

impl Capture {
    /// Read `branch` (`None` = main) at its latest version.
    pub async fn of(root: &Root, branch: Option<&str>) -> Result<Self> {
        let (opened, identifier) = open_captured(root, branch).await?;
        let state = read_captured(root, &opened).await?;
        let contract = state.contract_texts.as_ref().ok_or_else(|| {
            Error::internal(format!("{}: the contract was not read", opened.describe()))
        })?;
        let ir = contract
            .validate()
            .map_err(|e| e.within(opened.describe()))?;
        Ok(Self {
            branch: branch.filter(|b| *b != names::MAIN).map(str::to_string),
            identifier,
            version: opened,
            state,
            ir,
        })
    }

    /// The exact head; `None` for a fork that has not published.
    pub fn head(&self) -> Option<&str> {
        self.state.exact_head().map(|c| c.graph_commit_id.as_str())
    }

    /// Nothing on the branch may have moved when the write is published.
    pub fn precondition(&self) -> Precondition {
        Precondition::ExactGraphHead(Authority {
            branch: self.branch.clone(),
            identifier: self.identifier.clone(),
            head: self.head().map(str::to_string),
        })
    }

    /// What the staged versions of this write say.
    pub fn witness(&self) -> Result<Witness> {
        Ok(Witness::new(&self.identifier, self.head())?)
    }

    /// The pinned table `table_key`.
    pub fn table(&self, table_key: &str) -> Result<(&TableRow, &Pin)> {
        self.state
            .tables
            .iter()
            .find_map(|row| {
                let pin = row.state.pin().filter(|_| row.table_key == table_key)?;
                Some((row, pin))
            })
            .ok_or_else(|| {
                Error::internal(format!(
                    "the schema declares {table_key}, which version {} does not pin",
                    self.state.version
                ))
                .into()
            })
    }
}
