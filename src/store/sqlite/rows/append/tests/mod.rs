//! Tests of appended runs and staged histories.

mod append;
mod staged;
