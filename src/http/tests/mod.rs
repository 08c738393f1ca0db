//! Tests of the handlers that bound their work.

mod bounded;
