//! The frame around each payload: its length, its bytes, and a checksum of each.

use crc::{CRC_32_ISCSI, Crc};

/// CRC32C, also called Castagnoli.
const CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// A payload as it stands in a file.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(payload.len() + 16);
    out.extend(length);
    out.extend(masked(&length).to_le_bytes());
    out.extend(payload);
    out.extend(masked(payload).to_le_bytes());
    out
}

/// A checksum of data that itself holds checksums is weak; so the format turns and shifts it.
fn masked(bytes: &[u8]) -> u32 {
    CRC32C.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        // RFC 3720, appendix B.4.
        assert_eq!(CRC32C.checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(CRC32C.checksum(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_frame_adds_sixteen_bytes() {
        assert_eq!(frame(b"").len(), 16);
        assert_eq!(frame(b"four").len(), 20);
    }
}
