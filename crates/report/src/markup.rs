//! Pieces of HTML. Everything that is not written in this crate goes through [`escape`].

use std::fmt::Write;

/// Text for HTML, in elements and in attributes. Control characters, which HTML forbids, become
/// the sign for what cannot be shown.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

/// A whole page with its style sheets in it.
pub fn document(title: &str, styles: &[&str], content: &str) -> String {
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en-GB\">\n<head>\n");
    out.push_str("<meta charset=\"utf-8\">\n");
    out.push_str(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n",
    );
    let (title, style) = (escape(title), styles.concat());
    let _ = writeln!(out, "<title>{title} – XLA Gym</title>\n<style>\n{style}</style>");
    let _ = writeln!(out, "</head>\n<body>\n<main>\n{content}</main>\n</body>\n</html>");
    out
}

/// A cell of a table.
pub struct Cell {
    class: String,
    markup: String,
}

impl Cell {
    /// Words.
    pub fn text(text: &str) -> Cell {
        Cell { class: "words".to_owned(), markup: escape(text) }
    }

    /// A name that may be long and without spaces.
    pub fn name(text: &str) -> Cell {
        Cell { class: "name".to_owned(), markup: breakable(text) }
    }

    /// A number.
    pub fn number(text: impl AsRef<str>) -> Cell {
        Cell { class: "number".to_owned(), markup: escape(text.as_ref()) }
    }

    /// A number beside a bar.
    pub fn bar(number: &str, bar: &str) -> Cell {
        let markup = format!("<div><span>{}</span>{bar}</div>", escape(number));
        Cell { class: "barred".to_owned(), markup }
    }

    /// Coloured by whether it is better (less than 0) or worse than the default.
    pub fn judged(mut self, order: std::cmp::Ordering) -> Cell {
        self.class.push_str(match order {
            std::cmp::Ordering::Less => " better",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => " worse",
        });
        self
    }

    fn is_number(&self) -> bool {
        self.class.starts_with("number")
    }
}

/// A table that scrolls by itself where the window is too narrow. `last_is_total` sets the last
/// row apart.
pub fn table(header: &[&str], rows: &[Vec<Cell>], last_is_total: bool) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>\n");
    head(&mut out, header, rows);
    for (index, row) in rows.iter().enumerate() {
        let total = last_is_total && index + 1 == rows.len();
        out.push_str(if total { "<tr class=\"total\">" } else { "<tr>" });
        for Cell { class, markup } in row {
            let _ = write!(out, "<td class=\"{class}\">{markup}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// A table each row of which becomes a small block where the window is narrow, for figures that
/// must be seen together. So each cell carries the name of its column.
pub fn stacking_table(header: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut out = String::from("<table class=\"stacking\">\n");
    head(&mut out, header, rows);
    for row in rows {
        out.push_str("<tr>");
        for (Cell { class, markup }, name) in row.iter().zip(header) {
            let name = escape(name);
            let _ = write!(out, "<td class=\"{class}\" data-column=\"{name}\">{markup}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    out
}

fn head(out: &mut String, header: &[&str], rows: &[Vec<Cell>]) {
    out.push_str("<thead><tr>");
    for (column, name) in header.iter().enumerate() {
        let number = rows.first().and_then(|row| row.get(column)).is_some_and(Cell::is_number);
        let class = if number { " class=\"number\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
}

/// What is shown only to those who ask.
pub fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escape(summary))
}

/// A paragraph.
pub fn paragraph(class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<p{class}>{}</p>\n", escape(text))
}

/// A part of the page. Nothing if it has no content.
pub fn section(heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escape(heading))
}

/// Allows a line to break after the signs that join the words of a pass name.
fn breakable(text: &str) -> String {
    let mut out = String::new();
    for piece in text.split_inclusive(['-', '_', ':', '.', '/']) {
        out.push_str(&escape(piece));
        out.push_str("<wbr>");
    }
    out.strip_suffix("<wbr>").unwrap_or(&out).to_owned()
}
