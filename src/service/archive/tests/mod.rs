//! Archives out and in.

mod archive;
mod hostile;
