//! Tests of thumbnails of chosen and of fuzzed images.

mod corpus;
mod thumbnail;
