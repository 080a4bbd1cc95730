//! What is counted or measured of a program.

use serde::{Deserialize, Serialize};

use crate::numbers::{ABSENT, amount, compact, signed_amount};

/// What is counted or measured of a program; less of it is better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// What programs call it.
    pub name: String,
    /// What people call it: `instructions`, or `text size`.
    pub label: String,
    /// What its values are numbers of, such as `bytes`. Empty where the label says it: what is
    /// counted has no unit.
    pub unit: String,
}

impl Metric {
    /// With its names and its unit.
    pub fn new(
        name: impl Into<String>,
        label: impl Into<String>,
        unit: impl Into<String>,
    ) -> Metric {
        Metric { name: name.into(), label: label.into(), unit: unit.into() }
    }

    /// What its values are numbers of, with its name: `instructions`, or `bytes of text size`.
    pub(crate) fn things(&self) -> String {
        let Metric { label, unit, .. } = self;
        match (label.as_str(), unit.as_str()) {
            ("", "") => "units".to_owned(),
            (label, "") => label.to_owned(),
            ("", unit) => unit.to_owned(),
            (label, unit) if label == unit => label.to_owned(),
            (label, unit) => format!("{unit} of {label}"),
        }
    }

    /// Whether it is a count of something.
    pub(crate) fn is_count(&self) -> bool {
        self.unit.is_empty()
    }

    /// A value in a column beside others: all digits of a count, few of anything else.
    pub(crate) fn in_column(&self, value: Option<f64>) -> String {
        if self.is_count() { known(value) } else { value.map_or(ABSENT.to_owned(), compact) }
    }
}

/// A value with all of its digits, if it is known.
pub(crate) fn known(value: Option<f64>) -> String {
    value.map_or(ABSENT.to_owned(), amount)
}

/// A difference with its sign, if both values are known.
pub(crate) fn change(after: Option<f64>, before: Option<f64>) -> String {
    match (after, before) {
        (Some(after), Some(before)) => signed_amount(after - before),
        _ => ABSENT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_from_amounts_of_a_unit() {
        let check = |label: &str, unit: &str, things: &str, value: &str| {
            let metric = Metric::new("m", label, unit);
            assert_eq!(metric.things(), things);
            assert_eq!(metric.in_column(Some(12_345.0)), value);
            assert_eq!(metric.in_column(None), ABSENT);
        };
        check("instructions", "", "instructions", "12,345");
        check("text size", "bytes", "bytes of text size", "12.3 k");
        check("bytes", "bytes", "bytes", "12.3 k");
        assert_eq!(change(Some(7.0), Some(10.0)), "−3");
        assert_eq!(change(Some(10.5), Some(7.0)), "+3.500");
        assert_eq!(change(None, Some(7.0)), ABSENT);
    }
}
