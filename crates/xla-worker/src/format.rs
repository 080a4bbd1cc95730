//! Which of XLA's program formats a file is in, told by its content: file names lie.

/// The formats that XLA reads.
#[derive(Debug, PartialEq, Eq)]
pub enum Format {
    /// `HloModule name, ...`
    HloText,
    /// MLIR text or bytecode.
    StableHlo,
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
            // Text that is neither is most likely HLO text with an error in its first line;
            // XLA's parser says where.
            _ if looks_like_text(text) => Format::HloText,
            _ => Format::Proto,
        }
    }
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
        check(b"hello, world", Format::HloText);
        check(&[0xde, 0xad, 0xbe, 0xef], Format::Proto);
    }
}
