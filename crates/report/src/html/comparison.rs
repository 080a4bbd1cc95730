//! Figures and opcodes of the result beside the baseline's.

use std::cmp::{Ordering, Reverse};

use crate::{
    Baseline, Explanation, OpcodeRow,
    markup::{Cell, details, paragraph, stacking_table, table},
    metric::change,
    numbers::{ABSENT, amount, capitalised, compare, grouped, percent, signed},
};

/// The table of figures.
pub fn summary(explanation: &Explanation) -> String {
    if explanation.summary.is_empty() {
        return String::new();
    }
    let rows = explanation.summary.iter();
    let rows: Vec<Vec<Cell>> = rows
        .map(|row| {
            let order = compare(row.default, row.result);
            let sign = match order {
                Ordering::Less => "−",
                Ordering::Equal => "",
                Ordering::Greater => "+",
            };
            let change = percent(row.default, row.result)
                .map_or(ABSENT.to_owned(), |share| format!("{sign}{share}"));
            let ratio = row.ratio.map_or(ABSENT.to_owned(), |ratio| format!("{ratio:.3}"));
            vec![
                Cell::text(&row.name),
                Cell::number(row.start.map_or(ABSENT.to_owned(), amount)),
                Cell::number(amount(row.default)),
                Cell::number(amount(row.result)).judged(order),
                Cell::number(change).judged(order),
                Cell::number(ratio),
                Cell::text(&row.note),
            ]
        })
        .collect();
    let own = explanation.baseline.label.as_str();
    let header = ["figure", "start", own, "result", "change", "ratio", "note"];
    let words = format!("Less is better, except for the ratio: above 1 is better than {own}.");
    format!("{}{}", stacking_table(&header, &rows), paragraph("caption", &words))
}

/// Opcodes whose number differs between the baseline and the result, the largest difference first.
/// The others are there for those who ask.
pub fn opcodes(opcodes: &[OpcodeRow], baseline: &Baseline) -> String {
    if opcodes.is_empty() {
        return String::new();
    }
    let (mut differing, mut alike): (Vec<&OpcodeRow>, Vec<&OpcodeRow>) =
        opcodes.iter().partition(|row| row.default != row.result);
    differing.sort_by_key(|row| (Reverse(row.default.abs_diff(row.result)), &row.opcode));
    alike.sort_by_key(|row| (Reverse(row.result), &row.opcode));
    let with_start = opcodes.iter().any(|row| row.start != 0);
    let mut out = String::new();
    if differing.is_empty() {
        let own = capitalised(&baseline.order);
        let words = format!("{own} and this one end with the same opcodes.");
        out.push_str(&paragraph("", &words));
    } else {
        out.push_str(&opcode_table(&differing, opcodes, with_start, baseline));
    }
    if !alike.is_empty() {
        let words = match alike.len() {
            1 => "1 opcode occurs equally often".to_owned(),
            count => format!("{count} opcodes occur equally often"),
        };
        out.push_str(&details(&words, &opcode_table(&alike, &[], with_start, baseline)));
    }
    out
}

/// `all` are the rows that a total is taken over; none, if there is to be none.
fn opcode_table(
    rows: &[&OpcodeRow],
    all: &[OpcodeRow],
    with_start: bool,
    baseline: &Baseline,
) -> String {
    let line = |name: &str, start: u128, default: u128, result: u128| {
        let change = i128::try_from(result).unwrap_or(i128::MAX)
            - i128::try_from(default).unwrap_or(i128::MAX);
        let mut cells = vec![Cell::text(name)];
        cells.extend(with_start.then(|| Cell::number(grouped(start))));
        cells.push(Cell::number(grouped(default)));
        cells.push(Cell::number(grouped(result)));
        cells.push(Cell::number(signed(change)).judged(result.cmp(&default)));
        cells
    };
    let mut cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| line(&row.opcode, row.start.into(), row.default.into(), row.result.into()))
        .collect();
    if !all.is_empty() {
        let sum = |of: fn(&OpcodeRow) -> u64| all.iter().map(|row| u128::from(of(row))).sum();
        let (start, default, result) =
            (sum(|row| row.start), sum(|row| row.default), sum(|row| row.result));
        cells.push(line("all opcodes", start, default, result));
    }
    let mut header = vec!["opcode"];
    header.extend(with_start.then_some("start"));
    header.extend([baseline.label.as_str(), "result", "difference"]);
    table(&header, &cells, !all.is_empty())
}

/// Coloured by whether a step left less or more.
pub fn change_cell(after: Option<f64>, before: Option<f64>) -> Cell {
    let order = match (after, before) {
        (Some(after), Some(before)) => after.total_cmp(&before),
        _ => Ordering::Equal,
    };
    Cell::number(change(after, before)).judged(order)
}
