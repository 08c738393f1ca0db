//! Tests of truncated, torn and corrupted write-ahead logs.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::sqlite::{ANNA, OPTIONS, open, run, stored};
use crate::sqlite::wal;
use crate::sqlite::wal::repair::mend;
use crate::sqlite::wal::{Break, End};
use crate::*;

const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;
const COMMITS: u64 = 12;

fn database(dir: &Path) -> PathBuf {
    dir.join("blackboard.db")
}

fn log_of(dir: &Path) -> PathBuf {
    dir.join("blackboard.db-wal")
}

/// A store as kill -9 leaves it, with commits in its log, some of one frame and some of several.
fn killed(dir: &Path, options: SqliteOptions) -> Epoch {
    let other = TempDir::new().unwrap();
    // An earlier log is longer, so that some of it is left behind this one.
    open(other.path()).append(&[run(ANNA, 0, &[vec![1; 300_000]])]);
    let store = SqliteStore::open(other.path(), options).unwrap();
    for revision in 1..=COMMITS {
        let body = vec![7; if revision % 3 == 0 { 10_000 } else { 10 }];
        assert_eq!(store.append(&[run(ANNA, revision, &[body])]), [Outcome::Appended]);
    }
    fs::create_dir_all(dir).unwrap();
    fs::copy(database(other.path()), database(dir)).unwrap();
    fs::copy(log_of(other.path()), log_of(dir)).unwrap();
    store.epoch()
}

fn killed_log() -> Vec<u8> {
    let dir = TempDir::new().unwrap();
    killed(dir.path(), OPTIONS);
    fs::read(log_of(dir.path())).unwrap()
}

fn end(log: &[u8]) -> End {
    wal::end(&mut Cursor::new(log)).unwrap()
}

/// The offset of each frame of this log, and true if it is a commit.
fn frames(log: &[u8]) -> Vec<(usize, bool)> {
    let starts = (HEADER..log.len()).step_by(FRAME);
    let of_log = starts.take_while(|at| log.get(at + 8..at + 16) == log.get(16..24));
    of_log.map(|at| (at, log[at + 4..at + 8] != [0; 4])).collect()
}

/// The end of the last transaction.
pub(super) fn length(log: &[u8]) -> usize {
    frames(log).last().map_or(HEADER, |(at, _)| at + FRAME)
}

/// The start and end of the last transaction.
fn last_transaction(log: &[u8]) -> (usize, usize) {
    let frames = frames(log);
    let (last, _) = frames.split_last().unwrap();
    assert!(last.1, "a commit ends it");
    let before = frames[..frames.len() - 1].iter().rposition(|(_, commits)| *commits).unwrap();
    (frames[before + 1].0, last.0 + FRAME)
}

fn flip(log: &mut [u8], bit: usize) {
    log[bit / 8] ^= 1 << (bit % 8);
}

#[test]
fn a_log_that_a_kill_leaves_is_whole() {
    let log = killed_log();
    let frames = frames(&log);
    let commits = frames.iter().filter(|(_, commits)| *commits).count();
    assert_eq!(commits as u64, COMMITS);
    assert!(frames.len() > commits + 5, "some transactions have several frames");
    assert!(log.len() > HEADER + frames.len() * FRAME, "an earlier log is behind this one");
    assert_eq!(end(&log), End::Whole);
    assert_eq!(end(&[]), End::Whole);
    assert_eq!(end(&log[..HEADER]), End::Whole);
}

#[test]
fn any_changed_bit_in_the_log_is_found_for_what_it_is() {
    let mut log = killed_log();
    let (last, log_end) = last_transaction(&log);
    let heads = frames(&log).into_iter().flat_map(|(at, _)| (at * 8..(at + 24) * 8).step_by(5));
    let spread = (HEADER * 8..log_end * 8).step_by(1_009);
    for bit in (0..HEADER * 8).chain(heads).chain(spread).collect::<Vec<_>>() {
        flip(&mut log, bit);
        let found = end(&log);
        let byte = bit / 8;
        match found {
            End::Early(Break { commits, .. }) => assert!(byte >= last && commits == 1, "bit {bit}"),
            End::Damaged(Break { frame, commits }) => {
                let broken = byte.checked_sub(HEADER).map_or(0, |at| at / FRAME + 1);
                assert!(frame == broken as u64 && commits > 1, "bit {bit}: {found:?}");
            }
            End::Whole => panic!("bit {bit} goes unnoticed"),
        }
        flip(&mut log, bit);
    }
    assert_eq!(end(&log), End::Whole);
}

#[test]
fn a_log_cut_anywhere_in_its_last_transaction_is_not_damaged() {
    let log = killed_log();
    let (last, log_end) = last_transaction(&log);
    for length in
        (last..log_end).step_by(97).chain(last..last + 30).chain(log_end - 5000..log_end - 4000)
    {
        let committed = frames(&log).last().unwrap().0 + 24 <= length;
        match end(&log[..length]) {
            End::Early(_) => assert!(committed, "{length}"),
            End::Whole => assert!(!committed, "{length}"),
            End::Damaged(found) => panic!("{length}: {found:?}"),
        }
    }
}

proptest! {
    /// A power cut leaves any pieces of an unsynced transaction, in place of older ones.
    #[test]
    fn a_torn_transaction_is_no_proof_of_damage(pieces: u64, bytes in prop::sample::select(vec![512, 4096]), zeros: bool) {
        thread_local! { static LOG: Vec<u8> = killed_log(); }
        let mut log = LOG.with(Clone::clone);
        let (last, log_end) = last_transaction(&log);
        // The older content is an earlier log's.
        let before = log[log_end..log_end + (log_end - last)].to_vec();
        for piece in last / bytes..=log_end / bytes {
            if pieces >> (piece % 64) & 1 == 1 {
                let range = (piece * bytes).max(last)..((piece + 1) * bytes).min(log_end);
                let old = if zeros { vec![0; range.len()] } else { before[range.start - last..range.end - last].to_vec() };
                log[range].copy_from_slice(&old);
            }
        }
        let found = end(&log);
        prop_assert!(!matches!(found, End::Damaged(_)), "{:?}", found);
    }
}

/// The log of a store with an earlier log's commits behind its own.
fn log_over_an_earlier_one(dir: &Path) -> Vec<u8> {
    let append = |store: &SqliteStore, revision| {
        let outcomes = store.append(&[run(ANNA, revision, &[vec![7; 10]])]);
        assert_eq!(outcomes, [Outcome::Appended]);
    };
    let earlier = open(dir);
    (0..120).for_each(|revision| append(&earlier, revision));
    drop(earlier);
    let store = open(dir);
    append(&store, 120);
    let log = fs::read(log_of(dir)).unwrap();
    let after = length(&log);
    assert!(log.len() > after + 40 * FRAME, "{} behind this one", log.len() - after);
    log
}

#[test]
fn a_header_torn_behind_its_size_is_no_proof_of_damage() {
    let dir = TempDir::new().unwrap();
    log_over_an_earlier_one(dir.path());
    let store = open(dir.path());
    assert_eq!(store.append(&[run(ANNA, 121, &[vec![7; 300_000]])]), [Outcome::Appended]);
    let mut log = fs::read(log_of(dir.path())).unwrap();
    // A sector ends behind the size of one of 64 frames. The size before was that of an earlier log's commit.
    let (at, is_commit) = frames(&log)[41];
    assert_eq!(((at + 8) % 512, is_commit), (0, false));
    log[at + 4..at + 8].copy_from_slice(&200_u32.to_be_bytes());
    let found = end(&log);
    assert!(matches!(found, End::Early(Break { frame: 42, .. })), "{found:?}");
}

/// Gives a frame of an earlier log this one's salts: a write of its header that a power cut tore.
fn tear_header(log: &mut [u8], at: usize) {
    log.copy_within(16..24, at + 8);
}

#[test]
fn a_torn_header_before_an_earlier_log_is_no_proof_of_damage() {
    let dir = TempDir::new().unwrap();
    let log = log_over_an_earlier_one(dir.path());
    for at in (length(&log)..).step_by(FRAME).take(20) {
        let mut torn = log.clone();
        tear_header(&mut torn, at);
        assert!(!matches!(end(&torn), End::Damaged(_)), "{at}");
    }
}

#[test]
fn a_salvage_leaves_the_frames_of_an_earlier_log() {
    let dir = TempDir::new().unwrap();
    let log = log_over_an_earlier_one(dir.path());
    let copy = dir.path().join("copy");
    for at in (length(&log)..).step_by(FRAME).take(20) {
        let mut torn = log.clone();
        tear_header(&mut torn, at);
        fs::write(&copy, &torn).unwrap();
        assert_eq!(mend(&copy).unwrap(), 0, "{at}");
        assert!(fs::read(&copy).unwrap() == torn, "{at}: nothing to mend");
        // A changed bit of a salt in a frame of this log is mended nevertheless.
        flip(&mut torn, (HEADER + 8) * 8);
        fs::write(&copy, &torn).unwrap();
        assert_eq!(mend(&copy).unwrap(), 0, "{at}");
        assert!(fs::read(&copy).unwrap() == log[..length(&log)], "{at}: this log alone");
    }
}

fn contents(dir: &Path) -> Vec<Vec<u8>> {
    [database(dir), log_of(dir)].map(|path| fs::read(path).unwrap()).into()
}

#[test]
fn a_start_reads_all_commits_or_refuses_or_changes_its_epoch() {
    let dir = TempDir::new().unwrap();
    let epoch = killed(dir.path(), OPTIONS);
    let sound = contents(dir.path());
    let (last, log_end) = last_transaction(&sound[1]);
    let mut refused = 0;
    for at in (0..log_end).step_by(7_001).chain([last + 3, last + 30, log_end - 1]) {
        fs::write(database(dir.path()), &sound[0]).unwrap();
        let mut log = sound[1].clone();
        log[at] ^= 0x10;
        fs::write(log_of(dir.path()), &log).unwrap();
        match SqliteStore::open(dir.path(), OPTIONS) {
            Err(StoreError::DamagedLog { path, .. }) => {
                assert!(at < last && path == log_of(dir.path()), "byte {at}");
                assert_eq!(contents(dir.path()), [sound[0].clone(), log], "byte {at}");
                refused += 1;
            }
            Err(error) => panic!("byte {at}: {error}"),
            Ok(store) => {
                assert_eq!(stored(&store).len() as u64, COMMITS, "byte {at}");
                assert_ne!(store.epoch(), epoch, "byte {at}");
                drop(store);
                assert_ne!(open(dir.path()).epoch(), epoch);
            }
        }
    }
    assert!(refused > 5);
    fs::write(database(dir.path()), &sound[0]).unwrap();
    fs::write(log_of(dir.path()), &sound[1]).unwrap();
    let store = open(dir.path());
    assert_eq!((stored(&store).len() as u64, store.epoch()), (COMMITS + 1, epoch));
}

#[test]
fn an_unsynced_log_that_breaks_off_is_read_up_to_there() {
    let dir = TempDir::new().unwrap();
    let epoch = killed(dir.path(), SqliteOptions { sync: SyncLevel::Normal, ..OPTIONS });
    let mut log = fs::read(log_of(dir.path())).unwrap();
    log[HEADER + 5 * FRAME] ^= 1;
    assert!(matches!(end(&log), End::Damaged(_)));
    fs::write(log_of(dir.path()), log).unwrap();
    let store = open(dir.path());
    let commits = stored(&store).len() as u64;
    assert!(0 < commits && commits < COMMITS, "{commits}");
    assert_ne!(store.epoch(), epoch);
}

#[test]
fn a_store_whose_log_is_gone_has_another_epoch() {
    let dir = TempDir::new().unwrap();
    let epoch = killed(dir.path(), OPTIONS);
    fs::remove_file(log_of(dir.path())).unwrap();
    let other = open(dir.path()).epoch();
    assert_ne!(other, epoch);
    assert_eq!(open(dir.path()).epoch(), other);
}
