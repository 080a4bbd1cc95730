//! XLA's parse errors, put so that a person finds the place.

/// `line 3, column 7: expects '='`, with the offending line, from XLA's text; other errors
/// without XLA's status code in front.
pub fn readable(error: &str) -> String {
    let error = strip_wrapping(error);
    hlo_error(error).or_else(|| stablehlo_error(error)).unwrap_or_else(|| match error.trim() {
        // XLA refuses some text, such as a negative dimension, without a word.
        text if text.ends_with("as a HloModule:") => {
            "the HLO text has an error, and XLA does not say where".to_owned()
        }
        text => text.to_owned(),
    })
}

/// Takes away what says something about XLA or this program, not about the input.
fn strip_wrapping(mut error: &str) -> &str {
    loop {
        error = match error.split_once(": ") {
            Some(("Bad StatusOr access" | "during context [xla-gym]", rest)) => rest,
            Some((code, rest)) if code.chars().all(|c| c.is_ascii_uppercase() || c == '_') => rest,
            _ => return error,
        }
    }
}

/// XLA reports several errors for one; the first is the cause.
fn hlo_error(error: &str) -> Option<String> {
    const START: &str = "was parsing ";
    let rest = &error[error.find(START)? + START.len()..];
    let (position, rest) = rest.split_once(": error: ")?;
    let (line, column) = position.split_once(':')?;
    let mut lines = rest.lines();
    let message = lines.next()?.trim();
    let source = lines.next().unwrap_or_default().trim();
    let mut text = format!("line {line}, column {column}: {message}");
    if !source.is_empty() && !source.starts_with("LINE OUT OF RANGE") {
        let shown: String = source.chars().take(160).collect();
        text.push_str(&format!("\n  {shown}"));
    }
    Some(text)
}

/// MLIR's errors. Those in text have a place, and what follows the first are consequences;
/// bytecode has none, and the version that wrote it, which follows, may be the cause.
fn stablehlo_error(error: &str) -> Option<String> {
    let (position, rest) = error.strip_prefix("-:")?.split_once(": error: ")?;
    let mut lines = rest.lines();
    let message = lines.next()?.trim();
    if position != "0:0" {
        let (line, column) = position.split_once(':')?;
        return Some(format!("line {line}, column {column}: {message}"));
    }
    let notes =
        lines.map(|line| match line.split_once(": note: ").or(line.split_once(": error: ")) {
            Some((_, note)) => note,
            None => line,
        });
    Some(std::iter::once(message).chain(notes).collect::<Vec<_>>().join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::readable;

    fn check(xla: &str, expected: &str) {
        assert_eq!(readable(xla), expected);
    }

    #[test]
    fn the_first_place_is_named() {
        check(
            "INVALID_ARGUMENT: Syntax error when trying to parse the text as a HloModule:\n\
             was parsing 3:7: error: expects '=' in instruction\n  a b\n    ^\n\
             was parsing 2:1: error: something later\n",
            "line 3, column 7: expects '=' in instruction\n  a b",
        );
        check(
            "INVALID_ARGUMENT: -:3:10: error: custom op 'x' is unknown\n\
             <unknown>:0: error: Failed to parse using StableHLO v1\n",
            "line 3, column 10: custom op 'x' is unknown",
        );
    }

    #[test]
    fn errors_without_a_place_are_kept() {
        check("INTERNAL: no such thing", "no such thing");
        check("plain words", "plain words");
        check("Bad StatusOr access: INVALID_ARGUMENT: overflow", "overflow");
        check(
            "INTERNAL: during context [xla-gym]: Shapes differ: a and b",
            "Shapes differ: a and b",
        );
        check(
            "-:0:0: error: invalid index\n-:0:0: note: produced by v2\n<unknown>:0: error: too new",
            "invalid index\n  produced by v2\n  too new",
        );
        check(
            "INVALID_ARGUMENT: Syntax error when trying to parse the text as a HloModule:\n",
            "the HLO text has an error, and XLA does not say where",
        );
    }
}
