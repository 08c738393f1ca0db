//! Tests of archives.

mod archive;
mod hostile;
