//! Thumbnails: what is shown, and who shares it.

mod making;
mod shown;
