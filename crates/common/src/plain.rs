//! Text of strangers, for a terminal.

use std::borrow::Cow;

/// The text with what would move the cursor, change colours or turn the direction of writing shown
/// as escapes. Lines and tabs stay.
///
/// ```
/// assert_eq!(xla_gym_common::plain("red:\u{1b}[31m\n"), "red:\\u{1b}[31m\n");
/// ```
pub fn plain(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t'))
}

/// The same in one line.
///
/// ```
/// assert_eq!(xla_gym_common::plain_line("two\nlines"), "two\\nlines");
/// ```
pub fn plain_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| true)
}

fn escape(text: &str, also: fn(char) -> bool) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && also(c) || is_direction(c);
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Characters that let text look like another.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_instead() {
        for (text, lines, line) in [
            ("größer → 2 µs", "größer → 2 µs", "größer → 2 µs"),
            ("a\tb\n", "a\tb\n", "a\\tb\\n"),
            ("\u{1b}[2Jx\r", "\\u{1b}[2Jx\\r", "\\u{1b}[2Jx\\r"),
            ("\u{9b}0m\u{202e}", "\\u{9b}0m\\u{202e}", "\\u{9b}0m\\u{202e}"),
        ] {
            assert_eq!((plain(text), plain_line(text)), (lines.into(), line.into()));
        }
    }
}
