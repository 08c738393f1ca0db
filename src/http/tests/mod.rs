//! Tests.

mod bounded;
