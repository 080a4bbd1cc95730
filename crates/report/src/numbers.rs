//! Numbers as people read them.

pub use xla_gym_common::grouped;

/// What stands for a figure that is not there.
pub const ABSENT: &str = "–";

/// A difference: always with its sign, unless it is 0.
pub fn signed(value: impl Into<i128>) -> String {
    let value = value.into();
    let sign = match value {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", grouped(value.unsigned_abs()))
}

/// A difference of any figures: likewise.
pub fn signed_amount(value: f64) -> String {
    if value > 0.0 { format!("+{}", amount(value)) } else { amount(value) }
}

/// With a capital, for the beginning of a sentence or a heading.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Any figure, with about four digits that count, and all digits of whole numbers. What is
/// longer than a quadrillion is written with an exponent, so that no table bursts.
pub fn amount(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if size >= 1e15 || (size > 0.0 && size < 1e-3) {
        return format!("{value:.3e}").replace('-', "−");
    }
    let decimals = if size.fract() == 0.0 || size >= 1000.0 {
        0
    } else if size >= 100.0 {
        1
    } else if size >= 10.0 {
        2
    } else if size >= 1.0 {
        3
    } else {
        4
    };
    let plain = format!("{size:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole = grouped(whole.parse::<u64>().unwrap_or_default());
    let sign = if value < 0.0 { "−" } else { "" };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A ratio, with three decimals.
pub fn ratio(value: f64) -> String {
    if value.abs() < 1e4 { format!("{value:.3}").replace('-', "−") } else { amount(value) }
}

/// A share of everything as a percentage: of what is not quite everything, never 100%.
pub fn share(share: f64) -> String {
    if !share.is_finite() {
        return ABSENT.to_owned();
    }
    let whole = (share * 100.0).round();
    format!("{:.0}%", if share < 1.0 { whole.min(99.0) } else { whole })
}

/// Three digits and a letter, for columns that must stay narrow.
pub fn compact(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if size < 1000.0 {
        return amount((value * 10.0).round() / 10.0);
    }
    // What would round up to 1000 belongs to the next letter.
    let letters = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)];
    match letters.iter().find(|(_, unit)| size / unit < 999.5) {
        Some((letter, unit)) => format!("{} {letter}", three_digits(value / unit)),
        None => amount(value),
    }
}

/// A time given in nanoseconds.
pub fn duration(nanos: f64) -> String {
    let size = nanos.abs();
    if !nanos.is_finite() {
        return ABSENT.to_owned();
    }
    if size == 0.0 {
        return "0 s".to_owned();
    }
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
    match units.iter().find(|(_, unit)| size / unit < 999.5) {
        Some((name, unit)) => format!("{} {name}", three_digits(nanos / unit)),
        None if size < 1e12 => format!("{} s", three_digits(nanos / 1e9)),
        None => format!("{} s", amount((nanos / 1e9).round())),
    }
}

/// The change from `before` to `after` as a share of `before`, without a sign.
pub fn percent(before: f64, after: f64) -> Option<String> {
    let share = ((after - before) / before).abs() * 100.0;
    if !share.is_finite() {
        return None;
    }
    // Of small shares the first two digits that count.
    let decimals = (1.0 - share.log10().floor()).clamp(1.0, 9.0) as usize;
    Some(match share {
        0.0 => "0%".to_owned(),
        small if small < 0.1 => format!("{small:.decimals$}%"),
        small if small < 100.0 => format!("{small:.1}%"),
        large => format!("{}%", amount(large.round())),
    })
}

/// Whether `result` is smaller or larger than `default`; rounding in the last digits is neither.
pub fn compare(default: f64, result: f64) -> std::cmp::Ordering {
    let noise = 1e-12 * default.abs().max(result.abs());
    if !(default.is_finite() && result.is_finite()) || (default - result).abs() <= noise {
        std::cmp::Ordering::Equal
    } else {
        result.total_cmp(&default)
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (value, expected) in cases {
            assert_eq!(grouped(value), expected);
        }
        assert_eq!(signed(-1234), "−1,234");
        assert_eq!(signed(7), "+7");
        assert_eq!(signed(0), "0");
        for (value, expected) in [(-1234.0, "−1,234"), (7.0, "+7"), (0.0, "0"), (-0.0, "0")] {
            assert_eq!(signed_amount(value), expected);
        }
    }

    #[test]
    fn amounts_keep_what_counts() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1234567.0, "1,234,567"),
            (1234567.8, "1,234,568"),
            (-12.345, "−12.35"),
            (1.0423, "1.042"),
            (0.00001, "1.000e−5"),
            (3e20, "3.000e20"),
            (f64::NAN, ABSENT),
        ];
        for (value, expected) in cases {
            assert_eq!(amount(value), expected, "{value}");
        }
    }

    #[test]
    fn all_but_one_is_not_all() {
        for (value, expected) in
            [(1.0, "100%"), (0.999, "99%"), (0.5, "50%"), (0.0, "0%"), (f64::NAN, ABSENT)]
        {
            assert_eq!(share(value), expected, "{value}");
        }
    }

    #[test]
    fn ratios_have_three_decimals() {
        for (value, expected) in
            [(1.0, "1.000"), (-0.3641, "−0.364"), (f64::NAN, ABSENT), (1e300, "1.000e300")]
        {
            assert_eq!(ratio(value), expected, "{value}");
        }
    }

    #[test]
    fn short_forms_never_overflow_their_unit() {
        assert_eq!(compact(999.96), "1,000");
        assert_eq!(compact(999_600.0), "1.00 M");
        assert_eq!(compact(12_345.0), "12.3 k");
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(duration(999_600.0), "1.00 ms");
        assert_eq!(duration(1.5e9), "1.50 s");
        assert_eq!(duration(5e12), "5,000 s");
        assert_eq!(duration(f64::INFINITY), ABSENT);
    }

    #[test]
    fn shares_of_nothing_are_not_given() {
        assert_eq!(percent(0.0, 3.0), None);
        assert_eq!(percent(0.0, 0.0), None);
        assert_eq!(percent(200.0, 190.0).as_deref(), Some("5.0%"));
        assert_eq!(percent(1e6, 1e6 - 1.0).as_deref(), Some("0.00010%"));
    }
}
