//! The snapshot bound (`docs/format/legacy-manifest.md` 8.3): what the census keeps in memory, estimated
//! from head scans before any version is listed, then charged while reading.

use crate::finding::{Finding, FindingCode};

/// One table row in memory, strings not counted.
pub(crate) const TABLE_ROW_BYTES: u64 = 280;
/// One registration in memory, strings not counted.
pub(crate) const REGISTRATION_BYTES: u64 = 64;

/// What one ref adds to the estimate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefEstimate {
    /// Its own commits and the orphans it adopted.
    pub records: u64,
    /// `table` rows of its head.
    pub table_rows: u64,
}

/// First form: every record and every head holds all tables its head ever had.
pub(crate) fn estimate(refs: impl IntoIterator<Item = RefEstimate>) -> u64 {
    refs.into_iter().fold(0, |sum: u64, r| {
        let kept = r.records.saturating_add(1);
        sum.saturating_add(
            kept.saturating_mul(r.table_rows)
                .saturating_mul(TABLE_ROW_BYTES),
        )
    })
}

/// Compare the first form with the bound.
pub(crate) fn check_estimate(bytes: u64, limit: u64) -> Result<(), Finding> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Finding::new(
        FindingCode::LegacyCensusOverBound,
        format!(
            "the tables of all commits together would take about {bytes} bytes in memory, above the \
             limit of {limit}; no version was read"
        ),
    ))
}

/// Second form: the running charge.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    used: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    /// Charge the table rows of a record or a head.
    pub(crate) fn tables(&mut self, rows: usize) -> Result<(), Finding> {
        self.charge(rows, TABLE_ROW_BYTES)
    }

    /// Charge kept registrations.
    pub(crate) fn registrations(&mut self, rows: usize) -> Result<(), Finding> {
        self.charge(rows, REGISTRATION_BYTES)
    }

    fn charge(&mut self, rows: usize, each: u64) -> Result<(), Finding> {
        self.used = self.used.saturating_add((rows as u64).saturating_mul(each));
        if self.used <= self.limit {
            return Ok(());
        }
        Err(Finding::new(
            FindingCode::LegacyCensusOverBound,
            format!(
                "the tables of the commits read so far take {} bytes in memory, above the limit of {}",
                self.used, self.limit
            ),
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn sizes_are_those_of_the_values_kept() {
        assert_eq!(
            size_of::<::graph::model::TableRow>() as u64,
            TABLE_ROW_BYTES
        );
        assert_eq!(size_of::<legacy::Registration>() as u64, REGISTRATION_BYTES);
    }

    #[test]
    fn first_form() {
        let of = |records, table_rows| RefEstimate {
            records,
            table_rows,
        };
        assert_eq!(estimate([of(2, 5), of(0, 5)]), (3 * 5 + 5) * 280);
        assert_eq!(estimate([of(u64::MAX, 5)]), u64::MAX);
        assert!(check_estimate(7, 7).is_ok());
        let finding = check_estimate(8, 7).expect_err("over");
        assert_eq!(finding.code, FindingCode::LegacyCensusOverBound);
    }

    #[test]
    fn second_form() {
        let mut meter = Meter::new(2 * 280 + 64);
        meter.tables(2).unwrap();
        meter.registrations(1).unwrap();
        assert!(meter.registrations(1).is_err());
        assert!(Meter::new(0).tables(0).is_ok());
        assert!(Meter::new(0).tables(1).is_err());
    }
}
