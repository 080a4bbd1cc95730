//! Element types: how wide they are, what their bits mean, and which value comes next.

use half::{bf16, f16};

/// An element type, by the compiler's lower-case name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// What sort of values.
    pub kind: Kind,
    /// Bytes of one element in memory; for complex types, of one part.
    pub width: usize,
    /// Parts of one element: 2 for complex types.
    pub parts: usize,
}

/// What sort of values an element type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floating point; complex types are two of these.
    Float(Format),
    /// Integers of so many bits.
    Integer {
        /// Whether negative ones exist.
        signed: bool,
        /// How many bits count; the memory may be wider.
        bits: u32,
    },
    /// Booleans, one a byte.
    Predicate,
    /// Anything else is compared and made by its bytes.
    Opaque,
}

/// How a floating-point type is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
    /// What is subtracted from the exponent.
    pub bias: i32,
    /// Which patterns are infinite or NaN.
    pub special: Special,
}

/// Which patterns of a format are infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The highest exponent, as IEEE 754 has it.
    Ieee,
    /// Only the highest pattern, of either sign, is NaN; nothing is infinite.
    HighestIsNan,
    /// Only minus zero is NaN; nothing is infinite.
    MinusZeroIsNan,
    /// Every pattern is a number.
    None,
    /// Powers of two without sign or zero; the highest pattern is NaN.
    Scale,
}

const fn format(exponent: u32, fraction: u32, bias: i32, special: Special) -> Kind {
    Kind::Float(Format { exponent, fraction, bias, special })
}

impl Element {
    /// The element type of a name; unknown names are opaque bytes.
    pub fn of(dtype: &str) -> Element {
        use Special::*;
        let ieee = |exponent, fraction, bias| format(exponent, fraction, bias, Ieee);
        let (kind, width, parts) = match dtype {
            "f64" => (ieee(11, 52, 1023), 8, 1),
            "f32" => (ieee(8, 23, 127), 4, 1),
            "c64" => (ieee(8, 23, 127), 4, 2),
            "c128" => (ieee(11, 52, 1023), 8, 2),
            "bf16" => (ieee(8, 7, 127), 2, 1),
            "f16" => (ieee(5, 10, 15), 2, 1),
            "f8e5m2" => (ieee(5, 2, 15), 1, 1),
            "f8e4m3" => (ieee(4, 3, 7), 1, 1),
            "f8e3m4" => (ieee(3, 4, 3), 1, 1),
            "f8e4m3fn" => (format(4, 3, 7, HighestIsNan), 1, 1),
            "f8e4m3b11fnuz" => (format(4, 3, 11, MinusZeroIsNan), 1, 1),
            "f8e4m3fnuz" => (format(4, 3, 8, MinusZeroIsNan), 1, 1),
            "f8e5m2fnuz" => (format(5, 2, 16, MinusZeroIsNan), 1, 1),
            "f4e2m1fn" => (format(2, 1, 1, None), 1, 1),
            "f8e8m0fnu" => (format(8, 0, 127, Scale), 1, 1),
            "pred" => (Kind::Predicate, 1, 1),
            other => match (other.chars().next(), other.get(1..).map(str::parse::<u32>)) {
                (Some(sign @ ('s' | 'u')), Some(Ok(bits @ 1..=64))) => {
                    let kind = Kind::Integer { signed: sign == 's', bits };
                    (kind, bits.div_ceil(8).next_power_of_two() as usize, 1)
                }
                _ => (Kind::Opaque, 1, 1),
            },
        };
        Element { kind, width, parts }
    }

    /// Bytes of one element, all parts together.
    pub fn bytes(&self) -> usize {
        self.width * self.parts
    }

    /// The format, if values are floating point.
    pub fn float(&self) -> Option<Format> {
        match self.kind {
            Kind::Float(format) => Some(format),
            _ => None,
        }
    }

    /// The numbers in an array of this type, parts of complex ones one after the other. Integers of
    /// 64 bits may lose their last bits here: compare them by their bytes.
    pub fn values(&self, bytes: &[u8]) -> Vec<f64> {
        match self.kind {
            Kind::Float(format) => match (format.exponent, format.fraction) {
                (11, 52) => bytes.chunks_exact(8).map(|raw| f64::from_bits(word(raw))).collect(),
                (8, 23) => bytes
                    .chunks_exact(4)
                    .map(|raw| f32::from_bits(word(raw) as u32).into())
                    .collect(),
                (8, 7) => bytes
                    .chunks_exact(2)
                    .map(|raw| f32::from_bits((word(raw) as u32) << 16).into())
                    .collect(),
                _ => bytes.chunks_exact(self.width).map(|raw| format.decode(word(raw))).collect(),
            },
            Kind::Integer { signed, bits } => {
                bytes.chunks_exact(self.width).map(|raw| integer(word(raw), signed, bits)).collect()
            }
            Kind::Predicate | Kind::Opaque => bytes.iter().map(|&byte| byte.into()).collect(),
        }
    }

    /// Appends the nearest value of this type.
    pub fn push(&self, value: f64, bytes: &mut Vec<u8>) {
        let bits = match self.kind {
            Kind::Float(format) => match (format.exponent, format.fraction) {
                (11, 52) => value.to_bits(),
                (8, 23) => (value as f32).to_bits().into(),
                (8, 7) => bf16::from_f64(value).to_bits().into(),
                (5, 10) => f16::from_f64(value).to_bits().into(),
                _ => format.encode(value),
            },
            Kind::Integer { .. } => (value as i64) as u64,
            Kind::Predicate | Kind::Opaque => u64::from(value != 0.0),
        };
        // Of a known size, which is faster.
        match self.width {
            4 => bytes.extend((bits as u32).to_le_bytes()),
            2 => bytes.extend((bits as u16).to_le_bytes()),
            _ => bytes.extend(&bits.to_le_bytes()[..self.width]),
        }
    }
}

fn word(raw: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..raw.len()].copy_from_slice(raw);
    u64::from_le_bytes(word)
}

fn integer(word: u64, signed: bool, bits: u32) -> f64 {
    let unused = 64 - bits;
    if signed {
        ((word << unused) as i64 >> unused) as f64
    } else {
        (word << unused >> unused) as f64
    }
}

impl Format {
    /// How far apart the numbers near 1 are.
    pub fn epsilon(&self) -> f64 {
        2f64.powi(-(self.fraction as i32))
    }

    /// The smallest positive number that has all bits of its fraction.
    pub fn smallest_normal(&self) -> f64 {
        2f64.powi(1 - self.bias)
    }

    /// The largest finite number.
    pub fn largest(&self) -> f64 {
        let highest = self.magnitude_mask();
        self.decode(match self.special {
            // One below infinity.
            Special::Ieee => highest - (1 << self.fraction),
            Special::HighestIsNan | Special::Scale => highest - 1,
            Special::MinusZeroIsNan | Special::None => highest,
        })
    }

    fn magnitude_mask(&self) -> u64 {
        (1 << (self.exponent + self.fraction)) - 1
    }

    fn has_sign(&self) -> bool {
        self.special != Special::Scale
    }

    /// The number that a pattern of bits stands for.
    pub fn decode(&self, bits: u64) -> f64 {
        let magnitude = bits & self.magnitude_mask();
        if self.special == Special::Scale {
            return if magnitude == 255 {
                f64::NAN
            } else {
                2f64.powi(magnitude as i32 - self.bias)
            };
        }
        let negative = bits >> (self.exponent + self.fraction) & 1 == 1;
        let sign = if negative { -1.0 } else { 1.0 };
        let exponent = (magnitude >> self.fraction) as i32;
        let fraction = (magnitude & ((1 << self.fraction) - 1)) as f64 * self.epsilon();
        match self.special {
            Special::Ieee if exponent == (1 << self.exponent) - 1 => {
                return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
            }
            Special::HighestIsNan if magnitude == self.magnitude_mask() => return f64::NAN,
            Special::MinusZeroIsNan if negative && magnitude == 0 => return f64::NAN,
            _ => {}
        }
        sign * match exponent {
            0 => fraction * self.smallest_normal(),
            _ => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        }
    }

    /// The pattern of the nearest number, of the largest one where a value is too large. For narrow
    /// formats, by halving.
    fn encode(&self, value: f64) -> u64 {
        let sign =
            if value < 0.0 && self.has_sign() { 1 << (self.exponent + self.fraction) } else { 0 };
        let wanted = value.abs();
        let (mut low, mut high) = (0, self.magnitude_mask());
        while low < high {
            let middle = (low + high).div_ceil(2);
            // NaN and infinity lie above every number.
            if self.decode(middle) <= wanted { low = middle } else { high = middle - 1 }
        }
        let above = self.decode(low + 1);
        let up = low < self.magnitude_mask()
            && above.is_finite()
            && (above - wanted) < (wanted - self.decode(low));
        let magnitude = low + u64::from(up);
        if magnitude == 0 { 0 } else { sign | magnitude }
    }

    /// The pattern one unit in the last place further from zero, or nearer to it. Zero, infinity and
    /// NaN stay; nothing becomes one of them.
    pub fn neighbor(&self, bits: u64, away: bool) -> u64 {
        if self.special == Special::Ieee {
            let magnitude = bits & self.magnitude_mask();
            let infinite = ((1 << self.exponent) - 1) << self.fraction;
            let stays = match away {
                true => magnitude + 1 >= infinite,
                false => magnitude <= 1,
            };
            if magnitude == 0 || magnitude >= infinite || stays {
                return bits;
            }
            return if away { bits + 1 } else { bits - 1 };
        }
        let value = self.decode(bits);
        if value == 0.0 || !value.is_finite() {
            return bits;
        }
        let moved = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
        let moved_value = self.decode(moved);
        if moved_value == 0.0 || !moved_value.is_finite() { bits } else { moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(dtype: &str, bits: u64) -> f64 {
        Element::of(dtype).float().unwrap().decode(bits)
    }

    /// Values from the definitions of the formats.
    #[test]
    fn every_format_is_read_as_it_is_defined() {
        for (dtype, bits, value) in [
            ("f16", 0x3c00, 1.0),
            ("f16", 0xb800, -0.5),
            ("f16", 0x7c00, f64::INFINITY),
            ("f16", 0x0001, 2f64.powi(-24)),
            ("bf16", 0x3f80, 1.0),
            ("bf16", 0xff80, f64::NEG_INFINITY),
            ("f8e4m3fn", 0x38, 1.0),
            ("f8e4m3fn", 0x7e, 448.0),
            ("f8e4m3", 0x77, 240.0),
            ("f8e4m3", 0x78, f64::INFINITY),
            ("f8e5m2", 0x7b, 57344.0),
            ("f8e5m2fnuz", 0x7f, 57344.0),
            ("f8e4m3fnuz", 0x7f, 240.0),
            ("f8e4m3b11fnuz", 0x7f, 30.0),
            ("f8e3m4", 0x6f, 15.5),
            ("f8e8m0fnu", 0x7f, 1.0),
            ("f4e2m1fn", 0x7, 6.0),
            ("f4e2m1fn", 0x9, -0.5),
        ] {
            assert_eq!(decode(dtype, bits), value, "{dtype} {bits:#x}");
        }
        for (dtype, bits) in
            [("f16", 0x7e00), ("f8e4m3fn", 0x7f), ("f8e4m3fnuz", 0x80), ("f8e8m0fnu", 0xff)]
        {
            assert!(decode(dtype, bits).is_nan(), "{dtype} {bits:#x}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for dtype in [
            "f64",
            "f32",
            "bf16",
            "f16",
            "f8e5m2",
            "f8e4m3",
            "f8e3m4",
            "f8e4m3fn",
            "f8e4m3b11fnuz",
            "f8e4m3fnuz",
            "f8e5m2fnuz",
            "f4e2m1fn",
            "s8",
            "s32",
            "s64",
        ] {
            let element = Element::of(dtype);
            let mut bytes = Vec::new();
            for value in [0.0, 1.0, -1.0, 2.0, 3.0, -4.0] {
                element.push(value, &mut bytes);
            }
            assert_eq!(element.values(&bytes), [0.0, 1.0, -1.0, 2.0, 3.0, -4.0], "{dtype}");
        }
        // To the nearest, and never to infinity where there is none.
        let f8 = Element::of("f8e4m3fn").float().unwrap();
        assert_eq!(f8.decode(f8.encode(1.05)), 1.0);
        assert_eq!(f8.decode(f8.encode(1.07)), 1.125);
        assert_eq!(f8.decode(f8.encode(-1e9)), -448.0);
    }

    #[test]
    fn integers_have_their_width_and_sign() {
        for (dtype, width) in [("s4", 1), ("u8", 1), ("s16", 2), ("u32", 4), ("s64", 8), ("u2", 1)]
        {
            assert_eq!(Element::of(dtype).bytes(), width, "{dtype}");
        }
        assert_eq!(Element::of("s4").values(&[0x0f, 0x07]), [-1.0, 7.0]);
        assert_eq!(Element::of("u4").values(&[0x0f]), [15.0]);
        assert_eq!(Element::of("c64").bytes(), 8);
    }

    #[test]
    fn the_largest_number_is_finite_and_nothing_is_between_it_and_the_end() {
        for (dtype, largest) in [
            ("f64", f64::MAX),
            ("f32", f32::MAX.into()),
            ("f16", 65504.0),
            ("f8e4m3fn", 448.0),
            ("f8e5m2", 57344.0),
            ("f8e4m3fnuz", 240.0),
            ("f4e2m1fn", 6.0),
        ] {
            assert_eq!(Element::of(dtype).float().unwrap().largest(), largest, "{dtype}");
        }
    }

    #[test]
    fn neighbours_are_one_unit_apart_and_stay_finite() {
        let f32s = Element::of("f32").float().unwrap();
        let one = u64::from(1f32.to_bits());
        assert_eq!(f32s.decode(f32s.neighbor(one, true)), f64::from(1.0 + f32::EPSILON));
        let most = u64::from(f32::MAX.to_bits());
        assert_eq!(f32s.neighbor(most, true), most);
        assert_eq!(f32s.neighbor(0, true), 0);
        let f8 = Element::of("f8e4m3fn").float().unwrap();
        assert_eq!(f8.decode(f8.neighbor(0x38, false)), 0.9375);
        assert_eq!(f8.neighbor(0x7e, true), 0x7e);
    }
}
