//! What one retained version says about its tables (`docs/format/legacy-manifest.md` 6.3).
//!
//! Only `table` and `schema_contract` rows are read: membership and aliases belong to the version
//! itself, pins and drops come from the head by clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use graph::Result;
use graph::model::TableIdentity;
use graph::store::ManifestVersion;

use crate::admission::AdmittedStamp;
use crate::contract::SourceContract;
use crate::row::{Registration, Row};
use crate::scan::{Projection, fold_rows};

const COLUMNS: Projection = Projection {
    flat: &[
        "object_id",
        "object_type",
        "location",
        "metadata",
        "table_key",
        "stable_table_id",
        "table_incarnation_id",
    ],
    filter: Some("object_type IN ('table', 'schema_contract')"),
};

/// Registrations and contract of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionSchema {
    /// Registered tables in identity order.
    pub registrations: Vec<Registration>,
    /// The contract row, if the version has one.
    pub contract: Option<Arc<SourceContract>>,
}

/// Read the version schema of a version whose rows are read as `stamp`.
pub(crate) async fn read(version: &ManifestVersion, stamp: AdmittedStamp) -> Result<VersionSchema> {
    let tables = fold_rows(version, stamp.shape(), COLUMNS, Tables::new(), add).await?;
    Ok(VersionSchema {
        registrations: tables.into_values().collect(),
        contract: None,
    })
}

type Tables = BTreeMap<TableIdentity, Registration>;

fn add(tables: &mut Tables, row: Row) -> std::result::Result<(), String> {
    match row {
        Row::Table(registration) => match tables.entry(registration.identity) {
            Entry::Vacant(slot) => {
                slot.insert(registration);
                Ok(())
            }
            Entry::Occupied(held) if *held.get() == registration => Ok(()),
            Entry::Occupied(held) => Err(format!(
                "a second row registers the same table as '{}', this one as '{}'",
                held.get().table_key,
                registration.table_key
            )),
        },
        Row::Contract(_) => Err("a contract row without schema_source".to_string()),
        _ => Err("a row that the filter on object_type should have left out".to_string()),
    }
}
