//! Tests of bases: writing, reading, and hostile bytes.

mod base;
mod hostile;
mod unsound;
