//! SplitMix64: numbers that have nothing to do with one another.

/// A step of SplitMix64: neighbouring numbers become numbers that have nothing to do with one
/// another, and no two become the same.
///
/// ```
/// use xla_gym_common::splitmix;
///
/// // A number for the fourth item of the ninth draw, whatever else was drawn before.
/// let luck = splitmix(splitmix(9) ^ 4);
/// assert_ne!(luck, splitmix(splitmix(9) ^ 5));
/// ```
pub fn splitmix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::splitmix;

    /// The first numbers of the reference implementation with seed 0.
    #[test]
    fn it_is_splitmix() {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let numbers = [0, 1, 2].map(|index| splitmix(STEP.wrapping_mul(index)));
        assert_eq!(numbers, [0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f]);
    }
}
