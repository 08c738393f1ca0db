//! Operating system differences: signals, groups of processes, files of the owner alone, the place of the
//! configuration, colours.
//!
//! Nothing else of this crate asks which system it runs on.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{
    CONFIG_HELP, Group, Orphans, Signals, config_home, draft, exit_code, foreign_mode, is_program,
    make_dir, open_state, own_program, paints, parent_id, state_home, sync_parent,
};
#[cfg(windows)]
pub(crate) use self::windows::{
    CONFIG_HELP, Group, Orphans, Signals, config_home, draft, exit_code, foreign_mode, is_program,
    make_dir, open_state, own_program, paints, parent_id, state_home, sync_parent,
};
