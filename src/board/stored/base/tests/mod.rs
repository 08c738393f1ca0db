//! Bases written, read, and read from hostile bytes.

mod base;
mod hostile;
mod unsound;
