//! Days and milliseconds as calendar text, both ways (`docs/format/tables-and-schema.md` 8).

use chrono::{DateTime, Datelike, Days, NaiveDate, TimeZone, Timelike, Utc};

/// What a date may look like, for errors.
pub(crate) const DATE: &str = "a count of days or a date such as \"2026-03-05\" (Date)";
/// What a date-time may look like, for errors.
pub(crate) const DATE_TIME: &str = "a count of milliseconds or a time such as \
    \"2026-03-05T22:10:00.250Z\", without a zone in UTC, no finer than milliseconds (DateTime)";

/// Days since 1970-01-01 of a `YYYY-MM-DD`.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let mut scan = Scan(text.as_bytes());
    let date = scan.date()?;
    scan.end()?;
    i32::try_from((date - NaiveDate::default()).num_days()).ok()
}

/// Milliseconds since the epoch of a `YYYY-MM-DDTHH:MM:SS[.fraction][Z|+hh:mm]`, a space standing for `T`
/// as well. `None` also for what is finer than a millisecond: it could not be stored.
pub(crate) fn parse_date_time(text: &str) -> Option<i64> {
    let mut scan = Scan(text.as_bytes());
    let date = scan.date()?;
    scan.byte(b"T ")?;
    let hour = scan.digits(2)?;
    scan.byte(b":")?;
    let minute = scan.digits(2)?;
    scan.byte(b":")?;
    let second = scan.digits(2)?;
    let milli = scan.fraction()?;
    let offset = scan.zone()?;
    scan.end()?;
    let local = date.and_hms_milli_opt(hour, minute, second, milli)?;
    let millis = local.and_utc().timestamp_millis();
    millis.checked_sub(i64::from(offset) * 60_000)
}

/// Append `YYYY-MM-DD`; `None` outside the years 0 to 9999.
pub(crate) fn write_date(days: i32, out: &mut Vec<u8>) -> Option<()> {
    let epoch = NaiveDate::default();
    let distance = Days::new(u64::from(days.unsigned_abs()));
    let date = if days < 0 {
        epoch.checked_sub_days(distance)
    } else {
        epoch.checked_add_days(distance)
    }?;
    push_date(date, out)
}

/// Append `YYYY-MM-DDTHH:MM:SS`, and `.mmm` when the milliseconds are not zero; `None` outside the years 0
/// to 9999.
pub(crate) fn write_date_time(millis: i64, out: &mut Vec<u8>) -> Option<()> {
    let time: DateTime<Utc> = Utc.timestamp_millis_opt(millis).single()?;
    push_date(time.date_naive(), out)?;
    out.push(b'T');
    push(time.hour(), 2, out);
    out.push(b':');
    push(time.minute(), 2, out);
    out.push(b':');
    push(time.second(), 2, out);
    let milli = time.timestamp_subsec_millis();
    if milli != 0 {
        out.push(b'.');
        push(milli, 3, out);
    }
    Some(())
}

fn push_date(date: NaiveDate, out: &mut Vec<u8>) -> Option<()> {
    let year = u32::try_from(date.year())
        .ok()
        .filter(|year| *year <= 9999)?;
    push(year, 4, out);
    out.push(b'-');
    push(date.month(), 2, out);
    out.push(b'-');
    push(date.day(), 2, out);
    Some(())
}

fn push(number: u32, width: u32, out: &mut Vec<u8>) {
    for place in (0..width).rev() {
        out.push(b'0' + (number / 10_u32.pow(place) % 10) as u8);
    }
}

/// What is left of a text.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn byte(&mut self, one_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        one_of.contains(first).then(|| self.0 = rest)?;
        Some(*first)
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let mut number = 0;
        for _ in 0..count {
            number = number * 10 + u32::from(self.byte(b"0123456789")? - b'0');
        }
        Some(number)
    }

    fn date(&mut self) -> Option<NaiveDate> {
        let year = self.digits(4)?;
        self.byte(b"-")?;
        let month = self.digits(2)?;
        self.byte(b"-")?;
        let day = self.digits(2)?;
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
    }

    /// Milliseconds of an optional fraction of a second.
    fn fraction(&mut self) -> Option<u32> {
        if self.byte(b".").is_none() {
            return Some(0);
        }
        let mut milli = self.digits(1)? * 100;
        let mut weight = 10;
        while let Some(digit) = self.byte(b"0123456789") {
            let digit = u32::from(digit - b'0');
            if weight == 0 && digit != 0 {
                return None;
            }
            milli += digit * weight;
            weight /= 10;
        }
        Some(milli)
    }

    /// Minutes east of UTC.
    fn zone(&mut self) -> Option<i32> {
        let sign = match self.byte(b"Z+-") {
            None | Some(b'Z') => return Some(0),
            Some(b'-') => -1,
            Some(_) => 1,
        };
        let hours = self.digits(2).filter(|hours| *hours < 24)?;
        self.byte(b":")?;
        let minutes = self.digits(2).filter(|minutes| *minutes < 60)?;
        Some(sign * i32::try_from(hours * 60 + minutes).ok()?)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn date(days: i32) -> Option<String> {
        let mut out = Vec::new();
        write_date(days, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    fn date_time(millis: i64) -> Option<String> {
        let mut out = Vec::new();
        write_date_time(millis, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn dates_both_ways() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (20517, "2026-03-05"),
            (11016, "2000-02-29"),
            (-719528, "0000-01-01"),
            (2932896, "9999-12-31"),
        ];
        for (days, text) in cases {
            assert_eq!(date(days).as_deref(), Some(text));
            assert_eq!(parse_date(text), Some(days));
        }
        for days in [-719529, 2932897, i32::MIN, i32::MAX] {
            assert_eq!(date(days), None, "{days}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "2026-3-5",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-03-05 ",
            " 2026-03-05",
            "20260305",
            "2026-03-05T00:00:00",
            "+2026-03-05",
            "-001-03-05",
            "12026-03-05",
            "2026/03/05",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn date_times_both_ways() {
        let cases = [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59.999"),
            (1772748000000, "2026-03-05T22:00:00"),
            (1772748000050, "2026-03-05T22:00:00.050"),
            (-62167219200000, "0000-01-01T00:00:00"),
            (253402300799999, "9999-12-31T23:59:59.999"),
        ];
        for (millis, text) in cases {
            assert_eq!(date_time(millis).as_deref(), Some(text));
            assert_eq!(parse_date_time(text), Some(millis));
        }
        for millis in [-62167219200001, 253402300800000, i64::MIN, i64::MAX] {
            assert_eq!(date_time(millis), None, "{millis}");
        }
    }

    #[test]
    fn spellings_of_a_time() {
        let cases = [
            ("2026-03-05T22:00:00Z", Some(1772748000000)),
            ("2026-03-05 22:00:00", Some(1772748000000)),
            ("2026-03-05T23:30:00+01:30", Some(1772748000000)),
            ("2026-03-05T21:00:00-01:00", Some(1772748000000)),
            ("2026-03-05T22:00:00.5", Some(1772748000500)),
            ("2026-03-05T22:00:00.05Z", Some(1772748000050)),
            ("2026-03-05T22:00:00.050000000Z", Some(1772748000050)),
            ("2026-03-05T22:00:00.0501Z", None),
            ("2026-03-05T22:00:00.", None),
            ("2026-03-05T22:00:00.Z", None),
            ("2026-03-05T22:00", None),
            ("2026-03-05", None),
            ("2026-03-05T24:00:00", None),
            ("2026-03-05T22:60:00", None),
            ("2026-03-05T22:00:60", None),
            ("2026-03-05T22:00:00z", None),
            ("2026-03-05t22:00:00", None),
            ("2026-03-05T22:00:00 Z", None),
            ("2026-03-05T22:00:00+0100", None),
            ("2026-03-05T22:00:00+24:00", None),
            ("2026-03-05T22:00:00+01:60", None),
            ("2026-03-05T22:00:00ZZ", None),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_date_time(text), millis, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_day_comes_back(days in -719528..=2932896_i32) {
            prop_assert_eq!(parse_date(&date(days).unwrap()), Some(days));
        }

        #[test]
        fn every_millisecond_comes_back(millis in -62167219200000..=253402300799999_i64) {
            prop_assert_eq!(parse_date_time(&date_time(millis).unwrap()), Some(millis));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:. +-]{0,30}") {
            let _ = (parse_date(&text), parse_date_time(&text));
        }
    }
}
