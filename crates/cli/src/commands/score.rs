//! `xla-gym score`

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use serde::Serialize;
use xla_gym_common::{Table, grouped};
use xla_gym_engine::protocol::{Fingerprint, Observe};
use xla_gym_oracle::{FACTOR, Options, Precision, Report, Verdict};
use xla_gym_profile::{Comparison, Score, Spec, reference, score};

use crate::{
    context::{Context, parse_passes, time},
    outfile::OutFile,
    start::StartArg,
};

/// Compare a pass order with the compiler's own.
///
/// For XLA: order, the reduction of operations by the given passes over that by XLA's own optimization
/// passes from the same start; legal, the same just before layout assignment, where the program is legal
/// for the CPU; kernels, operations at the very end. The result is verified, compiled and run beside the
/// original.
#[derive(clap::Args)]
pub struct Args {
    /// The program.
    file: PathBuf,

    /// Names separated by commas, or @FILE with a list.
    #[arg(long, short)]
    passes: String,

    #[command(flatten)]
    start: StartArg,

    /// Do not compile and run the result.
    #[arg(long)]
    no_check: bool,

    /// Sets of inputs on which outputs are compared.
    #[arg(long, default_value_t = Options::default().trials, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,

    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Write the result.
    #[arg(long, short, value_name = "OUT", value_parser = OutFile::parser())]
    output: Option<OutFile>,
}

#[derive(Serialize)]
struct Shown {
    file: String,
    #[serde(flatten)]
    score: Score,
    default_time: Duration,
    replaced_passes: Vec<String>,
    fingerprint: Option<Fingerprint>,
    /// Why the verifier refuses the result, if it does.
    invalid: Option<String>,
    /// Result through the untouched pipeline, and without its optional passes.
    outputs_prefix: Option<Report>,
    outputs_replace: Option<Report>,
}

pub fn run(context: &Context, args: Args) -> Result<ExitCode> {
    let engine = context.engine(&args.file)?;
    let profile = context.profile(&args.file.to_string_lossy());
    let spec = profile.spec();
    let start = args.start.position(spec)?;
    let passes = parse_passes(&engine, &args.passes)?;
    let mut session = context.load(&engine, &args.file)?;
    let progress = context.progress();
    let (score, mut result) =
        score(&*profile, &mut session, &passes, start, |stage| progress.doing(stage))?;
    let seen = result.observe(Observe::VERDICT | Observe::FINGERPRINT)?;

    let (mut outputs_prefix, mut outputs_replace) = (None, None);
    if !args.no_check {
        progress.doing("running the original");
        let options = Options { trials: args.trials, seed: args.seed, ..Options::default() };
        let reference = reference(&*profile, &mut session, options)?;
        progress.doing("running the result through the untouched pipeline");
        outputs_prefix = Some(reference.compare(&mut result, &spec.usual)?);
        progress.doing("running the result in the place of the compiler's own passes");
        outputs_replace = Some(reference.compare(&mut result, &spec.instead)?);
    }
    drop(progress);
    if let Some(output) = &args.output {
        output.write(&result.print(output.form(&engine)?)?)?;
    }
    let shown = Shown {
        file: session.source().name.to_string(),
        default_time: score.default.time,
        score,
        replaced_passes: spec.instead.disabled.clone(),
        fingerprint: seen.fingerprint,
        invalid: seen.verdict.and_then(Result::err),
        outputs_prefix,
        outputs_replace,
    };
    if context.json() {
        context.print_json(&shown)?;
    } else {
        context.print(&render(spec, &shown))?;
    }
    let bad = |report: &Option<Report>| report.as_ref().is_some_and(Report::is_different);
    Ok(match shown.invalid.is_some() || bad(&shown.outputs_prefix) || bad(&shown.outputs_replace) {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    })
}

fn render(spec: &Spec, shown: &Shown) -> String {
    let score = &shown.score;
    let mut table = Table::new(&[&shown.file, ">start", ">default", ">these passes", ">ratio"]);
    for (stage, score) in spec.stages.iter().zip(&score.stages) {
        let mut row = |how: &str, result: u64, value: Option<f64>| {
            // Where something is left over something, what was there at first says nothing.
            let initial = match stage.comparison {
                Comparison::Reduction => grouped(score.ratio.initial),
                Comparison::Quotient => String::new(),
            };
            table.row([
                format!("{}{how}", spec.label(stage.figure)),
                initial,
                grouped(score.ratio.default),
                grouped(result),
                value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.3}")),
            ]);
        };
        row("", score.ratio.result, score.value);
        if let (Some(result), Comparison::Quotient) = (score.before, stage.comparison) {
            let value = score.ratio.default as f64 / result.max(1) as f64;
            row(", before the compiler's own", result, Some(value));
        }
    }
    let mut out = table.render();
    let title = spec.words.title;
    out.push_str(&format!("\nThe pipeline of {title} took {}.\n", time(shown.default_time)));
    for (pass, why) in &score.skipped {
        out.push_str(&format!("The pass {pass} {why}; it was left out.\n"));
    }
    out.push_str(&match &shown.invalid {
        Some(reason) => format!("The verifier of {title} REFUSES the result: {reason}\n"),
        None => format!("The verifier of {title} accepts the result.\n"),
    });
    for (report, how) in [
        (&shown.outputs_prefix, "before the compiler's own passes"),
        (&shown.outputs_replace, "in their place"),
    ] {
        if let Some(report) = report {
            out.push_str(&format!("Outputs, {how}: {}\n", describe(report)));
        }
    }
    out
}

/// A comparison in words: the verdict, and what it rests on.
pub fn describe(report: &Report) -> String {
    let mut text = match &report.verdict {
        Verdict::Equal => format!(
            "equal on {} sets of inputs, {} elements (largest difference {:.1e} of what is allowed, \
             which is {FACTOR} times the measured noise of each element; integers exact)",
            report.trials,
            grouped(report.elements),
            report.worst,
        ),
        Verdict::Different { differences } => {
            let mut text = format!("DIFFERENT in {} of the outputs", differences.len());
            for difference in differences.iter().take(5) {
                text.push_str(&format!(
                    "\n  output {} ({}): {} elements, worst at {}: {} against {}, {:.3} of what is \
                     allowed",
                    difference.output,
                    difference.dtype,
                    difference.elements,
                    difference.element,
                    difference.expected,
                    difference.got,
                    difference.excess,
                ));
                if difference.precision == Precision::Higher {
                    text.push_str(", in higher precision");
                }
            }
            text
        }
        Verdict::OtherSignature { reason } => format!("DIFFERENT: {reason}"),
        Verdict::Rejected { reason } => format!("the compiler rejects it: {reason}"),
        Verdict::NotComparable { reason } => format!("not comparable: {reason}"),
    };
    if report.trials > 0 {
        text.push_str(&basis(report));
    }
    text
}

/// How much of the outputs was really compared, and by whom.
fn basis(report: &Report) -> String {
    let mut text = String::new();
    let compared = &report.compared;
    let share = |part: u64| 100.0 * part as f64 / compared.elements.max(1) as f64;
    text.push_str(&format!(
        "\n  compared: {:.1}% of the elements are finite, {:.1}% in outputs that are not constant, {:.1}% \
         saturated, {:.1}% hang on rounding and were left out",
        share(compared.finite),
        share(compared.varying),
        share(compared.saturated),
        share(compared.unstable),
    ));
    if let Some(accuracy) = &report.accuracy {
        text.push_str(&format!(
            "\n  accuracy: output {} is {:.1e} off the result of higher precision, the original {:.1e}",
            accuracy.output, accuracy.result, accuracy.original
        ));
    }
    if report.interpreted > 0 {
        text.push_str(&format!(
            "\n  the interpreter agrees on {} of the sets of inputs",
            report.interpreted
        ));
    }
    if !report.one_sided.is_empty() {
        let names: Vec<&str> = report.one_sided.iter().take(3).map(String::as_str).collect();
        text.push_str(&format!(
            "\n  not covered: {} of {} comparisons and clamps fell only one way ({}{})",
            report.one_sided.len(),
            report.decisions,
            names.join(", "),
            if report.one_sided.len() > 3 { ", …" } else { "" },
        ));
    }
    if !report.unknown_calls.is_empty() {
        text.push_str(&format!(
            "\n  an arbitrary function stood for {}",
            report.unknown_calls.join(", ")
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("\n  {note}"));
    }
    text
}
