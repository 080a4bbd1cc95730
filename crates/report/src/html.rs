//! The page.

mod comparison;
mod order;

use std::fmt::Write;

use crate::{
    Explanation, chart,
    headline::Headline,
    markup::{Cell, document, escape, paragraph, section, table},
    numbers::{ABSENT, amount, duration},
    style,
};

impl Explanation {
    /// The report as one file that opens offline: no script, no font and no picture from
    /// elsewhere. It follows the reader's choice of light or dark, and can be printed.
    pub fn html(&self) -> String {
        let mut out = head(self);
        let beside = format!("Beside {}", self.baseline.label);
        out.push_str(&section(&beside, &comparison::summary(self)));
        out.push_str(&section("Checks", &verdicts(self)));
        out.push_str(&section(&order::heading(self), &order::timeline(self)));
        out.push_str(&section("What each pass brought", &order::contributions(self)));
        for table in &self.opcodes {
            let heading = format!("Opcodes {}", table.stage);
            out.push_str(&section(&heading, &comparison::opcodes(&table.rows, &self.baseline)));
        }
        out.push_str(&section("Time", &timing(self)));
        out.push_str(&section("Best in one way or another", &front(self)));
        out.push_str(&section("Recipe", &recipe(self)));
        out.push_str(&section("Notes", &notes(&self.notes)));
        document(&self.title, &[style::COLOURS, style::PAGE, style::CHART], &out)
    }
}

fn head(explanation: &Explanation) -> String {
    let Explanation { title, engine, objective, command, .. } = explanation;
    let headline = Headline::of(explanation);
    let mut out = format!("<header>\n<h1>{}</h1>\n", escape(title));
    out.push_str(&paragraph("headline", &headline.main));
    for (class, sentence) in [("", &headline.others), ("caution", &headline.caution)] {
        if !sentence.is_empty() {
            out.push_str(&paragraph(class, sentence));
        }
    }
    out.push_str("<dl class=\"origin-of-report\">");
    for (term, words, code) in
        [("Compiler", engine, false), ("Objective", objective, false), ("Made by", command, true)]
    {
        if !words.is_empty() {
            let words = escape(words);
            let words = if code { format!("<code>{words}</code>") } else { words };
            let _ = write!(out, "<div><dt>{term}</dt><dd>{words}</dd></div>");
        }
    }
    out.push_str("</dl>\n</header>\n");
    out
}

fn verdicts(explanation: &Explanation) -> String {
    if explanation.verdicts.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ul class=\"verdicts\">\n");
    for (claim, holds, words) in &explanation.verdicts {
        let (class, sign, word) =
            if *holds { ("holds", "✓", "holds") } else { ("fails", "✗", "does not hold") };
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><span class=\"sign\" title=\"{word}\">{sign}</span>\
             <span><strong>{}</strong> <span class=\"muted\">{}</span></span></li>",
            escape(claim),
            escape(words)
        );
    }
    out.push_str("</ul>\n");
    out
}

fn timing(explanation: &Explanation) -> String {
    let Some(timing) = &explanation.timing else { return String::new() };
    let mut out = String::new();
    for sentence in &timing.sentences {
        out.push_str(&paragraph("", sentence));
    }
    // Times to run and times to compile are of different sizes: each kind has its own scale.
    let kind = |label: &str| label.split(',').next().unwrap_or_default().to_owned();
    let rows: Vec<Vec<Cell>> = timing
        .rows
        .iter()
        .map(|(label, median, lower, upper)| {
            let alike = timing.rows.iter().filter(|row| kind(&row.0) == kind(label));
            let longest = alike.fold(0.0, |longest: f64, row| longest.max(row.1).max(row.3));
            vec![
                Cell::text(label),
                Cell::bar(&duration(*median), &chart::span(*median, *lower, *upper, longest)),
                Cell::number(duration(*lower)),
                Cell::number(duration(*upper)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&table(&["", "median", "lower quartile", "upper quartile"], &rows, false));
        let words = "Bars begin at 0; the thin line spans the middle half of the measurements. \
                     Bars of one kind share a scale.";
        out.push_str(&paragraph("caption", words));
    }
    out
}

fn front(explanation: &Explanation) -> String {
    let Explanation { front, front_axes: axes, .. } = explanation;
    if front.is_empty() {
        return String::new();
    }
    let mut header = vec!["result"];
    header.extend(axes.iter().map(String::as_str));
    header.push("");
    let rows: Vec<Vec<Cell>> = front
        .iter()
        .map(|point| {
            let values = (0..axes.len()).map(|axis| {
                Cell::number(point.values.get(axis).map_or(ABSENT.to_owned(), |v| amount(*v)))
            });
            let mut row = vec![Cell::text(&point.label)];
            row.extend(values);
            row.push(Cell::text(if point.chosen { "chosen" } else { "" }));
            row
        })
        .collect();
    let words = "None of these is better than another in everything. Less is better on each axis.";
    format!("{}{}{}", paragraph("", words), chart::front(front, axes), table(&header, &rows, false))
}

fn recipe(explanation: &Explanation) -> String {
    let mut out = String::new();
    if !explanation.disabled_passes.is_empty() {
        let names = explanation.disabled_passes.iter();
        let names: Vec<String> =
            names.map(|name| format!("<code>{}</code>", escape(name))).collect();
        let whose = match explanation.compiler.as_str() {
            "" => "the compiler",
            name => name,
        };
        let _ = writeln!(
            out,
            "<p>Passes of {}'s own pipeline that are left out afterwards: {}.</p>",
            escape(whose),
            names.join(", ")
        );
    }
    if !explanation.recipe_json.is_empty() {
        out.push_str(&paragraph("caption", "One click selects all of it."));
        let _ = writeln!(
            out,
            "<pre class=\"recipe\" tabindex=\"0\">{}</pre>",
            escape(&explanation.recipe_json)
        );
    }
    out
}

fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note)));
    format!("<ul>\n{}</ul>\n", items.collect::<String>())
}
