//! What a lease object says, and what its state means. Pure.

use chrono::{DateTime, Utc};
use graph::{Error, Result};
use serde::{Deserialize, Serialize};

/// Folder of the lease, below the root. No reader of any release lists the root or asks for this key: they open
/// `__manifest`, `__history`, `nodes`, `edges`, `__recovery`, `__graph_index` and the `_schema` objects by name.
pub const LEASE_DIR: &str = "__maintenance_lease";
/// Digits of an epoch in a key.
const EPOCH_DIGITS: usize = 20;

/// One holder; the JSON object `__maintenance_lease/{epoch}.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The command.
    pub verb: String,
    /// Host it runs on.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// Unique to the run.
    pub run: String,
    /// When it took the lease.
    pub started_at: DateTime<Utc>,
    /// When it last said that it lives.
    pub renewed_at: DateTime<Utc>,
    /// When it let go; absent while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<DateTime<Utc>>,
}

impl Holder {
    /// Parse an object; bytes that are no holder are [`Error::Internal`] naming `key`.
    pub fn parse(key: &str, bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|e| {
            Error::internal(format!(
                "{key} is no maintenance lease ({e}), so it cannot be told whether another maintenance command runs. \
                 Make sure that none does, delete that object, and run the command again"
            ))
        })
    }

    /// The stored bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A struct of strings, integers and times has no failing path into a vector.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// For a person.
    pub fn describe(&self) -> String {
        format!(
            "{} (process {} on host {}, started {}, last heard of {})",
            self.verb,
            self.pid,
            self.host,
            time(self.started_at),
            time(self.renewed_at)
        )
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What the newest holder means for somebody who wants the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It let go.
    Free,
    /// It was heard of lately.
    Held,
    /// It was not heard of for longer than a living holder would be silent.
    Stale,
}

/// Judge a holder at `now`. A renewal from the future (clocks differ) counts as lately.
pub fn standing(holder: &Holder, now: DateTime<Utc>, stale_after: std::time::Duration) -> Standing {
    if holder.released_at.is_some() {
        return Standing::Free;
    }
    match now.signed_duration_since(holder.renewed_at).to_std() {
        Ok(silent) if silent > stale_after => Standing::Stale,
        _ => Standing::Held,
    }
}

/// The key of an epoch.
pub fn key(epoch: u64) -> String {
    format!("{LEASE_DIR}/{epoch:0EPOCH_DIGITS$}.json")
}

/// The epoch of an object in the folder; `None` for any other name (a create that was killed leaves a temporary).
pub fn epoch(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == EPOCH_DIGITS && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn holder() -> Holder {
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        Holder {
            verb: "optimize".into(),
            host: "h".into(),
            pid: 7,
            run: "r".into(),
            started_at: at,
            renewed_at: at,
            released_at: None,
        }
    }

    #[test]
    fn a_holder_is_stale_only_after_the_stated_silence() {
        let limit = Duration::from_secs(120);
        let after = |seconds: i64| {
            let now = holder().renewed_at + chrono::Duration::seconds(seconds);
            standing(&holder(), now, limit)
        };
        assert_eq!(after(-500), Standing::Held);
        assert_eq!(after(120), Standing::Held);
        assert_eq!(after(121), Standing::Stale);
        let gone = Holder {
            released_at: Some(holder().renewed_at),
            ..holder()
        };
        assert_eq!(standing(&gone, holder().renewed_at, limit), Standing::Free);
    }

    #[test]
    fn keys_order_like_their_epochs_and_nothing_else_is_one() {
        assert_eq!(epoch("00000000000000000012.json"), Some(12));
        let name = key(u64::MAX);
        let (_, name) = name.split_once('/').unwrap();
        assert_eq!(epoch(name), Some(u64::MAX));
        for other in [
            "12.json",
            "00000000000000000012.json.tmp.00",
            "0000000000000000001x.json",
            "holder.json",
            "99999999999999999999.json",
        ] {
            assert_eq!(epoch(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = holder().to_bytes();
        assert_eq!(Holder::parse("k", &bytes).unwrap(), holder());
        let error = Holder::parse("k", b"{}").unwrap_err().to_string();
        assert!(error.starts_with("k is no maintenance lease"), "{error}");
    }
}
