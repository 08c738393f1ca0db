use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use super::{Hits, Sought};
use crate::board::{LogName, Policy, Revision};
use crate::service::tests::service::{POLICY, clear, open, request, stop, write_to};
use crate::service::{Clock, Options, Service};
