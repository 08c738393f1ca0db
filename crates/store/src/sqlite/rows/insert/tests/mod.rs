//! Tests of appended runs and staged histories.

mod ends;
mod names;
mod staged;
