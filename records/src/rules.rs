//! What enums, `@range` and `@check` ask of one value (`docs/format/tables-and-schema.md` 4.5).

use std::cmp::Ordering;

use graph::schema::types::{Bound, PropType};
use regex::Regex;

use crate::error::quoted;
use crate::value::Value;

/// The rules of a property beyond its type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    ranges: Vec<(Option<Bound>, Option<Bound>)>,
    checks: Vec<Result<Regex, String>>,
}

/// Days of 0000-01-01 and 9999-12-31: what has a text (8.1).
const DAYS: std::ops::RangeInclusive<i32> = -719_528..=2_932_896;
/// The same in milliseconds.
const MILLIS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

impl Rules {
    pub(crate) fn add_range(&mut self, min: Option<Bound>, max: Option<Bound>) {
        self.ranges.push((min, max));
    }

    /// A pattern that is no regular expression fails every value it judges: a schema is admitted without looking at
    /// patterns (4.5), and a graph that has one can still be read.
    pub(crate) fn add_check(&mut self, pattern: &str) {
        self.checks.push(Regex::new(pattern).map_err(|e| {
            // The library draws the pattern over several lines; its last line says what is wrong.
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or_default();
            format!(
                "the @check pattern {} is no regular expression: {}",
                quoted(pattern),
                reason.strip_prefix("error: ").unwrap_or(reason)
            )
        }));
    }

    /// Why a pattern can never judge a value, if one cannot.
    pub(crate) fn broken_check(&self) -> Option<&str> {
        self.checks
            .iter()
            .find_map(|check| check.as_ref().err().map(String::as_str))
    }

    /// Judge a value of the property's type; null passes, and of a list each element is judged.
    pub(crate) fn judge(&self, prop_type: &PropType, value: &Value) -> Result<(), String> {
        match value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.judge(prop_type, item)
                        .map_err(|message| format!("item {index}: {message}"))?;
                }
                Ok(())
            }
            Value::Text(text) => self.judge_text(prop_type, text),
            Value::Date(days) if !DAYS.contains(days) => Err(format!(
                "found day {days}, expected one within the years 0 to 9999"
            )),
            Value::DateTime(millis) if !MILLIS.contains(millis) => Err(format!(
                "found {millis} milliseconds, expected a time within the years 0 to 9999 (UTC)"
            )),
            _ => self.judge_number(value),
        }
    }

    fn judge_text(&self, prop_type: &PropType, text: &str) -> Result<(), String> {
        if let Some(values) = &prop_type.enum_values
            && !values.iter().any(|value| value == text)
        {
            return Err(format!(
                "found {}, expected one of {}",
                quoted(text),
                values.join(", ")
            ));
        }
        for check in &self.checks {
            match check {
                Ok(check) if check.is_match(text) => {}
                Ok(check) => {
                    return Err(format!(
                        "found {}, expected text that matches {} (@check)",
                        quoted(text),
                        quoted(check.as_str())
                    ));
                }
                Err(broken) => return Err(broken.clone()),
            }
        }
        Ok(())
    }

    fn judge_number(&self, value: &Value) -> Result<(), String> {
        let within = |(min, max): &(Option<Bound>, Option<Bound>)| {
            let side = |bound: &Option<Bound>| bound.and_then(|bound| compare(value, bound));
            side(min) != Some(Ordering::Less) && side(max) != Some(Ordering::Greater)
        };
        match self.ranges.iter().find(|range| !within(range)) {
            Some((min, max)) => Err(format!(
                "found {}, expected a number within {}..{} (@range)",
                number(value),
                bound_text(*min),
                bound_text(*max)
            )),
            None => Ok(()),
        }
    }
}

fn number(value: &Value) -> String {
    crate::value::canonical_text(value)
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn bound_text(bound: Option<Bound>) -> String {
    match bound {
        None => String::new(),
        Some(Bound::Integer(bound)) => bound.to_string(),
        Some(Bound::Float(bound)) => format!("{bound:?}"),
    }
}

/// Exact comparison of a value with a bound; `None` for what is no number.
fn compare(value: &Value, bound: Bound) -> Option<Ordering> {
    match (value, bound) {
        // The bound is rounded like the value was: 0.1 is within 0.0..0.1 for an F32 too.
        (Value::F32(value), Bound::Float(bound)) => value.partial_cmp(&(bound as f32)),
        (Value::F32(value), Bound::Integer(bound)) => {
            compare_integer(bound.into(), (*value).into()).map(Ordering::reverse)
        }
        (Value::F64(value), Bound::Float(bound)) => value.partial_cmp(&bound),
        (Value::F64(value), Bound::Integer(bound)) => {
            compare_integer(bound.into(), *value).map(Ordering::reverse)
        }
        (value, bound) => {
            let value: i128 = match value {
                Value::I32(value) => (*value).into(),
                Value::I64(value) => (*value).into(),
                Value::U32(value) => (*value).into(),
                Value::U64(value) => (*value).into(),
                _ => return None,
            };
            match bound {
                Bound::Integer(bound) => Some(value.cmp(&bound.into())),
                Bound::Float(bound) => compare_integer(value, bound),
            }
        }
    }
}

/// An integer of at most 64 bits against a float, without rounding either.
fn compare_integer(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast saturates, far outside of 64 bits.
    let whole = float.trunc() as i128;
    Some(
        integer
            .cmp(&whole)
            .then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use graph::schema::types::Scalar;

    fn prop_type(values: &[&str]) -> PropType {
        PropType {
            scalar: Scalar::String,
            nullable: false,
            list: false,
            enum_values: (!values.is_empty())
                .then(|| values.iter().map(|v| v.to_string()).collect()),
        }
    }

    #[test]
    fn ranges_compare_without_rounding() {
        use Bound::{Float, Integer};
        let big = 9_007_199_254_740_993_i64;
        let cases = [
            (Value::I32(5), Some(Integer(5)), Some(Integer(5)), true),
            (Value::I32(4), Some(Integer(5)), None, false),
            (Value::I32(6), None, Some(Integer(5)), false),
            (Value::I32(6), None, None, true),
            (Value::I64(2), Some(Float(2.5)), None, false),
            (Value::I64(3), Some(Float(2.5)), None, true),
            (Value::I64(-2), Some(Float(-2.5)), None, true),
            (Value::I64(-3), Some(Float(-2.5)), None, false),
            (Value::I64(-2), None, Some(Float(-2.5)), false),
            (Value::I64(big), None, Some(Integer(big - 1)), false),
            (Value::I64(big), None, Some(Float((big - 1) as f64)), false),
            (Value::U64(u64::MAX), None, Some(Integer(i64::MAX)), false),
            (Value::U64(u64::MAX), None, Some(Float(1e300)), true),
            (Value::U64(0), Some(Float(-1e300)), None, true),
            (Value::U32(7), Some(Integer(-1)), Some(Integer(7)), true),
            (Value::F64(0.5), Some(Integer(1)), None, false),
            (Value::F64(1.5), Some(Integer(1)), Some(Integer(1)), false),
            (Value::F64(1.0), Some(Integer(1)), Some(Integer(1)), true),
            (Value::F64(-0.5), Some(Integer(0)), None, false),
            (Value::F64(-0.0), Some(Integer(0)), None, true),
            (Value::F64(big as f64), None, Some(Integer(big - 2)), false),
            (Value::F64(0.1), Some(Float(0.1)), Some(Float(0.1)), true),
            (Value::F32(0.1), Some(Float(0.1)), Some(Float(0.1)), true),
            (Value::F32(0.11), None, Some(Float(0.1)), false),
            (Value::F32(2.5), None, Some(Integer(2)), false),
            (Value::Null, Some(Integer(1)), None, true),
            (
                Value::List(vec![Value::I32(1), Value::Null]),
                Some(Integer(1)),
                None,
                true,
            ),
            (
                Value::List(vec![Value::I32(1), Value::I32(0)]),
                Some(Integer(1)),
                None,
                false,
            ),
        ];
        for (value, min, max, passes) in cases {
            let mut rules = Rules::default();
            rules.add_range(None, None);
            rules.add_range(min, max);
            let found = rules.judge(&prop_type(&[]), &value);
            assert_eq!(
                found.is_ok(),
                passes,
                "{value:?} {min:?} {max:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_range_says_what_it_wants() {
        let mut rules = Rules::default();
        rules.add_range(Some(Bound::Float(0.5)), Some(Bound::Integer(9)));
        let list = Value::List(vec![Value::Null, Value::F64(12.0)]);
        assert_eq!(
            rules.judge(&prop_type(&[]), &list).unwrap_err(),
            "item 1: found 12, expected a number within 0.5..9 (@range)"
        );
    }

    #[test]
    fn dates_without_a_text_are_refused() {
        let judge = |value: Value| Rules::default().judge(&prop_type(&[]), &value);
        for good in [-719_528, 0, 2_932_896] {
            assert_eq!(judge(Value::Date(good)), Ok(()));
            let millis = i64::from(good) * 86_400_000;
            assert_eq!(judge(Value::DateTime(millis)), Ok(()));
        }
        assert_eq!(judge(Value::DateTime(253_402_300_799_999)), Ok(()));
        for bad in [-719_529, 2_932_897, i32::MAX] {
            assert!(judge(Value::Date(bad)).is_err(), "{bad}");
            let millis = i64::from(bad) * 86_400_000;
            assert!(
                judge(Value::List(vec![Value::DateTime(millis)])).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn checks_match_anywhere_and_enums_exactly() {
        let mut rules = Rules::default();
        rules.add_check("[0-9]+");
        rules.add_check("^a");
        let judge = |rules: &Rules, values: &[&str], text: &str| {
            rules.judge(&prop_type(values), &Value::Text(text.into()))
        };
        assert_eq!(judge(&rules, &[], "a b 7 c"), Ok(()));
        assert_eq!(
            judge(&rules, &[], "abc").unwrap_err(),
            "found \"abc\", expected text that matches \"[0-9]+\" (@check)"
        );
        assert!(judge(&rules, &[], "7a").unwrap_err().contains("\"^a\""));
        let rules = Rules::default();
        assert_eq!(judge(&rules, &["on", "off"], "off"), Ok(()));
        assert_eq!(
            judge(&rules, &["on", "off"], "Off").unwrap_err(),
            "found \"Off\", expected one of on, off"
        );
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_refused() {
        let mut broken = Rules::default();
        broken.add_check("a(b");
        let why = "the @check pattern \"a(b\" is no regular expression: unclosed group";
        assert_eq!(broken.broken_check(), Some(why));
        let judged = broken.judge(&prop_type(&[]), &Value::Text("x".into()));
        assert_eq!(judged.unwrap_err(), why);
    }
}
