//! CRC-32C, turned and shifted as the format wants it.

/// Castagnoli's polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// As many bytes are looked up at once.
const STRIDE: usize = 8;

/// The table of the byte that is `n` bytes before the end of a stride stands at `n`.
static TABLES: [[u32; 256]; STRIDE] = tables();

/// The checksum of a chunk that stands for these bytes.
pub(super) fn masked_checksum(bytes: &[u8]) -> u32 {
    checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut strides = bytes.chunks_exact(STRIDE);
    for stride in &mut strides {
        let mut word = [0; STRIDE];
        word.copy_from_slice(stride);
        let word = (u64::from_le_bytes(word) ^ u64::from(crc)).to_le_bytes();
        crc = 0;
        for (at, byte) in word.iter().enumerate() {
            crc ^= TABLES[STRIDE - 1 - at][usize::from(*byte)];
        }
    }
    for byte in strides.remainder() {
        let [low, ..] = crc.to_le_bytes();
        crc = TABLES[0][usize::from(low ^ byte)] ^ (crc >> 8);
    }
    !crc
}

const fn tables() -> [[u32; 256]; STRIDE] {
    let mut tables = [[0; 256]; STRIDE];
    let mut crc_of: u32 = 0;
    let mut at = 0;
    while at < 256 {
        let mut crc = crc_of;
        let mut bit = 0;
        while bit < 8 {
            crc = match crc & 1 {
                1 => (crc >> 1) ^ POLYNOMIAL,
                _ => crc >> 1,
            };
            bit += 1;
        }
        tables[0][at] = crc;
        at += 1;
        crc_of += 1;
    }
    let mut table = 1;
    while table < STRIDE {
        let mut at = 0;
        while at < 256 {
            let crc: u32 = tables[table - 1][at];
            let [low, ..] = crc.to_le_bytes();
            tables[table][at] = tables[0][low as usize] ^ (crc >> 8);
            at += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit.
    fn naive(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
                1 => (crc >> 1) ^ POLYNOMIAL,
                _ => crc >> 1,
            })
        })
    }

    #[test]
    fn the_checksum_is_the_one_of_the_format() {
        // CRC-32C of "123456789" is e3069283, by RFC 3720's polynomial.
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(
            masked_checksum(b"123456789"),
            0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8)
        );
        // The chunk in which nats-server says PONG.
        assert_eq!(
            masked_checksum(b"PONG\r\n").to_le_bytes(),
            [0xf5, 0x6f, 0x1b, 0xe4]
        );
    }

    proptest! {
        #[test]
        fn strides_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(checksum(&bytes), naive(&bytes));
        }
    }
}
