//! The budgets of heads (`docs/format/upgrade-protocol.md` 6.2 step 19, `docs/format/legacy-manifest.md`
//! 8): checked before a census scans any head, because a head scan is the one thing of a census whose
//! memory no later bound limits.

use ::graph::store::{ManifestVersion, Root, guarded};
use ::graph::{Error, Result};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::finding::{Finding, label};
use crate::input::{CensusInput, Limits, RefInput, RefKind, ordered};

/// Batch size the byte budget is defined with.
const BATCH_ROWS: usize = 1024;
/// Heads measured at once.
const HEADS_AT_ONCE: usize = 4;
/// How a retired ref can be got rid of while the graph is not fenced.
const CLEANUP_HINT: &str = "; the ref is retired: `cleanup --keep <N> --confirm` of the build that wrote \
                            the graph can remove it";

/// One budget that a head, or the number of retired refs, exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetViolation {
    /// Whether removing retired refs can help.
    pub retired: bool,
    /// What exceeds which bound.
    pub message: String,
}

/// Every violation, in census order. Too many retired refs are reported alone and before any head is
/// opened; `locks` of the retired refs are schema-apply locks, which do not count.
pub async fn check_budgets(
    root: &Root,
    input: &CensusInput,
    locks: usize,
) -> Result<Vec<BudgetViolation>> {
    let limits = input.limits;
    let retired = input.retired.len().saturating_sub(locks) as u64;
    if retired > limits.retired_refs {
        return Ok(vec![BudgetViolation {
            retired: true,
            message: format!(
                "the graph has {retired} retired refs, above the limit of {}",
                limits.retired_refs
            ),
        }]);
    }
    let found: Vec<Option<BudgetViolation>> = futures::stream::iter(ordered(input)?)
        .map(|(kind, r)| measure(root, limits, kind, r))
        .buffered(HEADS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Violations as findings: one each, with advice, on an unfenced graph; one for all on a fenced one,
/// whose refs are no longer to be touched.
pub fn findings(violations: &[BudgetViolation], fenced: bool) -> Vec<Finding> {
    if violations.is_empty() {
        return Vec::new();
    }
    if fenced {
        let all: Vec<&str> = violations.iter().map(|v| v.message.as_str()).collect();
        return vec![Finding::unsupported(all.join("; "))];
    }
    violations
        .iter()
        .map(|v| {
            let hint = if v.retired { CLEANUP_HINT } else { "" };
            Finding::unsupported(format!("{}{hint}", v.message))
        })
        .collect()
}

async fn measure(
    root: &Root,
    limits: Limits,
    kind: RefKind,
    r: RefInput,
) -> Result<Option<BudgetViolation>> {
    let version = root
        .open_manifest(r.native.as_deref(), Some(r.pinned))
        .await?;
    let excess = match rows(&version).await? {
        rows if rows > limits.head_rows => Some(format!(
            "{rows} rows, above the limit of {}",
            limits.head_rows
        )),
        _ => decoded_above(&version, limits.head_bytes).await?.then(|| {
            format!(
                "more than the limit of {} bytes of decoded rows",
                limits.head_bytes
            )
        }),
    };
    Ok(excess.map(|excess| BudgetViolation {
        retired: kind == RefKind::Retired,
        message: format!(
            "the head of {} (version {}) has {excess}",
            label(r.native.as_deref()),
            r.pinned
        ),
    }))
}

async fn rows(version: &ManifestVersion) -> Result<u64> {
    let (object, dataset) = (version.describe(), version.dataset.clone());
    let context = object.clone();
    guarded(&object, async move {
        dataset
            .count_rows(None)
            .await
            .map(|rows| rows as u64)
            .map_err(|e| Error::lance(format!("cannot count the rows of {context}"), e))
    })
    .await
}

/// Whether the batches of a full scan together take more than `limit` bytes of memory. The scan stops at
/// the first batch that settles it, so a huge head costs no more than the bound.
async fn decoded_above(version: &ManifestVersion, limit: u64) -> Result<bool> {
    let (object, dataset) = (version.describe(), version.dataset.clone());
    let context = object.clone();
    guarded(&object, async move {
        let failed = |e: lance::Error| Error::lance(format!("cannot scan {context}"), e);
        let mut scanner = dataset.scan();
        scanner.batch_size(BATCH_ROWS);
        let mut stream = scanner.try_into_stream().await.map_err(failed)?;
        let mut bytes: u64 = 0;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(failed)?;
            bytes = bytes.saturating_add(batch.get_array_memory_size() as u64);
            if bytes > limit {
                return Ok(true);
            }
        }
        Ok(false)
    })
    .await
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn advice_only_while_unfenced_and_only_on_retired_refs() {
        let of = |retired, message: &str| BudgetViolation {
            retired,
            message: message.into(),
        };
        let both = [of(false, "main is big"), of(true, "r is big")];
        let unfenced = findings(&both, false);
        assert_eq!(unfenced.len(), 2);
        assert_eq!(unfenced[0].message, "main is big");
        assert!(unfenced[1].message.contains("cleanup --keep <N> --confirm"));
        let fenced = findings(&both, true);
        assert_eq!(fenced.len(), 1);
        assert_eq!(fenced[0].message, "main is big; r is big");
        assert!(findings(&[], true).is_empty());
    }
}
