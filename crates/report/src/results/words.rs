//! What a header comes to in words.

use xla_gym_records::{Header, Ratio, StageInfo};

use crate::numbers::capitalised;

/// What axes of ratios are called.
pub fn axis(header: &Header) -> String {
    let StageInfo { things, ratio, .. } = header.primary();
    let own = &header.baseline.order;
    match ratio {
        Ratio::Removed => format!("ratio (removed {things}, {own} = 1)"),
        Ratio::Left => format!("ratio ({things} left, {own} = 1)"),
    }
}

/// Why a graph has no ratio: the beginning of a sentence that a place ends.
pub fn why_no_ratio(header: &Header) -> String {
    let own = &header.baseline.order;
    match header.primary().ratio {
        Ratio::Removed => format!("{own} removes nothing"),
        Ratio::Left => format!("{own} or the result leaves nothing"),
    }
}

/// What is said of the further stages, a sentence for each that needs one. `short` leaves out
/// what stands in the headings.
pub fn notes(header: &Header, short: bool) -> Vec<String> {
    let own = &header.baseline;
    let note = |info: &StageInfo| {
        let StageInfo { label, things, note, .. } = info;
        let words = match (info.ratio, short) {
            (Ratio::Removed, _) => note.clone(),
            (Ratio::Left, true) => format!("{} by the result's", own.label),
            (Ratio::Left, false) => {
                let things = if things == label { "those" } else { things.as_str() };
                let note = if note.is_empty() { String::new() } else { format!(", {note}") };
                format!("{things} by {} divided by those of the result{note}", own.order)
            }
        };
        (!words.is_empty()).then(|| format!("{}: {words}.", capitalised(label)))
    };
    header.further().iter().filter_map(note).collect()
}
