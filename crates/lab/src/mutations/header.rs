//! What the first line says of who may overwrite what.

use rand::{Rng, seq::IndexedRandom};

use super::Rand;
use crate::hlo_text::{Program, closing, split};

const ALIASES: &str = "input_output_alias=";

/// The entries of the list of aliases, and where it is in the first line.
fn aliases(p: &Program) -> Option<(usize, usize, Vec<&str>)> {
    let header = p.lines.first()?;
    let start = header.find(ALIASES)? + ALIASES.len();
    let end = closing(header, start)? + 1;
    Some((start, end, split(header[start + 1..end - 1].trim())))
}

pub fn alias_dropped(p: &Program, r: Rand) -> Option<String> {
    let (start, end, mut entries) = aliases(p)?;
    let place = r.random_range(0..entries.len().max(1));
    if entries.len() <= place {
        return None;
    }
    entries.remove(place);
    let mut header = p.lines[0].clone();
    match entries.is_empty() {
        true => header.replace_range(start - ALIASES.len()..(end + 2).min(header.len()), ""),
        false => header.replace_range(start..end, &format!("{{ {} }}", entries.join(", "))),
    }
    Some(header)
}

/// An output is written into an input that nobody gave away.
pub fn alias_added(p: &Program, r: Rand) -> Option<String> {
    let header = p.lines.first()?;
    let known = aliases(p);
    let entries = known.as_ref().map_or(&[][..], |(_, _, entries)| entries);
    let root = p.instructions.iter().find(|i| i.root && i.computation == p.entry)?;
    let outputs: Vec<(String, &str)> = match root.shape.strip_prefix('(') {
        Some(list) => split(list.strip_suffix(')')?)
            .into_iter()
            .enumerate()
            .map(|(place, shape)| (format!("{{{place}}}"), shape))
            .collect(),
        None => vec![("{}".to_owned(), &*root.shape)],
    };
    let mut all = Vec::new();
    for input in &p.instructions {
        if input.opcode != "parameter" || input.computation != p.entry {
            continue;
        }
        let number = &input.operands[0];
        // What is given away without an alias may be used.
        if header.contains(&format!("({number}, {{}}")) {
            continue;
        }
        for (place, shape) in &outputs {
            let taken = entries.iter().any(|entry| entry.starts_with(&format!("{place}:")));
            if !taken && *shape == input.shape {
                all.push(format!("{place}: ({number}, {{}}, may-alias)"));
            }
        }
    }
    let entry = all.choose(r)?.clone();
    let mut header = header.clone();
    match known {
        Some((start, end, mut entries)) => {
            entries.push(&entry);
            header.replace_range(start..end, &format!("{{ {} }}", entries.join(", ")));
        }
        None => {
            let place = header.find(',').unwrap_or(header.len());
            header.insert_str(place, &format!(", {ALIASES}{{ {entry} }}"));
        }
    }
    Some(header)
}
