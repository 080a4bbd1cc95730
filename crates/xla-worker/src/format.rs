//! Which of XLA's program formats a file is in, told by its content: file names lie.

/// The formats that XLA reads.
#[derive(Debug, PartialEq, Eq)]
pub enum Format {
    /// `HloModule name, ...`
    HloText,
    /// MLIR text or bytecode.
    StableHlo,
    /// Text without the beginning of either; XLA reads bare instructions, too.
    OtherText,
    /// A serialised `HloModuleProto` or `HloProto`.
    Proto,
    /// Nothing but white space.
    Empty,
}

/// How MLIR bytecode starts.
const MLIR_MAGIC: &[u8] = b"ML\xefR";

impl Format {
    /// Looks at the first bytes, past white space and `//` comments.
    pub fn of(bytes: &[u8]) -> Format {
        if bytes.starts_with(MLIR_MAGIC) {
            return Format::StableHlo;
        }
        let text = skip_blank_and_comments(bytes);
        match text {
            [] => Format::Empty,
            _ if text.starts_with(b"HloModule") => Format::HloText,
            _ if [&b"module"[..], b"#", b"func.func", b"\"builtin.module\"", b"!"]
                .iter()
                .any(|start| text.starts_with(start)) =>
            {
                Format::StableHlo
            }
            _ if looks_like_text(text) => Format::OtherText,
            _ => Format::Proto,
        }
    }
}

/// The first line of HLO text with a constant whose value was left out, as XLA prints large ones
/// unless asked not to.
pub fn elided_constant(text: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(text);
    if !text.contains("{...}") {
        return None;
    }
    let elided = |line: &str| {
        let value = line.split_once("constant(").map_or("", |(_, rest)| rest);
        // Quoted text is metadata.
        value.split('"').next().is_some_and(|value| value.contains("{...}"))
    };
    text.lines().position(elided).map(|index| index + 1)
}

fn skip_blank_and_comments(mut bytes: &[u8]) -> &[u8] {
    loop {
        bytes = bytes.trim_ascii_start();
        if !bytes.starts_with(b"//") {
            return bytes;
        }
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
        bytes = &bytes[end..];
    }
}

fn looks_like_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    head.iter().all(|&byte| byte >= b' ' && byte != 0x7f || byte.is_ascii_whitespace())
        && !matches!(std::str::from_utf8(head), Err(error) if error.error_len().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Format) {
        assert_eq!(Format::of(bytes), expected, "{}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn formats_are_told_by_content() {
        check(b"HloModule jit_f, entry_computation_layout={}", Format::HloText);
        check(b"\n // a comment\nHloModule jit_f", Format::HloText);
        check(b"module @jit_f attributes {", Format::StableHlo);
        check(b"#loc = loc(unknown)\nmodule {}", Format::StableHlo);
        check(b"ML\xefR\x03MLIR", Format::StableHlo);
        check(b"\x0a\x05jit_f\x12\x04main", Format::Proto);
        check(b"", Format::Empty);
        check(b" \n\t// nothing else", Format::Empty);
        check(b"hello, world", Format::OtherText);
        check(&[0xde, 0xad, 0xbe, 0xef], Format::Proto);
    }

    #[test]
    fn constants_without_their_value_are_found() {
        let line = |text: &str| elided_constant(text.as_bytes());
        assert_eq!(line("HloModule m\n a = f32[2] constant({1, 2})\n"), None);
        assert_eq!(line("HloModule m\n\n a = f32[2] constant({...})\n"), Some(3));
        assert_eq!(line("a = (f32[], f32[9]) constant((1, {...}))"), Some(1));
        assert_eq!(line("a = f32[] constant(1), metadata={op_name=\"{...}\"}"), None);
    }
}
