//! Random walks of 45 passes on the programs of `testdata/classics`: nothing that a pass does reaches
//! the host, and what comes out prints what it should. Otherwise the pass to blame is named.
//!
//! `XLA_GYM_SLOW=N` walks N times over all programs, and shows what failed with `--nocapture`.

mod common;

use std::{collections::BTreeMap, env};

use common::{bitcode, classic_names, engine, misprint};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xla_gym_engine::{
    EngineError, Session,
    protocol::{Observe, PassId},
};

const LENGTH: usize = 45;

/// Programs that passes blow up beyond this are not made any larger.
const LARGEST: u64 = 30_000;

#[test]
fn random_walks_keep_what_programs_print() {
    let rounds = env::var("XLA_GYM_SLOW").ok().map(|text| text.parse::<u64>().unwrap_or(1));
    let engine = engine();
    let actions: Vec<PassId> = (0..engine.hello().passes.len() as u16)
        .map(PassId)
        .filter(|pass| engine.hello().passes[usize::from(pass.0)].is_default_action)
        .collect();
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    let mut guilty: Vec<String> = Vec::new();
    let (mut walks, mut steps) = (0, 0);
    for round in 0..rounds.unwrap_or(1) {
        for (number, name) in classic_names().into_iter().enumerate() {
            if rounds.is_none() && number % 3 != 0 {
                continue;
            }
            let mut random = ChaCha8Rng::seed_from_u64(round * 1000 + number as u64);
            let mut session = engine.load(&bitcode(&name)).unwrap();
            for _ in 0..LENGTH {
                let pass = actions[random.random_range(0..actions.len())];
                let wanted = Observe::VERDICT | Observe::COUNTS;
                match session.apply(pass, wanted) {
                    Ok(applied) => {
                        steps += 1;
                        let seen = applied.observation;
                        if let Some(Err(message)) = seen.verdict {
                            let message = message.lines().next().unwrap_or_default().to_owned();
                            let pass = engine.pass_name(pass);
                            guilty.push(format!("{name}: {pass} breaks it: {message}"));
                            session.undo(1).unwrap();
                        } else if seen.counts.unwrap().primary() > LARGEST {
                            session.undo(1).unwrap();
                        }
                    }
                    Err(EngineError::Pass(error)) => {
                        let what = format!("{} {}", error.pass, error.failure.kind());
                        *failed.entry(what).or_default() += 1;
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            walks += 1;
            if let Some(wrong) = misprint(&mut session, &name) {
                guilty.push(format!("{name}: {}: {wrong}", blame(&mut session, &name)));
            }
        }
    }
    println!("{walks} walks, {steps} passes; failed and contained: {failed:?}");
    assert!(guilty.is_empty(), "{}", guilty.join("\n"));
}

/// The first pass of the walk after which the program prints something else.
fn blame(session: &mut Session, name: &str) -> String {
    let steps = session.steps().to_vec();
    let engine = session.engine().clone();
    let prefix = |length: usize| {
        let mut session = engine.load(&bitcode(name)).unwrap();
        session.multistep(&steps[..length], Observe::NOTHING, |_| {}).unwrap();
        misprint(&mut session, name).is_none()
    };
    let (mut good, mut bad) = (0, steps.len());
    while bad - good > 1 {
        let middle = (good + bad) / 2;
        if prefix(middle) { good = middle } else { bad = middle }
    }
    let names: Vec<&str> = steps[..bad].iter().map(|pass| engine.pass_name(*pass)).collect();
    format!("`{}` is to blame, after {}", names[bad - 1], names[..bad - 1].join(","))
}
