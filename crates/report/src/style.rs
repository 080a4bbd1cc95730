//! The style sheets. They are parts, because a figure that stands alone in a file needs only some.

/// The colours, light, dark and printed.
pub const COLOURS: &str = include_str!("style/colours.css");
/// Everything on a page but its charts.
pub const PAGE: &str = include_str!("style/page.css");
/// Charts.
pub const CHART: &str = include_str!("style/chart.css");
/// Charts with many series, and what else is on the page of results.
pub const RESULTS: &str = include_str!("style/results.css");

/// The rules of a figure that stands alone. Programs other than browsers know no variables, so
/// the colours stand where they are used.
pub fn standalone() -> String {
    let rules = [CHART, RESULTS].concat();
    let (light, dark) = (resolved(&rules, &colours(1)), resolved(&rules, &colours(2)));
    format!(
        "text {{ font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', \
         sans-serif; }}\n{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    )
}

/// Names and values of the colours in a block of their sheet: 1 is light, 2 is dark.
fn colours(block: usize) -> Vec<(&'static str, &'static str)> {
    let block = COLOURS.split(":root {").nth(block).and_then(|block| block.split('}').next());
    block.unwrap_or_default().split(';').filter_map(|line| line.trim().split_once(": ")).collect()
}

fn resolved(rules: &str, colours: &[(&str, &str)]) -> String {
    colours.iter().fold(rules.to_owned(), |rules, (name, colour)| {
        rules.replace(&format!("var({name})"), colour)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_alone_has_its_colours_in_place() {
        let rules = standalone();
        assert!(!rules.contains("var("), "{rules}");
        let (light, dark) = (colours(1), colours(2));
        assert_eq!(light[0], ("--paper", "#ffffff"));
        assert_eq!(dark[0], ("--paper", "#14171b"));
        assert!(light.iter().map(|colour| colour.0).eq(dark.iter().map(|colour| colour.0)));
    }
}
