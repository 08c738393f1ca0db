//! Archives of sessions: `export` and `import`.

mod export;
mod import;

pub(super) use export::Export;
pub(super) use import::Import;
