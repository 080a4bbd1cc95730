//! What passes do, remembered.
