//! A board as a model reads it.

pub mod python;
mod python_float;
