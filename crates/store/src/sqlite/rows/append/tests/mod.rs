//! Tests of appended runs and staged histories.

mod append;
mod names;
mod staged;
