//! Extractors: path, query, headers and body.

pub(crate) mod body;
pub(crate) mod conditions;
pub(crate) mod idempotency;
pub(crate) mod items;
pub(crate) mod multipart;
pub(crate) mod path;
pub(crate) mod public_url;
pub(crate) mod query;
