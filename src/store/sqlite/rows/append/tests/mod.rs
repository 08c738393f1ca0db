//! Runs appended, and histories staged.

mod append;
mod staged;
