//! Large numbers as people read them.

/// A number with commas between thousands.
///
/// ```
/// assert_eq!(xla_gym_common::grouped(1234567_u64), "1,234,567");
/// ```
pub fn grouped(value: impl Into<u128>) -> String {
    let digits = value.into().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
