//! Tests of thumbnails of chosen and of fuzzed images.

mod corpus;
mod large;
mod metadata;
mod thumbnail;
