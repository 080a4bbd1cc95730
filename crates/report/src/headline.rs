//! What was gained, in a sentence.

use std::cmp::Ordering;

use crate::{
    Explanation, SummaryRow,
    numbers::{amount, capitalised, compare, percent},
};

/// What was gained, and what speaks against it.
pub struct Headline {
    /// The objective: result and default.
    pub main: String,
    /// The other figures.
    pub others: String,
    /// Checks that do not hold. Empty if all do.
    pub caution: String,
}

impl Headline {
    /// Reads it off the figures, not off anybody's claim.
    pub fn of(explanation: &Explanation) -> Headline {
        let named = objective_row(explanation);
        let own = &explanation.baseline.order;
        let main = match named {
            Some(index) => about(&explanation.summary[index], own),
            None if explanation.summary.is_empty() => "Nothing was compared.".to_owned(),
            None => overall(&explanation.summary, own),
        };
        let empty = explanation.order.steps.is_empty() && explanation.disabled_passes.is_empty();
        let main = if empty {
            format!("No order better than {} is known. {main}", explanation.baseline.label)
        } else {
            main
        };
        let others = explanation.summary.iter().enumerate();
        let others = others.filter(|(index, _)| Some(*index) != named).map(|(_, row)| row);
        Headline { main, others: list(others), caution: caution(explanation) }
    }
}

/// The row that the objective names: word for word, or as one word of the row's name.
fn objective_row(explanation: &Explanation) -> Option<usize> {
    let objective = explanation.objective.trim().to_lowercase();
    let names: Vec<String> =
        explanation.summary.iter().map(|row| row.name.to_lowercase()).collect();
    let has_word =
        |name: &String| name.split(|c: char| !c.is_alphanumeric()).any(|word| word == objective);
    names.iter().position(|name| *name == objective).or_else(|| names.iter().position(has_word))
}

/// `own` is what the baseline's order is called.
fn about(row: &SummaryRow, own: &str) -> String {
    let SummaryRow { name, default, result, note, .. } = row;
    let (result_words, default_words) = (amount(*result), amount(*default));
    let share = percent(*default, *result);
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    match compare(*default, *result) {
        Ordering::Equal if !(default.is_finite() && result.is_finite()) => {
            format!("{}: not known{note}.", capitalised(name))
        }
        Ordering::Equal => {
            format!("Nothing gained over {own} in {name}: {result_words} both ways{note}.")
        }
        Ordering::Less => {
            let share = share.map_or(String::new(), |share| format!(", {share} less"));
            format!(
                "{}: {result_words} instead of {default_words} by {own}{share}{note}.",
                capitalised(name)
            )
        }
        Ordering::Greater => {
            let share = share.map_or(String::new(), |share| format!(", {share} more"));
            format!(
                "Worse than {own} in {name}: {result_words} instead of \
                 {default_words}{share}{note}."
            )
        }
    }
}

/// Where the objective is no single row, such as a sum of several.
fn overall(rows: &[SummaryRow], own: &str) -> String {
    let count =
        |wanted| rows.iter().filter(|row| compare(row.default, row.result) == wanted).count();
    let (less, more) = (count(Ordering::Less), count(Ordering::Greater));
    let all = rows.len();
    match (less, more) {
        (0, 0) => format!("Nothing gained over {own}: all figures are the same."),
        (0, _) => format!("Worse than {own} in {more} of {all} figures, better in none."),
        (_, 0) => format!("Better than {own} in {less} of {all} figures, worse in none."),
        _ => format!("Better than {own} in {less} of {all} figures, worse in {more}."),
    }
}

fn list<'a>(rows: impl Iterator<Item = &'a SummaryRow>) -> String {
    let mut groups = [("Less", vec![]), ("More", vec![]), ("The same", vec![])];
    for row in rows {
        let order = compare(row.default, row.result);
        let sign = if order == Ordering::Less { "−" } else { "+" };
        let share = percent(row.default, row.result).map(|share| format!("{sign}{share}"));
        let mut remarks = if order == Ordering::Equal { vec![] } else { Vec::from_iter(share) };
        remarks.extend((!row.note.is_empty()).then(|| row.note.clone()));
        let remarks = remarks.join(", ");
        let name = &row.name;
        let words = if remarks.is_empty() { name.clone() } else { format!("{name} ({remarks})") };
        let group = match order {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => 2,
        };
        groups[group].1.push(words);
    }
    let filled = groups.iter().filter(|(_, rows)| !rows.is_empty());
    let sentences: Vec<String> =
        filled.map(|(word, rows)| format!("{word}: {}.", rows.join("; "))).collect();
    sentences.join(" ")
}

fn caution(explanation: &Explanation) -> String {
    let failed: Vec<&str> = explanation
        .verdicts
        .iter()
        .filter(|(_, holds, _)| !holds)
        .map(|(claim, _, _)| claim.as_str())
        .collect();
    match failed.len() {
        0 => String::new(),
        count => format!(
            "Careful, {count} of {} checks {} not hold: {}.",
            explanation.verdicts.len(),
            if count == 1 { "does" } else { "do" },
            failed.join("; ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Baseline;

    fn headline(objective: &str, rows: &[(&str, f64, f64)]) -> String {
        let summary = rows
            .iter()
            .map(|&(name, default, result)| SummaryRow {
                name: name.to_owned(),
                default,
                result,
                ..SummaryRow::default()
            })
            .collect();
        let disabled_passes = vec!["dce".to_owned()];
        let objective = objective.to_owned();
        let baseline = Baseline::new("-Oz", "-Oz");
        let explanation =
            Explanation { objective, summary, disabled_passes, baseline, ..Default::default() };
        Headline::of(&explanation).main
    }

    #[test]
    fn it_is_honest() {
        let gained =
            headline("instructions", &[("bytes", 1.0, 2.0), ("instructions", 100.0, 90.0)]);
        assert_eq!(gained, "Instructions: 90 instead of 100 by -Oz, 10.0% less.");
        let same = headline("instructions", &[("instructions", 7.0, 7.0)]);
        assert_eq!(same, "Nothing gained over -Oz in instructions: 7 both ways.");
        let worse = headline("order", &[("operations, order", 100.0, 150.0)]);
        assert!(worse.starts_with("Worse than -Oz in operations, order: 150"), "{worse}");
        let mixed = headline("a + b", &[("x", 2.0, 1.0), ("y", 1.0, 2.0), ("z", 0.0, 0.0)]);
        assert_eq!(mixed, "Better than -Oz in 1 of 3 figures, worse in 1.");
        assert_eq!(headline("", &[]), "Nothing was compared.");
        let from_nothing = headline("x", &[("x", 0.0, 3.0)]);
        assert_eq!(from_nothing, "Worse than -Oz in x: 3 instead of 0.");
    }

    #[test]
    fn an_empty_recipe_and_a_failed_check_are_said() {
        let verdicts = vec![
            ("verified".to_owned(), true, String::new()),
            ("outputs equal".to_owned(), false, String::new()),
        ];
        let headline = Headline::of(&Explanation { verdicts, ..Default::default() });
        assert!(headline.main.starts_with("No order better than the compiler's own is known."));
        assert_eq!(headline.caution, "Careful, 1 of 2 checks does not hold: outputs equal.");
    }
}
