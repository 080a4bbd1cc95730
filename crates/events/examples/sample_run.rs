//! Writes a made-up run, for a look at it in TensorBoard:
//! `cargo run -p xla-gym-events --example sample_run -- FOLDER`.

use std::path::PathBuf;

use xla_gym_events::Events;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("give a folder to write the run to");
        return Ok(());
    };
    let mut events = Events::create(&folder)?;
    let configuration = "| option | value |\n|---|---|\n| algorithm | ppo |\n| seed | 0 |\n";
    events.text("configuration", 0, configuration)?;
    // This run goes on to step 800 with rubbish, and is taken up again after step 500.
    curve(&mut events, 0..=500, 0.0)?;
    curve(&mut events, 510..=800, -1.0)?;
    drop(events);
    let mut events = Events::resume(&folder, 500)?;
    curve(&mut events, 510..=1000, 0.0)
}

fn curve(
    events: &mut Events,
    steps: std::ops::RangeInclusive<u64>,
    offset: f64,
) -> std::io::Result<()> {
    for step in steps.step_by(10) {
        let share = step as f64 / 1000.0;
        events.scalar("train/ratio", step, 1.1 - (-4.0 * share).exp() + offset)?;
        events.scalar("loss/value", step, (-3.0 * share).exp() + offset)?;
        if step.is_multiple_of(100) {
            let spread = 1.0 - share / 2.0;
            let values: Vec<f32> = (-100..=100)
                .map(|index| ((f64::from(index) / 80.0).tan() * spread) as f32)
                .collect();
            events.histogram("advantages", step, &values)?;
        }
    }
    events.flush()
}
