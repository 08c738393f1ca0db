//! Tests of thumbnails.

mod making;
mod shown;
