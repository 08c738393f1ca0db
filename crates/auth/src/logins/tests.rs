//! Tests of logins with a clock of their own.

use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;

use super::*;
use crate::{Created, NewToken, Scope, Secret, TokenLimits};
use blackboard_clock::Clock;
use blackboard_store::{SqliteOptions, SqliteStore};

const LIMITS: TokenLimits = TokenLimits { rate: None, streams_max: 2 };

struct House {
    _dir: TempDir,
    now: Arc<AtomicI64>,
    logins: Logins,
}

impl House {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap());
        let now = Arc::new(AtomicI64::new(1));
        let clock = Arc::clone(&now);
        let clock = Clock::new(move || Timestamp(clock.load(Ordering::Relaxed)));
        let tokens = Tokens::open(store, clock, LIMITS).unwrap();
        Self { _dir: dir, now, logins: Logins::new(tokens) }
    }

    fn token(&self, name: &str, expires_at: Option<i64>) -> Secret {
        let new = NewToken {
            name: name.parse().unwrap(),
            scopes: [Scope::Read].into_iter().collect(),
            sessions: vec!["*".parse().unwrap()],
            agent: None,
            expires_at: expires_at.map(Timestamp),
            anyway: true,
        };
        let (Created { .. }, secret) = self.logins.tokens().create(new).unwrap();
        secret
    }

    fn log_in(&self, secret: &Secret) -> String {
        self.logins.begin(secret.reveal()).unwrap().unwrap().0
    }

    fn refused(&self, id: &str) -> Unauthorized {
        self.logins.find(id).map(|_| ()).unwrap_err()
    }

    fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
    }
}

#[test]
fn a_login_stands_for_its_token() {
    let house = House::new();
    assert!(house.logins.begin("anything").unwrap().is_none(), "no token is needed");
    let secret = house.token("a", None);
    assert!(matches!(
        house.logins.begin("bb_wrong"),
        Err(BeginError::Unauthorized(Unauthorized::Unknown))
    ));
    let id = house.log_in(&secret);
    let (caller, login) = house.logins.find(&id).unwrap();
    assert_eq!(caller.grant().unwrap().token(), &login.token);
    assert_eq!(login.token.name.as_str(), "a");
    assert_eq!(house.refused("other"), Unauthorized::LoggedOut);
    house.logins.end(&id).unwrap();
    assert_eq!(house.refused(&id), Unauthorized::LoggedOut);
}

#[test]
fn a_login_ends_with_its_token() {
    let house = House::new();
    let (secret, short) = (house.token("a", None), house.token("b", Some(50)));
    let (id, other) = (house.log_in(&secret), house.log_in(&short));
    house.pass(60);
    assert_eq!(house.refused(&other), Unauthorized::Expired);
    house.logins.tokens().revoke("a").unwrap();
    assert_eq!(house.refused(&id), Unauthorized::Revoked);
}

#[test]
fn a_login_ends_when_idle_and_after_its_time() {
    let house = House::new();
    let secret = house.token("a", None);
    let (used, idle) = (house.log_in(&secret), house.log_in(&secret));
    let uses = LOGIN_MS_MAX / (LOGIN_IDLE_MS_MAX - 1);
    for _ in 0..uses {
        house.pass(LOGIN_IDLE_MS_MAX - 1);
        house.logins.find(&used).unwrap();
    }
    assert_eq!(house.refused(&idle), Unauthorized::LoggedOut);
    house.pass(LOGIN_MS_MAX - uses * (LOGIN_IDLE_MS_MAX - 1));
    assert_eq!(house.refused(&used), Unauthorized::LoggedOut);
}

#[test]
fn the_least_recently_used_login_makes_room() {
    let house = House::new();
    let (secret, other) = (house.token("a", None), house.token("b", None));
    let of_other = house.log_in(&other);
    let ids: Vec<_> = (0..TOKEN_LOGINS_MAX)
        .map(|_| {
            house.pass(1);
            house.log_in(&secret)
        })
        .collect();
    house.pass(1);
    house.logins.find(&ids[0]).unwrap();
    house.log_in(&secret);
    assert_eq!(house.refused(&ids[1]), Unauthorized::LoggedOut);
    for id in [&of_other, &ids[0], &ids[2]] {
        house.logins.find(id).unwrap();
    }
}

#[test]
fn a_logout_is_known_until_its_login_is_over() {
    let (token, other) = (TokenId(Uuid::from_u128(1)), TokenId(Uuid::from_u128(2)));
    let login = |number: u8| Digest::of(&[number]);
    let row = |login, made_at| LogoutRow { token: token.0, login, made_at: Timestamp(made_at) };
    let mut logouts = Logouts::default();
    let read = vec![(3, row(Some(login(1)), 10)), (7, row(Some(login(2)), 20)), (9, row(None, 15))];
    logouts.take_in(read, Timestamp(0));
    assert_eq!(logouts.seen(), 9);
    let have = |logouts: &Logouts, token, number, made_at| {
        logouts.have(token, login(number), Timestamp(made_at))
    };
    assert!(have(&logouts, token, 1, 10) && have(&logouts, token, 2, 20));
    assert!(have(&logouts, token, 3, 15), "it began before the end of all");
    assert!(!have(&logouts, token, 3, 16) && !have(&logouts, other, 1, 10));
    logouts.take_in(Vec::new(), Timestamp(16));
    assert!(!have(&logouts, token, 1, 10) && have(&logouts, token, 2, 20));
    logouts.take_in(Vec::new(), Timestamp(21));
    assert!(!have(&logouts, token, 2, 20));
    assert_eq!(logouts.seen(), 9);
}
