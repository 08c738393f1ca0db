//! Tests of thumbnails.

mod memo;
mod shown;
