//! Every graph of a split, from the lowest ratio to the highest.

use xla_gym_common::shortened;

use super::{DEFAULT, Figure, Palette, file_name, plural, with_interval};
use crate::{
    chart::{SortedCurve, SortedPoint, sorted},
    numbers::{amount, grouped, ratio, share},
    results::{
        Header, SummaryRow,
        csv::{Csv, number},
        groups::Group,
        stats::median,
        summary::comparable,
    },
};

/// Every graph of a split, for the contestants `wanted`, or for the best of each kind.
pub fn by_graph(
    header: &Header,
    groups: &[Group],
    rows: &[SummaryRow],
    split: &str,
    wanted: &[String],
    palette: &Palette,
) -> Option<Figure> {
    let chosen = chosen(rows, split, wanted);
    let mut csv = Csv::new(&[
        "split",
        "contestant",
        "kind",
        "budget",
        "rank",
        "graph",
        "ratio",
        "lowest",
        "highest",
        "seeds",
        "initial",
        "default",
    ]);
    let mut curves = Vec::new();
    for row in &chosen {
        let group = groups.iter().find(|group| {
            (group.split, group.contestant, group.kind, group.budget)
                == (&row.split, &row.contestant, row.kind, row.budget)
        })?;
        let points = points(header, group, &mut csv);
        let name = format!(
            "{} ({}, {}): never worse on {} of {}",
            shortened(&row.contestant, 18),
            row.kind,
            grouped(row.budget),
            share(row.never_worse),
            plural(row.graphs, "graph")
        );
        curves.push(SortedCurve { name, look: palette.look(row), points });
    }
    let description = format!("Ratios of the graphs of {split}, sorted.");
    let (drawing, outside) = sorted(&curves, &header.axis(), &description)?;
    let mut caption = format!(
        "A mark for each graph: the middle of its seeds; the thin line reaches from the worst seed \
         to the best. In brackets: the kind, and the budget in pass runs. \"Never worse\" counts \
         all graphs that no seed left larger than {} (the dashed line) does.",
        header.baseline.order
    );
    let undefined = chosen.iter().map(|row| row.primary().undefined).max().unwrap_or_default();
    if undefined > 0 {
        caption.push_str(&format!(
            " {} without a ratio cannot be drawn; see the list below.",
            plural(undefined, "graph")
        ));
    }
    if outside > 0 {
        caption.push_str(&format!(
            " {} outside the axis and drawn at its edge; the numbers have them as they are.",
            if outside == 1 { "1 mark lies".to_owned() } else { format!("{outside} marks lie") }
        ));
    }
    let title = format!("Figure 3. Graph by graph: {split}");
    let file = format!("figure-3-graphs-{}", file_name(split));
    Some(Figure { file, title, part: split.to_owned(), drawing, caption, csv: csv.text() })
}

/// The best row of every contestant that is wanted; if none is, the best of every kind among those
/// that met nearly all graphs.
fn chosen<'a>(rows: &'a [SummaryRow], split: &str, wanted: &[String]) -> Vec<&'a SummaryRow> {
    let mut best: Vec<&SummaryRow> = Vec::new();
    let ratio = |row: &SummaryRow| row.primary().mean.map(|mean| mean.value);
    let of_split = rows.iter().filter(|row| row.split == split);
    let mut candidates: Vec<&SummaryRow> =
        if wanted.is_empty() { comparable(of_split).collect() } else { of_split.collect() };
    candidates.retain(|row| ratio(row).is_some());
    candidates.sort_by(|a, b| ratio(b).partial_cmp(&ratio(a)).unwrap_or(std::cmp::Ordering::Equal));
    for row in candidates {
        let taken = if wanted.is_empty() {
            // The baseline would be a straight line at 1.
            row.contestant == DEFAULT || best.iter().any(|known| known.kind == row.kind)
        } else {
            !wanted.contains(&row.contestant)
                || best.iter().any(|known| known.contestant == row.contestant)
        };
        if !taken {
            best.push(row);
        }
    }
    best
}

/// The graphs of a group in rising order, also as lines of numbers.
fn points(header: &Header, group: &Group, csv: &mut Csv) -> Vec<SortedPoint> {
    let mut graphs: Vec<(&str, SortedPoint, Vec<String>)> = Vec::new();
    let mut undefined = Vec::new();
    for (graph, seeds) in &group.graphs {
        let Some(first) = seeds.values().find_map(|outcome| header.of(outcome)) else { continue };
        let tail =
            vec![seeds.len().to_string(), number(first.initial), number(Some(first.default))];
        let ratios: Vec<f64> = seeds.values().filter_map(|outcome| header.ratio(outcome)).collect();
        let Some(value) = median(ratios.iter().copied()) else {
            undefined.push((*graph, tail));
            continue;
        };
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (things, own) = (header.primary().things, &header.baseline.order);
        let default = amount(first.default);
        let counts = match first.initial {
            Some(initial) => format!("{} {things}, {default} by {own}", amount(initial)),
            None => format!("{default} {things} by {own}"),
        };
        let title = format!(
            "{graph}\n{} {}: {}\n{counts}",
            group.contestant,
            group.kind,
            if seeds.len() > 1 { with_interval(value, low, high) } else { ratio(value) },
        );
        graphs.push((graph, SortedPoint { value, low, high, title }, tail));
    }
    graphs.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let head = |rank: String, graph: &str| {
        let Group { split, contestant, kind, budget, .. } = group;
        let mut cells = vec![split.to_string(), contestant.to_string(), kind.to_string()];
        cells.extend([budget.to_string(), rank, graph.to_owned()]);
        cells
    };
    for (rank, (graph, point, tail)) in (1..).zip(&graphs) {
        let mut cells = head(rank.to_string(), graph);
        cells.extend([point.value, point.low, point.high].map(|value| number(Some(value))));
        cells.extend(tail.iter().cloned());
        csv.row(cells);
    }
    for (graph, tail) in undefined {
        let mut cells = head(String::new(), graph);
        cells.extend([const { String::new() }; 3]);
        cells.extend(tail);
        csv.row(cells);
    }
    graphs.into_iter().map(|(_, point, _)| point).collect()
}
