//! The `blackboard` binary.

fn main() {}
