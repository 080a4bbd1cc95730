//! Passes that keep what programs mean and are no default actions all the same.

/// Name of a pass, and what was seen of it.
pub const UNFIT: &[(&str, &str)] =
    &[("codegenprepare", "it crashes: it wants what only the code generator sets up")];
