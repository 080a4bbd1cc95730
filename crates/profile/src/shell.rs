//! Text for a shell. Recipes come from other people too, and lines are pasted.

/// The text as a shell takes it: one word, whatever is in it.
pub fn quoted(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_.,".contains(c);
    if text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
