//! A chart before it is known where it will stand.

use super::{WIDTH, label_at};
use crate::{markup::escape, style};

/// The content of a chart.
#[derive(Debug)]
pub struct Drawing {
    /// In the chart's units.
    pub height: f64,
    /// For those who cannot see it.
    pub description: String,
    /// Elements of SVG.
    pub content: String,
}

impl Drawing {
    /// As a part of a page, which has the style sheets.
    pub fn inline(&self) -> String {
        let Drawing { height, description, content } = self;
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\">\n{content}</svg>\n",
            escape(description)
        )
    }

    /// As a file that stands alone, under a title.
    pub fn file(&self, title: &str) -> String {
        const TITLE: f64 = 34.0;
        let Drawing { height, description, content } = self;
        let (full, style) = (height + TITLE, style::standalone());
        let mut heading = String::new();
        label_at(&mut heading, 4.0, 20.0, "start", "title", title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {WIDTH} {full}\" \
             width=\"{WIDTH}\" height=\"{full}\" role=\"img\" aria-label=\"{}\">\n\
             <style>\n{style}</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{full}\"/>\n{heading}\
             <g transform=\"translate(0 {TITLE})\">\n{content}</g>\n</svg>\n",
            escape(description)
        )
    }
}
