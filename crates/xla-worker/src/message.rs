//! XLA's parse errors, put so that a person finds the place.

/// `line 3, column 7: expects '='`, with the offending line, from XLA's text; other errors
/// without XLA's status code in front.
pub fn readable(error: &str) -> String {
    let error = strip_status(error);
    match parse_error(error) {
        Some(text) => text,
        None => error.trim().to_owned(),
    }
}

fn strip_status(error: &str) -> &str {
    match error.split_once(": ") {
        Some((code, rest)) if code.chars().all(|c| c.is_ascii_uppercase() || c == '_') => rest,
        _ => error,
    }
}

/// XLA reports several errors for one; the first is the cause.
fn parse_error(error: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn the_first_place_is_named() {
        let xla = "INVALID_ARGUMENT: Syntax error when trying to parse the text as a HloModule:\n\
                   was parsing 3:7: error: expects '=' in instruction\n  a b\n    ^\n\
                   was parsing 2:1: error: something later\n";
        assert_eq!(readable(xla), "line 3, column 7: expects '=' in instruction\n  a b");
        assert_eq!(readable("INTERNAL: no such thing"), "no such thing");
        assert_eq!(readable("plain words"), "plain words");
    }
}
