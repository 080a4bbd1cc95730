//! A bar for what the teaching crate does.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use indicatif::ProgressBar;
use xla_gym_common::lock;
use xla_gym_profile::Profile;
use xla_gym_teaching::{Setting, Watch};
use xla_gym_xla_profile::Xla;

use crate::graphs;

/// The bar; gone when dropped.
#[derive(Default)]
pub struct Bar(Mutex<Option<ProgressBar>>);

impl Bar {
    fn with(&self, work: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &*lock(&self.0) {
            work(bar);
        }
    }
}

impl Watch for Bar {
    fn counting(&self, total: u64, unit: &str) {
        *lock(&self.0) = Some(graphs::progress(total, unit));
    }

    fn advance(&self) {
        self.with(|bar| bar.inc(1));
    }

    fn say(&self, words: &str) {
        self.with(|bar| bar.suspend(|| println!("{words}")));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.with(ProgressBar::finish_and_clear);
    }
}

/// The setting of an experiment, which only a kill ends.
pub fn setting(bar: &Bar) -> Result<Setting<'_>> {
    let profile = Arc::new(Xla::default());
    Ok(Setting { engine: profile.engine_config()?, profile, stop: Arc::default(), watch: bar })
}
