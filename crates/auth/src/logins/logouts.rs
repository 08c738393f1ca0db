//! Logouts that all servers of a store know: what each reads of the others', by the number of the last change.
//!
//! A login that every server accepts by its signature ends early only if all of them know of that. A token has a bound of
//! logouts; beyond it the store merges them into the end of all its logins that began until then. So who logs in and out
//! for ever ends older logins with the same token, and never brings back one that has ended.

use std::collections::HashMap;

use crate::TokenId;
use blackboard_board::{Digest, Timestamp};
use blackboard_store::LogoutRow;

/// The maximum number of logouts that are stored of one token; beyond, those whose logins began first are merged.
pub const TOKEN_LOGOUTS_MAX: usize = 100;

/// The logouts that this server knows.
#[derive(Default)]
pub(super) struct Logouts {
    /// The number of the last change that was read.
    seen: i64,
    by_token: HashMap<TokenId, Ended>,
}

/// The ended logins of a token.
#[derive(Default)]
struct Ended {
    /// All that began until then have ended.
    until: Option<Timestamp>,
    /// The others, with the times at which they began.
    logins: HashMap<Digest, Timestamp>,
}

impl Logouts {
    pub(super) const fn seen(&self) -> i64 {
        self.seen
    }

    /// Takes in what was read after the last change, and forgets logins that began before a time.
    pub(super) fn take_in(&mut self, read: Vec<(i64, LogoutRow)>, before: Timestamp) {
        for (change, LogoutRow { token, login, made_at }) in read {
            self.seen = change;
            let ended = self.by_token.entry(TokenId(token)).or_default();
            match login {
                Some(login) => drop(ended.logins.insert(login, made_at)),
                None => ended.until = ended.until.max(Some(made_at)),
            }
        }
        self.by_token.retain(|_, ended| {
            ended.until = ended.until.filter(|until| *until >= before);
            let until = ended.until.unwrap_or(before);
            ended.logins.retain(|_, made_at| *made_at >= until);
            ended.until.is_some() || !ended.logins.is_empty()
        });
    }

    /// Returns true if a login has ended early.
    pub(super) fn have(&self, token: TokenId, login: Digest, made_at: Timestamp) -> bool {
        self.by_token.get(&token).is_some_and(|ended| {
            ended.until.is_some_and(|until| made_at <= until) || ended.logins.contains_key(&login)
        })
    }
}
