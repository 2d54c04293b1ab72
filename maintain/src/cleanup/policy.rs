//! What a cleanup keeps by number and by age (`docs/format/maintenance.md` 5.1 and 5.3). Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::reason::Reason;

/// Why a policy is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Neither option is given.
    #[error(
        "cleanup needs a policy: name what to keep with --keep N (the newest N commits of every branch), \
         --older-than DURATION (keep what is younger, for example 7d), or both"
    )]
    Missing,
    /// The duration does not parse.
    #[error(
        "--older-than '{text}' is no duration ({why}); expected a whole number and one unit of s, m, h, d, w, for \
         example 90, 24h, 7d or 2w"
    )]
    Duration {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// What to keep; at least one of the two is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    keep: Option<u32>,
    older_than_secs: Option<u64>,
}

impl Policy {
    /// The policy of the two options. 0 of `keep` counts as 1. `older_than` is the text of the option.
    pub fn new(keep: Option<u32>, older_than: Option<&str>) -> Result<Self, PolicyError> {
        let older_than_secs = older_than.map(parse_duration).transpose()?;
        if keep.is_none() && older_than_secs.is_none() {
            return Err(PolicyError::Missing);
        }
        Ok(Self {
            keep,
            older_than_secs,
        })
    }

    /// `--keep` as it was given.
    pub fn keep(&self) -> Option<u32> {
        self.keep
    }

    /// `--older-than` in seconds.
    pub fn older_than_secs(&self) -> Option<u64> {
        self.older_than_secs
    }

    /// The oldest time kept by age, in microseconds since the epoch like `now`; `None` without `--older-than`.
    pub fn cutoff(&self, now: i64) -> Option<i64> {
        let micros = i64::try_from(self.older_than_secs?)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000);
        Some(now.saturating_sub(micros))
    }

    /// `keep N versions`, `remove anything older than <secs>s`, or both joined with a comma.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(keep) = self.keep {
            parts.push(format!("keep {keep} versions"));
        }
        if let Some(secs) = self.older_than_secs {
            parts.push(format!("remove anything older than {secs}s"));
        }
        parts.join(", ")
    }
}

/// Seconds of `--older-than`: the text up to the last ASCII letter is a number, the rest its unit.
fn parse_duration(given: &str) -> Result<u64, PolicyError> {
    let refuse = |why| PolicyError::Duration {
        text: given.to_string(),
        why,
    };
    let text = given.trim();
    if text.is_empty() {
        return Err(refuse("it is empty"));
    }
    let at = text
        .rfind(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds: u64 = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(refuse("the unit is unknown")),
    };
    number
        .parse::<u64>()
        .map_err(|_| refuse("the number is not a whole one"))?
        .checked_mul(seconds)
        .ok_or_else(|| refuse("it is too long"))
}

/// The retained ones of a branch's own `versions` (ascending, none above the head, which is the last), each with
/// why. `named` is false for main. `timestamp` is a version's Lance time in microseconds, asked for only under
/// `cutoff`; one that is not known keeps the version.
pub fn retained(
    versions: &[u64],
    named: bool,
    keep: Option<u32>,
    cutoff: Option<i64>,
    timestamp: impl Fn(u64) -> Option<i64>,
) -> BTreeMap<u64, BTreeSet<Reason>> {
    let mut kept: BTreeMap<u64, BTreeSet<Reason>> = BTreeMap::new();
    let mut add = |version: u64, reason| {
        kept.entry(version).or_default().insert(reason);
    };
    if let Some(head) = versions.last() {
        add(*head, Reason::Head);
    }
    if named && let Some(base) = versions.first() {
        add(*base, Reason::Base);
    }
    if let Some(keep) = keep {
        let newest = usize::try_from(keep.max(1)).unwrap_or(usize::MAX);
        for version in &versions[versions.len().saturating_sub(newest)..] {
            add(*version, Reason::Keep);
        }
    }
    if let Some(cutoff) = cutoff {
        for version in versions {
            if timestamp(*version).is_none_or(|t| t >= cutoff) {
                add(*version, Reason::Age);
            }
        }
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("24h", 86_400),
            ("7d", 604_800),
            ("2w", 1_209_600),
            (" 7d ", 604_800),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        for bad in [
            "",
            "  ",
            "7 d",
            "7D",
            "1h30m",
            "1.5d",
            "-1d",
            "d",
            "7y",
            "7dd",
            "7d1",
            "18446744073709551615w",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_and_cutoffs() {
        let both = Policy::new(Some(3), Some("7d")).unwrap();
        assert_eq!(
            both.text(),
            "keep 3 versions, remove anything older than 604800s"
        );
        assert_eq!(both.cutoff(604_800_000_001), Some(1));
        let keep = Policy::new(Some(3), None).unwrap();
        assert_eq!(
            (keep.text(), keep.cutoff(9)),
            ("keep 3 versions".into(), None)
        );
        assert_eq!(Policy::new(None, None), Err(PolicyError::Missing));
        let ever = Policy::new(None, Some("18446744073709551615")).unwrap();
        assert!(ever.cutoff(1).unwrap() < 0);
    }

    #[test]
    fn windows() {
        use Reason::{Age, Base, Head, Keep};
        let times = |v: u64| (v != 6).then_some(i64::try_from(v * 10).unwrap());
        type Case<'a> = (
            &'a [u64],
            bool,
            Option<u32>,
            Option<i64>,
            &'a [(u64, &'a [Reason])],
        );
        let cases: [Case<'_>; 7] = [
            (&[3, 4, 6, 9], false, Some(1), None, &[(9, &[Head, Keep])]),
            (&[3, 4, 6, 9], false, Some(0), None, &[(9, &[Head, Keep])]),
            (
                &[3, 4, 6, 9],
                true,
                Some(2),
                None,
                &[(3, &[Base]), (6, &[Keep]), (9, &[Head, Keep])],
            ),
            (
                &[3, 4],
                false,
                Some(9),
                None,
                &[(3, &[Keep]), (4, &[Head, Keep])],
            ),
            // Inclusive; a time that is not known keeps.
            (
                &[3, 4, 6, 9],
                false,
                None,
                Some(40),
                &[(4, &[Age]), (6, &[Age]), (9, &[Head, Age])],
            ),
            (
                &[3, 4, 5, 9],
                false,
                Some(1),
                Some(50),
                &[(5, &[Age]), (9, &[Head, Keep, Age])],
            ),
            (&[7], true, None, Some(1_000), &[(7, &[Head, Base])]),
        ];
        for (versions, named, keep, cutoff, want) in cases {
            let got = retained(versions, named, keep, cutoff, times);
            let want: BTreeMap<u64, BTreeSet<Reason>> = want
                .iter()
                .map(|(v, reasons)| (*v, reasons.iter().copied().collect()))
                .collect();
            assert_eq!(got, want, "{versions:?} {keep:?} {cutoff:?}");
        }
    }
}
