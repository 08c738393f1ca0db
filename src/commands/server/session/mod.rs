//! Archives of sessions: `export` and `import`.

mod export;
mod import;

pub(in crate::commands) use export::Export;
pub(in crate::commands) use import::Import;
