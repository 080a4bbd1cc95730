//! Whether HTML and SVG are well-formed, as far as this crate writes them.

/// Every tag that is opened is closed, in the right order, and attributes are quoted.
pub fn check_balance(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").unwrap_or(html);
    while let Some(start) = rest.find('<') {
        let tag = &rest[start + 1..];
        let end = tag.find('>').expect("a tag ends");
        rest = &tag[end + 1..];
        let tag = &tag[..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        assert!(!tag.contains('<'), "a tag within <{tag}>");
        let name = tag.trim_matches('/').split([' ', '\n']).next().unwrap();
        assert!(
            name.chars().all(|letter| letter.is_ascii_alphanumeric()) && !name.is_empty(),
            "<{tag}>"
        );
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes nothing");
        } else if !tag.ends_with('/') && !["meta", "wbr"].contains(&name) {
            open.push(name);
        }
        // A `>` that stands alone would be text that was not escaped.
        if !open.contains(&"style") {
            let text = &rest[..rest.find('<').unwrap_or(rest.len())];
            assert!(!text.contains('>'), "{text:?}");
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    for broken in ["NaN", "inf\"", "inf,"] {
        assert!(!html.contains(broken), "{broken} in a page");
    }
}
