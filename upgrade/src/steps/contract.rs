//! The contract of every pre-upgrade version (step 13, `docs/format/upgrade-protocol.md` 6.3).
//!
//! At stamps 8 and 9 it comes, unfenced, from the three root schema objects; on a fenced graph from the
//! archive the intent binds, and the root objects are not looked at. At stamp 13 it is the row of main's
//! pinned version, fenced or not, and there are no root objects to look at.

use std::sync::Arc;

use graph::digest::sha256_hex;
use graph::history::schema_archive::read_contract_of;
use graph::schema::ir::SchemaIr;
use graph::store::ManifestVersion;
use graph::{Error, Result};
use legacy::root_objects::{self, RootRefusal};
use legacy::{LegacySource, Role, SourceContract};

use crate::intent::{UpgradeIntent, UpgradeSchemaContract};
use crate::report::{Code, Remedy};
use crate::run::{Run, Stop};

/// The contract, what reads the source versions, and the IR that tables are compared with: that of the
/// root objects, when they were read.
pub(super) struct Bound {
    pub contract: Arc<SourceContract>,
    pub reader: LegacySource,
    pub ir: Option<SchemaIr>,
}

/// Read the contract of this run.
pub(super) async fn bind(
    run: &Run<'_>,
    source: u32,
    main: &ManifestVersion,
) -> Result<Bound, Stop> {
    match &run.pending {
        _ if source == LegacySource::Stamp13.live_stamp() => from_row(run, main).await,
        Some(intent) => from_archive(run, intent).await,
        None => from_root_objects(run, source, main).await,
    }
}

/// The row of a stamp-13 main. What makes an unfenced graph unsupported is an error on a fenced one: it
/// was there when this protocol fenced the graph.
async fn from_row(run: &Run<'_>, main: &ManifestVersion) -> Result<Bound, Stop> {
    let reader = LegacySource::Stamp13;
    let object = main.describe();
    let refused = |why: String| {
        if run.fenced() {
            Stop::Hard(Error::internal(why))
        } else {
            Stop::refused(Code::UnsupportedSource, why)
        }
    };
    let stamp = reader
        .admit(main, Role::LiveHead)
        .map_err(|reason| refused(format!("{object} is not admitted as a head: {reason}")))?;
    let contract = legacy::read_contract(main, stamp).await?.ok_or_else(|| {
        refused(format!(
            "{object} holds no schema_contract row, where a graph of stamp 13 keeps its accepted \
                 schema; restore the whole root from a backup"
        ))
    })?;
    contract.contract().validate().map_err(|e| {
        refused(format!(
            "the schema_contract row of {object} is not valid: {e}"
        ))
    })?;
    Ok(Bound {
        contract: Arc::new(contract),
        reader,
        ir: None,
    })
}

async fn from_root_objects(
    run: &Run<'_>,
    source: u32,
    main: &ManifestVersion,
) -> Result<Bound, Stop> {
    let read = match root_objects::read(run.root, source).await? {
        Ok(read) => read,
        Err(refusal @ RootRefusal::Staged(_)) => {
            return Err(Stop::recovery(
                Code::SourceRecoveryRequired,
                refusal.to_string(),
                Remedy::Staging,
            ));
        }
        Err(refusal @ RootRefusal::Unsupported { .. }) => {
            return Err(Stop::refused(Code::UnsupportedSource, refusal.to_string()));
        }
    };
    let reader = LegacySource::RootContract {
        stamp: source,
        contract: read.contract.clone(),
    };
    if let Err(reason) = reader.admit(main, Role::LiveHead) {
        return Err(Stop::refused(
            Code::UnsupportedSource,
            format!("{} is not admitted as a head: {reason}", main.describe()),
        ));
    }
    Ok(Bound {
        contract: read.contract,
        reader,
        ir: Some(read.ir),
    })
}

async fn from_archive(run: &Run<'_>, intent: &UpgradeIntent) -> Result<Bound, Stop> {
    let bound = intent
        .contract()
        .ok_or_else(|| Error::internal("the intent names no schema contract"))?;
    let name = bound.content_sha256.to_ascii_lowercase();
    let contract = match read_contract_of(run.root, &bound.identity, &name).await {
        Ok(contract) => contract,
        Err(e) if e.is_storage() => return Err(Stop::Hard(e)),
        Err(e) => {
            return Err(Stop::recovery(
                Code::LegacyObjectsDiffer,
                format!("the schema archive {name} that the intent binds cannot be used: {e}"),
                Remedy::Fencing,
            ));
        }
    };
    let contract = Arc::new(SourceContract::new(contract)?);
    Ok(Bound {
        reader: LegacySource::RootContract {
            stamp: intent.source_format,
            contract: contract.clone(),
        },
        contract,
        ir: None,
    })
}

/// What an intent binds of a contract.
pub(super) fn upgrade_contract(contract: &SourceContract) -> UpgradeSchemaContract {
    UpgradeSchemaContract {
        identity: contract.head().clone(),
        source_sha256: sha256_hex(contract.contract().source.as_bytes()),
        ir_sha256: sha256_hex(contract.contract().ir.as_bytes()),
        content_sha256: contract.content_hash().to_string(),
    }
}

/// On a resumed run the contract must reproduce what the intent binds.
pub(super) fn require_reproduced(intent: &UpgradeIntent, contract: &SourceContract) -> Result<()> {
    let mut bound = intent
        .contract()
        .cloned()
        .ok_or_else(|| Error::internal("the intent names no schema contract"))?;
    for digest in [
        &mut bound.source_sha256,
        &mut bound.ir_sha256,
        &mut bound.content_sha256,
    ] {
        digest.make_ascii_lowercase();
    }
    if bound != upgrade_contract(contract) {
        return Err(Error::internal(format!(
            "the schema contract read back is not the one the intent of attempt {} binds",
            intent.attempt
        )));
    }
    Ok(())
}
