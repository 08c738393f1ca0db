//! Archives of sessions: `export` and `import`.

mod export;
mod import;

pub(super) use export::{Export, sync_parent};
pub(super) use import::Import;
