//! Tests of the handlers: what bounds their work, and what a request allocates.

mod allocations;
mod bounded;
