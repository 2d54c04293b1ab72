//! The receipt every converted ref keeps, and what it says about a ref
//! (`docs/format/upgrade-protocol.md` 5.3).

use graph::stamp::{CURRENT, PENDING_KEY, RECEIPT_KEY, StampReading};
use graph::store::ManifestVersion;
use graph::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::intent::{MAX_INTENT_BYTES, SourceBranch, UpgradeIntent};

/// What an operator does about a ref that another writer moved: the root holds the only copy of that
/// write.
pub const WRITTEN_SINCE: &str = "; it holds a write that the backup lacks: copy the whole root aside, then \
                                 restore the backup";

/// The value of the receipt key; a pure function of the intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchReceipt {
    /// Protocol of the intent.
    pub protocol: u32,
    /// Attempt of the intent.
    pub attempt: String,
    /// The ref's pin.
    pub source: SourceBranch,
}

impl BranchReceipt {
    /// The receipt `intent` leaves on `branch`.
    pub fn of(intent: &UpgradeIntent, branch: &SourceBranch) -> Self {
        Self {
            protocol: intent.protocol,
            attempt: intent.attempt.clone(),
            source: branch.clone(),
        }
    }

    /// The stored text.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|e| Error::internal(format!("cannot encode a receipt: {e}")))
    }
}

/// One ref as the completion rule sees it.
#[derive(Debug, Clone)]
pub struct RefState<'a> {
    /// Raw receipt text.
    pub receipt: Option<&'a str>,
    /// The ref's stamp.
    pub stamp: StampReading,
    /// The ref's latest version.
    pub version: u64,
    /// Whether it carries the pending key.
    pub pending: bool,
}

impl<'a> RefState<'a> {
    /// Collect it from an opened head.
    pub fn of(version: &'a ManifestVersion) -> Self {
        Self {
            receipt: version.metadata(RECEIPT_KEY),
            stamp: StampReading::of(version),
            version: version.version,
            pending: version.metadata(PENDING_KEY).is_some(),
        }
    }

    /// The version an untouched ref has: the pinned one, plus one for a main that carries the fence.
    pub fn source_version(&self, branch: &SourceBranch) -> u64 {
        let fence = u64::from(branch.native.is_none() && self.pending);
        branch.version.saturating_add(fence)
    }
}

/// Whether `intent` converted the ref already. A receipt that cannot be read, a foreign one, or one that
/// stands at another version or stamp than it can is [`Error::Internal`].
pub fn is_completed(
    intent: &UpgradeIntent,
    branch: &SourceBranch,
    state: &RefState<'_>,
) -> Result<bool> {
    let Some(text) = state.receipt else {
        return Ok(false);
    };
    let name = branch.name();
    if text.len() > MAX_INTENT_BYTES {
        return Err(Error::internal(format!(
            "ref '{name}' carries a receipt of {} bytes, above the limit of {MAX_INTENT_BYTES}",
            text.len()
        )));
    }
    let found: BranchReceipt = serde_json::from_str(text).map_err(|e| {
        Error::internal(format!(
            "ref '{name}' carries a receipt that cannot be read: {e}"
        ))
    })?;
    if found != BranchReceipt::of(intent, branch) {
        let leftover = intent.protocol > found.protocol
            && intent.attempt != found.attempt
            && state.version == state.source_version(branch);
        if leftover {
            return Ok(false);
        }
        return Err(Error::internal(format!(
            "ref '{name}' carries the receipt of another upgrade (protocol {}, attempt {}); expected \
             protocol {}, attempt {}",
            found.protocol, found.attempt, intent.protocol, intent.attempt
        )));
    }
    let added = match (&branch.native, state.pending) {
        (Some(_), _) => 1,
        (None, true) => 2,
        (None, false) => 3,
    };
    let expected = branch.version.saturating_add(added);
    if state.stamp != StampReading::Number(CURRENT) || state.version != expected {
        let aside = if state.version > expected {
            WRITTEN_SINCE
        } else {
            ""
        };
        return Err(Error::internal(format!(
            "ref '{name}' carries this upgrade's receipt, but stands at version {} with stamp {}; \
             expected version {expected} with stamp {CURRENT}{aside}",
            state.version,
            state
                .stamp
                .number()
                .map_or_else(|| "none".to_string(), |n| n.to_string()),
        )));
    }
    Ok(true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::intent::tests::intent;

    fn state<'a>(
        receipt: Option<&'a str>,
        stamp: u32,
        version: u64,
        pending: bool,
    ) -> RefState<'a> {
        RefState {
            receipt,
            stamp: StampReading::Number(stamp),
            version,
            pending,
        }
    }

    #[test]
    fn completion_table() {
        let intent = intent();
        let (named, main) = (&intent.branches[0], &intent.branches[1]);
        let own = BranchReceipt::of(&intent, named).to_json().unwrap();
        let mains = BranchReceipt::of(&intent, main).to_json().unwrap();
        let older = mains
            .replace("\"protocol\":6", "\"protocol\":2")
            .replace("01K6X9", "01K5X9");
        let same_attempt = mains.replace("\"protocol\":6", "\"protocol\":2");
        let foreign = own.replace("01K6X9", "01K5X9");
        // (branch, state, expected: Some(completed) or None for an error)
        let cases = [
            (named, state(None, 9, 6, false), Some(false)),
            (named, state(Some(&own), 14, 7, false), Some(true)),
            (named, state(Some(&own), 9, 7, false), None),
            (named, state(Some(&own), 14, 8, false), None),
            (named, state(Some(&older), 9, 6, false), Some(false)),
            (named, state(Some(&older), 9, 7, false), None),
            (named, state(Some(&same_attempt), 9, 6, false), None),
            (named, state(Some(&foreign), 14, 7, false), None),
            (named, state(Some("{}"), 9, 6, false), None),
            (main, state(Some(&older), 14, 10, true), Some(false)),
            (main, state(Some(&older), 9, 9, false), Some(false)),
            (main, state(Some(&mains), 14, 11, true), Some(true)),
            (main, state(Some(&mains), 14, 12, false), Some(true)),
            (main, state(Some(&mains), 14, 12, true), None),
            (main, state(Some(&mains), 14, 11, false), None),
        ];
        for (index, (branch, state, expected)) in cases.into_iter().enumerate() {
            assert_eq!(
                is_completed(&intent, branch, &state).ok(),
                expected,
                "case {index}"
            );
        }
    }

    proptest::proptest! {
        /// Whatever a receipt's bytes became, a ref counts as completed only with the receipt as it was written.
        #[test]
        fn damaged_receipts_complete_nothing(at in 0_usize..2000, byte in proptest::prelude::any::<u8>()) {
            let intent = intent();
            let branch = &intent.branches[0];
            let own = BranchReceipt::of(&intent, branch).to_json().unwrap();
            let mut bytes = own.clone().into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(text) = String::from_utf8(bytes)
                && let Ok(true) = is_completed(&intent, branch, &state(Some(&text), 14, 7, false))
            {
                let (a, b): (serde_json::Value, serde_json::Value) =
                    (serde_json::from_str(&text).unwrap(), serde_json::from_str(&own).unwrap());
                // A digest may be spelled in capitals.
                let lower = |v: serde_json::Value| v.to_string().to_lowercase();
                proptest::prop_assert_eq!(lower(a), lower(b));
            }
        }
    }
}
