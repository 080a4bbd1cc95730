//! FNV-1a: a hash that is the same in every process and on every machine.
//!
//! It tells things apart, and is no guard against malice.

/// 64 bits of FNV-1a over bytes.
///
/// ```
/// assert_eq!(xla_gym_common::fnv64(*b"foobar"), 0x85944171f73967e8);
/// ```
pub fn fnv64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.into_iter().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// 128 bits of FNV-1a over bytes.
///
/// ```
/// assert_eq!(xla_gym_common::fnv128(*b"foobar"), 0x343e1662793c64bf6f0d3597ba446f18);
/// ```
pub fn fnv128(bytes: impl IntoIterator<Item = u8>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.into_iter().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the inventors publish.
    #[test]
    fn known_hashes_come_out() {
        for (text, short, long) in [
            ("", 0xcbf29ce484222325, 0x6c62272e07bb014262b821756295c58d),
            ("a", 0xaf63dc4c8601ec8c, 0xd228cb696f1a8caf78912b704e4a8964),
        ] {
            assert_eq!((fnv64(text.bytes()), fnv128(text.bytes())), (short, long), "{text:?}");
        }
    }
}
