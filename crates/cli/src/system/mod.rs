//! Operating system differences: signals, files of the owner alone, the place of the configuration, colours.
//!
//! Nothing else of this crate asks which system it runs on.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{
    CONFIG_HELP, Signals, config_home, draft, foreign_mode, paints, sync_parent,
};
#[cfg(windows)]
pub(crate) use self::windows::{
    CONFIG_HELP, Signals, config_home, draft, foreign_mode, paints, sync_parent,
};
