//! Progress on standard error, for people only.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that says what is being done, or a bar with rate and time left. Gone when dropped.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Silent if asked to be, or if standard error is no terminal.
    pub fn new(quiet: bool) -> Progress {
        let bar = ProgressBar::new_spinner();
        if quiet || !stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.set_style(style("{spinner} {msg} [{elapsed}]"));
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Progress { bar }
    }

    /// Says what is being done.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Turns into a bar over `total` items.
    pub fn counting(&self, total: u64, unit: &str) {
        self.bar.set_length(total);
        self.bar.set_position(0);
        self.bar.reset_eta();
        self.bar.set_style(style(&format!(
            "{{spinner}} {{msg}} {{bar:30}} {{pos}}/{{len}} {unit} ({{per_sec}}, {{eta}} left)"
        )));
    }

    /// So many items done.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Turns back into a line that says what is being done.
    pub fn spinning(&self) {
        self.bar.set_style(style("{spinner} {msg} [{elapsed}]"));
    }

    /// Lets something be written to standard error that stays.
    pub fn above(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// One item further.
    pub fn advance(&self) {
        self.bar.inc(1);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
