//! The contract against the tables (steps 21, 22). Reads the manifests of main's pinned tables, never
//! their data.

use arrow_schema::Schema as ArrowSchema;
use census::Census;
use futures::{StreamExt as _, TryStreamExt as _};
use graph::Error;
use graph::model::{Pin, TableRow};
use graph::schema::columns::{
    DeclaredTable, compare_columns as compare, tables as declared_tables,
};
use graph::schema::ir::SchemaIr;
use graph::table::{open_linear_pin, table_location};
use legacy::root_objects::compare_tables;

use crate::observer::Progress;
use crate::report::Code;
use crate::run::{Run, Stop};

/// Tables opened at once.
const TABLES_AT_ONCE: usize = 8;

/// Every live head must hold exactly the tables the contract declares.
pub(super) fn compare_sets(run: &Run<'_>, ir: &SchemaIr, census: &Census) -> Result<(), Stop> {
    let declared = declared_tables(ir)?;
    for head in &census.heads {
        let pairs = declared.iter().map(|t| (t.table_key.as_str(), t.identity));
        if let Err(difference) = compare_tables(pairs, &head.record.tables) {
            return Err(Stop::refused(
                Code::UnsupportedSource,
                format!(
                    "the root schema objects do not describe {} at version {}: {difference}; the graph at \
                     {} was changed by something else than its release, restore the whole root from a \
                     backup",
                    head.native.as_deref().unwrap_or("main"),
                    head.pinned,
                    run.root.uri()
                ),
            ));
        }
    }
    Ok(())
}

/// Main's pinned tables must have the columns the contract declares, by name and Arrow type.
pub(super) async fn compare_columns(
    run: &mut Run<'_>,
    ir: &SchemaIr,
    census: &Census,
) -> Result<(), Stop> {
    let declared = declared_tables(ir)?;
    let Some(main) = census.heads.iter().find(|h| h.native.is_none()) else {
        return Err(Stop::Hard(Error::internal(
            "the census holds no head of main",
        )));
    };
    let pinned: Vec<(&TableRow, &Pin)> = main
        .record
        .tables
        .iter()
        .filter_map(|t| t.state.pin().map(|pin| (t, pin)))
        .collect();
    if run.options.check {
        run.report.tables_above_pin = above_pins(run, &pinned, census).await?;
    }
    let total = pinned.len() as u64;
    let (root, observer) = (run.root, run.options.observer.clone());
    // Futures, not a closure, are kept across an await: so the run stays `Send`.
    let opens: Vec<_> = pinned
        .into_iter()
        .map(|(table, pin)| async move {
            let dataset = open_linear_pin(root, table, pin)
                .await
                .map_err(|e| e.within(format!("table {}", table.table_key)))?;
            Ok::<_, Error>((table, ArrowSchema::from(dataset.schema())))
        })
        .collect();
    let mut opened = futures::stream::iter(opens).buffered(TABLES_AT_ONCE);
    let mut opens = 0;
    while let Some((table, stored)) = opened.try_next().await? {
        opens += 1;
        observer.progress(Progress {
            phase: "comparing table columns",
            done: opens,
            total,
        });
        let difference = declared_of(&declared, table).and_then(|d| compare(&d.schema, &stored));
        if let Some(difference) = difference {
            return Err(Stop::refused(
                Code::UnsupportedSource,
                format!(
                    "table {} ({}) does not have the columns the root schema objects declare: {difference}; \
                     the schema objects and the tables are from different moments, restore the whole root \
                     from a backup",
                    table.table_key, table.table_path
                ),
            ));
        }
    }
    run.report.work.table_opens = opens;
    Ok(())
}

/// Main's tables whose ref holds a version that no live branch shows: one listing a table.
async fn above_pins(
    run: &Run<'_>,
    pinned: &[(&TableRow, &Pin)],
    census: &Census,
) -> Result<u64, Stop> {
    let mut count = 0;
    for (table, pin) in pinned {
        let (location, branch) = table_location(table, pin);
        // A pin of main can stand on the fork of a branch, whose later versions that branch shows.
        let shown = census
            .heads
            .iter()
            .flat_map(|h| &h.record.tables)
            .filter(|t| t.identity == table.identity)
            .filter_map(|t| t.state.pin())
            .filter(|p| p.table_branch == pin.table_branch)
            .map(|p| p.table_version)
            .max();
        let versions = run
            .root
            .linear_versions(&location, branch.as_deref())
            .await?;
        count += u64::from(versions.last().copied() > shown);
    }
    Ok(count)
}

fn declared_of<'a>(declared: &'a [DeclaredTable], table: &TableRow) -> Option<&'a DeclaredTable> {
    declared.iter().find(|d| d.identity == table.identity)
}
