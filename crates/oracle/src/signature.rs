//! What has to be the same before anything runs.

use xla_gym_engine::protocol::{ArraySpec, Signature};

/// Why a program cannot be compared with anything, if so.
pub fn obstacle(signature: &Signature) -> Option<String> {
    if !signature.not_comparable.is_empty() {
        return Some(format!(
            "it talks to something outside, by {}",
            signature.not_comparable.join(", ")
        ));
    }
    if !signature.collectives.is_empty() {
        return Some(format!(
            "it says how devices talk ({}) and not which devices there are",
            signature.collectives.join(", ")
        ));
    }
    None
}

/// What a program takes or gives that the original does not, if so. Layouts do not count: they are
/// the compiler's business.
pub fn mismatch(original: &Signature, result: &Signature) -> Option<String> {
    for (what, a, b) in [
        ("input", &original.inputs, &result.inputs),
        ("output", &original.outputs, &result.outputs),
    ] {
        if let Some(reason) = other_arrays(what, a, b) {
            return Some(reason);
        }
    }
    for alias in &result.aliases {
        let own = original.aliases.contains(alias);
        let given = original.donated.contains(&alias.input)
            || original.aliases.iter().any(|other| other.input == alias.input);
        if !own && !given {
            return Some(format!(
                "output {} overwrites input {}, which nobody gave away",
                alias.output, alias.input
            ));
        }
    }
    for alias in &original.aliases {
        if !result.aliases.contains(alias) {
            return Some(format!(
                "output {} is no longer written into input {}",
                alias.output, alias.input
            ));
        }
    }
    if let Some(input) = result.donated.iter().find(|input| !original.donated.contains(input)) {
        return Some(format!("it uses the memory of input {input}, which nobody gave away"));
    }
    None
}

fn other_arrays(what: &str, a: &[ArraySpec], b: &[ArraySpec]) -> Option<String> {
    if a.len() != b.len() {
        return Some(format!("it has {} {what}s, the original {}", b.len(), a.len()));
    }
    let text = |spec: &ArraySpec| {
        let dims: Vec<String> = spec.dims.iter().map(i64::to_string).collect();
        format!("{}[{}]", spec.dtype, dims.join(","))
    };
    let differs = |(a, b): (&ArraySpec, &ArraySpec)| a.dtype != b.dtype || a.dims != b.dims;
    let place = a.iter().zip(b).position(differs)?;
    Some(format!("{what} {place} is {}, in the original {}", text(&b[place]), text(&a[place])))
}
