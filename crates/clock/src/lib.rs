//! The server's clock: wall time, checked against a monotonic clock.
//!
//! After a jump of the wall clock nothing expires until the new time has lasted. A jump that is undone deletes nothing.
//! Over a store with a clock of its own the wall time is the store's: how far the host's is from it is no jump.

pub mod steady;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::steady::{length, ms, steady};
use blackboard_board::Timestamp;

/// The wall clock has jumped if it moves further from the monotonic clock than this.
const JUMP_MS: i64 = 60 * 1000;

/// The time for which a wall clock is held after a jump.
const HELD_MS: i64 = 10 * 60 * 1000;

/// Tells the time. Cloning gives the same clock.
#[derive(Clone)]
pub struct Clock(Arc<Watched>);

struct Watched {
    wall: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Absent if the wall clock is always trusted.
    steady: Option<Box<dyn Fn() -> Duration + Send + Sync>>,
    trust: Mutex<Trust>,
}

/// The wall clock's lead over the monotonic clock in milliseconds, before and after a jump.
#[derive(Clone, Copy, Debug, Default)]
struct Trust {
    /// The lead while the clock was trusted. Absent before the first reading.
    believed: Option<i64>,
    jumped: Option<Jump>,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    /// After the jump.
    ahead: i64,
    /// When it was seen, by the monotonic clock.
    seen: i64,
}

/// Change of a jump's state since the last reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The clock jumped by this many milliseconds.
    Jumped(i64),
    /// The clock is back.
    Back,
    /// The clock stayed at the new time.
    Stayed,
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock's time.
    pub now: Timestamp,
    /// True if the wall clock jumped recently.
    pub is_held: bool,
}

impl Reading {
    /// Deadlines up to this moment have come: none while the clock is held.
    #[must_use]
    pub fn due(self) -> Timestamp {
        if self.is_held { Timestamp(i64::MIN) } else { self.now }
    }
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        let wall = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Timestamp(ms(since))
        };
        Self::watched(wall, steady)
    }

    /// The clock of a store that other servers write to: all of them have its time, whatever their hosts' clocks say.
    #[must_use]
    pub fn of_store(time: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self::watched(move || time(), steady)
    }

    /// A clock that is always trusted, even if it stands still or jumps. A session's commit times never go back.
    #[must_use]
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(Watched { wall: Box::new(now), steady: None, trust: Mutex::default() }))
    }

    /// A wall clock that is held once it jumps against a steady one.
    #[must_use]
    pub fn watched(
        wall: impl Fn() -> Timestamp + Send + Sync + 'static,
        steady: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let steady: Box<dyn Fn() -> Duration + Send + Sync> = Box::new(steady);
        let (wall, trust) = (Box::new(wall), Mutex::default());
        Self(Arc::new(Watched { wall, steady: Some(steady), trust }))
    }

    /// The wall clock's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0.wall)()
    }

    /// The wall clock's time, and whether deadlines may be compared with it.
    #[must_use]
    pub fn read(&self) -> Reading {
        let Some(steady) = &self.0.steady else {
            return Reading { now: self.now(), is_held: false };
        };
        let mut trust = self.0.trust.lock();
        // Both are read within the lock, or a thread delayed in between would see a jump.
        let (since, now) = (ms(steady()), self.now());
        let news = trust.note(now.0.saturating_sub(since), since);
        let is_held = trust.jumped.is_some();
        drop(trust);
        if let Some(news) = news {
            tell(news);
        }
        Reading { now, is_held }
    }
}

impl Trust {
    /// Notes the wall clock's lead at a time of the monotonic clock.
    fn note(&mut self, ahead: i64, since: i64) -> Option<News> {
        let believed = *self.believed.get_or_insert(ahead);
        let is_near = |other: i64| ahead.saturating_sub(other).saturating_abs() <= JUMP_MS;
        if is_near(believed) {
            return self.jumped.take().map(|_| News::Back);
        }
        match self.jumped {
            Some(jump) if is_near(jump.ahead) => {
                if since.saturating_sub(jump.seen) < HELD_MS {
                    return None;
                }
                *self = Self { believed: Some(ahead), jumped: None };
                Some(News::Stayed)
            }
            Some(_) | None => {
                self.jumped = Some(Jump { ahead, seen: since });
                Some(News::Jumped(ahead.saturating_sub(believed)))
            }
        }
    }
}

fn tell(news: News) {
    match news {
        News::Jumped(ms) => tracing::warn!(
            jumped_s = ms / 1000,
            held_s = HELD_MS / 1000,
            "the wall clock jumped; expiry is paused until the new time is confirmed"
        ),
        News::Back => tracing::warn!("the wall clock is back; expiry resumes"),
        News::Stayed => {
            tracing::warn!("the wall clock's new time is confirmed; expiry resumes");
        }
    }
}

/// Returns the processor time of this thread, without its waits.
#[must_use]
pub fn worked() -> Duration {
    length(clock_gettime(ClockId::ThreadCPUTime))
}

/// The time from which a lap's processor time is read. A shorter lap counts as it passed: the reading is a system call,
/// which takes as long as most writes need to be decided.
const READ_FROM: Duration = Duration::from_micros(100);

/// Measures the processor time of this thread, lap by lap.
#[derive(Debug)]
pub struct WorkLaps {
    /// The end of the last lap.
    at: Instant,
    /// The processor time when it was read last.
    read: Duration,
    /// The laps since then.
    unread: Duration,
}

impl WorkLaps {
    /// Begins the first lap.
    #[must_use]
    pub fn begin() -> Self {
        Self { at: Instant::now(), read: worked(), unread: Duration::ZERO }
    }

    /// Ends a lap, and returns its processor time.
    pub fn lap(&mut self) -> Duration {
        let passed = self.at.elapsed();
        self.at += passed;
        if passed < READ_FROM {
            self.unread += passed;
            return passed;
        }
        let now = worked();
        let work = now.saturating_sub(self.read).saturating_sub(self.unread);
        (self.read, self.unread) = (now, Duration::ZERO);
        work
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const HOUR: i64 = 60 * 60 * 1000;

    /// Returns the news of each reading, from pairs of the difference between the clocks and the time since the
    /// start.
    fn news(readings: &[(i64, i64)]) -> Vec<Option<News>> {
        let mut trust = Trust::default();
        readings.iter().map(|(ahead, since)| trust.note(*ahead, *since)).collect()
    }

    #[test]
    fn a_jump_either_way_is_held_until_it_is_taken_back() {
        for jump in [HOUR, -HOUR, JUMP_MS + 1] {
            let readings = [(5, 0), (5 + jump, 1000), (5 + jump, 2000), (6, 2200), (7, 2300)];
            assert_eq!(
                news(&readings),
                [None, Some(News::Jumped(jump)), None, Some(News::Back), None]
            );
        }
    }

    #[test]
    fn a_lasting_jump_is_believed_after_ten_minutes() {
        let readings =
            [(0, 0), (HOUR, 1000), (HOUR + 50, HELD_MS + 999), (HOUR, HELD_MS + 1000), (0, HOUR)];
        let jumped = Some(News::Jumped(HOUR));
        let back = Some(News::Jumped(-HOUR));
        assert_eq!(news(&readings), [None, jumped, None, Some(News::Stayed), back]);
    }

    #[test]
    fn another_jump_meanwhile_is_held_for_another_ten_minutes() {
        let last = HELD_MS + 900;
        let readings = [(0, 0), (HOUR, 0), (2 * HOUR, 900), (2 * HOUR, HELD_MS), (2 * HOUR, last)];
        let (one, two) = (Some(News::Jumped(HOUR)), Some(News::Jumped(2 * HOUR)));
        assert_eq!(news(&readings), [None, one, two, None, Some(News::Stayed)]);
    }

    #[test]
    fn a_minute_is_no_jump() {
        let readings = [(0, 0), (JUMP_MS, 1000), (-JUMP_MS, 2000), (0, 3000)];
        assert_eq!(news(&readings), [None; 4]);
    }

    #[test]
    fn a_store_whose_time_is_another_is_believed_until_it_jumps() {
        let off = Arc::new(AtomicI64::new(5 * 60 * 1000));
        let lead = Arc::clone(&off);
        let of_host = || Clock::system().now().0;
        let time = move || Timestamp(of_host().saturating_add(lead.load(Ordering::Relaxed)));
        let clock = Clock::of_store(Arc::new(time));
        assert!(!clock.read().is_held && clock.now().0 - of_host() > JUMP_MS);
        off.fetch_add(JUMP_MS + 1000, Ordering::Relaxed);
        assert!(clock.read().is_held);
        off.fetch_sub(JUMP_MS + 1000, Ordering::Relaxed);
        assert!(!clock.read().is_held);
    }

    #[test]
    fn the_systems_clock_is_believed_from_its_first_reading() {
        let clock = Clock::system();
        let (first, second) = (clock.read(), clock.read());
        assert!(!first.is_held && !second.is_held && first.due() == first.now);
        assert!(first.now <= second.now && first.now > Timestamp(1_700_000_000_000));
    }
}
