//! Tests of a log against a plain list of entries: equal entries, places and texts after any changes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::texts::Keys;
use super::*;
use crate::{Done, Timestamp};

/// The expected contents of a log.
#[derive(Clone, Debug, Default)]
struct Model {
    entries: Vec<Entry>,
    last: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Append(Vec<usize>),
    Update(usize, usize),
    Mark(usize, bool),
    /// Removes all entries except this number of the newest.
    Evict(usize),
    /// Removes the entries whose index leaves this remainder.
    Remove(usize, usize),
    /// Removes consecutive entries from this index on.
    RemoveRun(usize, usize),
    Clear,
    EndClaims,
    /// Restores an earlier log.
    Restore(usize),
    /// Changes a copy that is then discarded.
    Abandon(Vec<usize>),
    Read(bool),
    Forget,
}

/// A text that differs by entry and length. Some texts are as long as a chunk.
fn item_of(seq: u64, bytes: usize) -> Item {
    Item::from_json(&format!("{{\"n\":{seq},\"é\":\"{}\"}}", "x".repeat(bytes))).unwrap()
}

fn write(entry: &Entry, keys: &Keys, text: &mut String) {
    let keys = keys.as_ref().map(|keys| keys.join("+")).unwrap_or_default();
    text.push_str(&format!("<{keys}{}>", entry.item.text()));
}

const ALL: TextKind = TextKind { form: TextForm::Literals, keys: None };

fn stamp(revision: u64) -> Stamp<'static> {
    Stamp { revision: Revision(revision), at: Timestamp(5), agent: None }
}

fn variants() -> [Keys; 3] {
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    [None, Some(keys(&["a", "b"])), Some(keys(&["c"]))]
}

fn text_of(log: &Log, indexes: Range<usize>, keys: &Keys) -> String {
    let runs = log.runs(indexes).map(|run| {
        let kind = TextKind { form: TextForm::Literals, keys: keys.clone() };
        let text = run.text(&kind, |entry, text| write(entry, keys, text));
        let markdown = TextKind { form: TextForm::Markdown, ..kind.clone() };
        let other = run.text(&markdown, |entry, text| {
            text.push('#');
            write(entry, keys, text);
        });
        let weights = run.weights(&markdown, Tokenizer::Other, &other, |text| text.len() as u64);
        assert!(weights.each().eq(text.each().map(|text| text.len() as u64 + 1)));
        assert_eq!(run.len(), text.each().count());
        let each: Vec<u8> = text.each().flat_map(|bytes| bytes.to_vec()).collect();
        assert_eq!(each, text.whole().flat_map(|bytes| bytes.to_vec()).collect::<Vec<_>>());
        String::from_utf8(each).unwrap()
    });
    runs.collect()
}

impl Model {
    fn entry(&self, seq: u64, bytes: usize, revision: u64) -> Entry {
        let (at, item) = (Timestamp(5), item_of(seq, bytes));
        let (agent, updated, work) = (None, None, None);
        Entry {
            seq: Seq(seq),
            revision: Revision(revision),
            at,
            agent,
            updated,
            work,
            task: None,
            acked_at: None,
            item,
        }
    }

    fn append(&mut self, sizes: &[usize], revision: u64) -> Vec<Item> {
        for bytes in sizes {
            self.last += 1;
            let entry = self.entry(self.last, *bytes, revision);
            self.entries.push(entry);
        }
        let from = self.entries.len() - sizes.len();
        self.entries[from..].iter().map(|entry| entry.item.clone()).collect()
    }

    fn ranges(&self, log: &Log, gone: &BTreeSet<u64>) -> Vec<SeqRange> {
        let here = self.entries.iter().map(|entry| entry.seq);
        ranges(log, &here.filter(|seq| gone.contains(&seq.0)).collect::<Vec<_>>())
    }

    fn remove(&mut self, log: &mut Log, gone: &BTreeSet<u64>, revision: u64) {
        log.remove(&self.ranges(log, gone), Revision(revision));
        self.entries.retain(|entry| !gone.contains(&entry.seq.0));
    }

    fn seqs(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.seq.0).collect()
    }

    fn touch(&mut self, index: usize, revision: u64) -> Option<&mut Entry> {
        let count = self.entries.len().max(1);
        let entry = self.entries.get_mut(index % count)?;
        entry.revision = Revision(revision);
        entry.updated = Some(Box::new(Updated { at: Timestamp(5), by: None }));
        Some(entry)
    }

    fn check(&self, log: &Log) {
        assert_eq!(log.len(), self.entries.len());
        assert!(log.iter().map(|entry| &**entry).eq(&self.entries));
        assert!(log.iter().rev().map(|entry| &**entry).eq(self.entries.iter().rev()));
        assert_eq!(log.bytes(), self.entries.iter().map(Entry::bytes).sum::<u64>());
        assert_eq!((log.last_seq(), log.is_empty()), (Seq(self.last), self.entries.is_empty()));
        let seqs: BTreeSet<_> = self.seqs().into_iter().collect();
        for seq in (0..self.last + 3).step_by(1 + usize::try_from(self.last / 50).unwrap()) {
            assert_eq!(log.count_through(Seq(seq)), seqs.range(..=seq).count());
            assert_eq!(log.get(Seq(seq)).map(|entry| entry.seq.0), seqs.get(&seq).copied());
        }
        for index in [0, 1, self.entries.len() / 2, self.entries.len()] {
            assert_eq!(log.at(index).map(|entry| &**entry), self.entries.get(index));
        }
    }

    fn check_texts(&self, log: &Log, keys: &Keys) {
        let count = self.entries.len();
        for indexes in
            [0..count, count / 3..count, count.saturating_sub(2)..count + 5, 1..count / 2]
        {
            let mut expected = String::new();
            let shown = self.entries.iter().skip(indexes.start).take(indexes.len());
            shown.for_each(|entry| write(entry, keys, &mut expected));
            assert!(text_of(log, indexes, keys) == expected);
        }
    }

    fn check_last_runs(&self, log: &Log) {
        let count = self.entries.len();
        let seqs = |run: Run| run.entries().map(|entry| entry.seq).collect::<Vec<_>>();
        for indexes in [0..count, count / 3..count, count / 2..count / 2 + 1, 1..count / 2] {
            let mut rest = indexes.start..indexes.end.min(count);
            let mut found = Vec::new();
            while let Some(run) = log.last_run(rest.clone()) {
                rest.end -= run.len();
                found.push(seqs(run));
            }
            found.reverse();
            assert_eq!(found, log.runs(indexes).map(seqs).collect::<Vec<_>>());
        }
    }
}

fn done() -> Work {
    Work::Done(Done { agent: None, at: Timestamp(5), fence: None, result: None, verdict: None })
}

fn restore(model: &mut Model, log: &mut Log, then: &Model, revision: u64) {
    let known: BTreeSet<_> = then.seqs().into_iter().collect();
    let gone: BTreeSet<_> = model.seqs().into_iter().filter(|seq| !known.contains(seq)).collect();
    let removed = model.ranges(log, &gone);
    let mut back = then.entries.clone();
    back.retain(|entry| model.entries.iter().all(|own| own != entry));
    for entry in &mut back {
        (entry.revision, entry.work) = (Revision(revision), None);
    }
    let put: Vec<_> = back.iter().cloned().map(Arc::new).collect();
    log.put_back(&removed, &put, Revision(revision));
    model.entries.retain(|own| !gone.contains(&own.seq.0));
    model.entries.retain(|own| back.iter().all(|entry| entry.seq != own.seq));
    model.entries.extend(back);
    model.entries.sort_by_key(|entry| entry.seq);
}

/// Applies the change to the model and to the log.
fn change(model: &mut Model, log: &mut Log, past: &[(Model, Log)], change: &Change, revision: u64) {
    let count = model.entries.len();
    match change {
        Change::Append(sizes) => {
            let first = log.next_seq();
            log.append(first, &model.append(sizes, revision), stamp(revision));
        }
        Change::Update(index, bytes) => {
            let Some(entry) = model.touch(*index, revision) else { return };
            entry.item = item_of(entry.seq.0, *bytes);
            log.update(entry.seq, &entry.item, stamp(revision));
        }
        Change::Mark(index, is_done) => {
            let Some(entry) = model.touch(*index, revision) else { return };
            let lapsed = Work::Lapsed { fence: Revision(1) };
            let work = if *is_done { done() } else { lapsed };
            entry.work = Some(Box::new(work.clone()));
            log.change(entry.seq, stamp(revision), |entry| entry.work = Some(Box::new(work)));
        }
        Change::Evict(keep) => {
            let gone = model.seqs().into_iter().take(count.saturating_sub(*keep)).collect();
            model.remove(log, &gone, revision);
        }
        Change::Remove(divisor, rest) => {
            let seqs = model.seqs().into_iter().enumerate();
            let gone = seqs.filter(|(at, _)| at % divisor == rest % divisor).map(|(_, seq)| seq);
            model.remove(log, &gone.collect(), revision);
        }
        Change::RemoveRun(from, length) => {
            let from = from % count.max(1);
            let gone = model.seqs().into_iter().skip(from).take(*length).collect();
            model.remove(log, &gone, revision);
        }
        Change::Clear => {
            model.entries.clear();
            log.clear(Revision(revision));
        }
        Change::EndClaims => {
            for entry in &mut model.entries {
                if entry.work.as_deref().is_some_and(Work::is_open) {
                    (entry.work, entry.revision) = (None, Revision(revision));
                }
            }
            assert_eq!(log.end_claims(stamp(revision)), []);
        }
        Change::Restore(index) => {
            if let Some((then, _)) = past.get(index % past.len().max(1)) {
                restore(model, log, then, revision);
            }
        }
        Change::Abandon(sizes) => {
            let (mut other, mut copy) = (model.clone(), log.clone());
            copy.append(copy.next_seq(), &other.append(sizes, 999), stamp(999));
            other.check(&copy);
            other.check_texts(&copy, &None);
        }
        Change::Read(all) => {
            let [every, one, other] = variants();
            model.check_texts(log, if *all { &every } else { &one });
            model.check_texts(log, if revision.is_multiple_of(5) { &other } else { &one });
        }
        Change::Forget => {
            log.forget_texts();
            assert_eq!(log.kept_text_bytes(), 0);
        }
    }
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![20 => 0..40_usize, 10 => 300..3_000_usize, 1 => 60_000..140_000_usize];
    prop_oneof![
        6 => prop::collection::vec(size, 1..4),
        3 => prop::collection::vec(0..900_usize, 40..120),
        1 => prop::collection::vec(0..3_usize, 300..600),
    ]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        10 => sizes().prop_map(Change::Append),
        3 => (any::<usize>(), 0..2_000_usize).prop_map(|(at, bytes)| Change::Update(at, bytes)),
        1 => (any::<usize>(), 60_000..200_000_usize).prop_map(|(at, bytes)| Change::Update(at, bytes)),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(at, is_done)| Change::Mark(at, is_done)),
        3 => (0..400_usize).prop_map(Change::Evict),
        2 => (1..30_usize, any::<usize>()).prop_map(|(by, rest)| Change::Remove(by, rest)),
        3 => (any::<usize>(), 1..200_usize).prop_map(|(from, length)| Change::RemoveRun(from, length)),
        1 => Just(Change::Clear),
        1 => Just(Change::EndClaims),
        2 => any::<usize>().prop_map(Change::Restore),
        3 => sizes().prop_map(Change::Abandon),
        8 => any::<bool>().prop_map(Change::Read),
        1 => Just(Change::Forget),
    ];
    prop::collection::vec(change, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_log_is_a_list_of_entries_and_its_texts_are_theirs(changes in changes()) {
        let (mut model, mut log) = (Model::default(), Log::default());
        let mut past: Vec<(Model, Log)> = Vec::new();
        for (revision, one) in (1..).zip(&changes) {
            change(&mut model, &mut log, &past, one, revision);
            model.check(&log);
            model.check_last_runs(&log);
            past.push((model.clone(), log.clone()));
        }
        for (then, log) in &past {
            then.check(log);
            variants().iter().for_each(|keys| then.check_texts(log, keys));
        }
        let mut again = Log::restore(log.last_seq(), log.changed());
        for entry in &model.entries {
            assert!(again.restore_entry(entry.clone()));
        }
        assert_eq!(again, log);
    }
}

#[test]
fn what_is_appended_leaves_the_texts_of_what_was_there() {
    let (mut model, mut log) = (Model::default(), Log::default());
    let (mut made, mut weighed) = (0, 0);
    for revision in 1..400_u64 {
        log.append(log.next_seq(), &model.append(&[800], revision), stamp(revision));
        for run in log.runs(0..log.len()) {
            let text = run.text(&ALL, |entry, text| {
                made += 1;
                write(entry, &None, text);
            });
            drop(run.weights(&ALL, Tokenizer::Other, &text, |text| {
                weighed += 1;
                text.len() as u64
            }));
        }
        if revision.is_multiple_of(7) {
            model.remove(&mut log, &BTreeSet::from([model.seqs()[0]]), revision);
        }
    }
    assert_eq!((made, weighed), (399, 399), "each entry is written and weighed once");
    assert!(log.kept_text_bytes() > 800 * log.len());
}

#[test]
fn a_change_leaves_the_texts_of_the_other_chunks() {
    let (mut model, mut log) = (Model::default(), Log::default());
    log.append(Seq(1), &model.append(&[800; 1_000], 1), stamp(1));
    let count = |log: &Log| log.runs(0..log.len()).filter(|run| run.has_text(&ALL)).count();
    drop(text_of(&log, 0..log.len(), &None));
    let all = count(&log);
    assert!(all > 10, "{all}");
    for (revision, one) in (2..).zip([
        Change::Update(500, 10),
        Change::RemoveRun(300, 3),
        Change::Evict(990),
        Change::RemoveRun(980, 1),
    ]) {
        change(&mut model, &mut log, &[], &one, revision);
        assert!(count(&log) + 1 >= all, "{one:?}");
        model.check_texts(&log, &None);
    }
    change(&mut model, &mut log, &[], &Change::Mark(700, true), 9);
    assert_eq!(count(&log), all, "what becomes of a request is not in its item");
}

#[test]
fn successive_logs_differ_only_where_they_changed() {
    let (mut model, mut log) = (Model::default(), Log::default());
    log.append(Seq(1), &model.append(&[800; 2_000], 1), stamp(1));
    let before = log.clone();
    let one = Change::Update(700, 10);
    change(&mut model, &mut log, &[], &one, 2);
    log.append(log.next_seq(), &model.append(&[5], 3), stamp(3));
    let (own, others) = log.apart(&before);
    for (runs, whole) in [(&own, &log), (&others, &before)] {
        let count: usize = runs.iter().map(Run::len).sum();
        assert!((1..=2 * CHUNK_ENTRIES).contains(&count), "{count} of {}", whole.len());
    }
    let entries = |runs: &[Run]| -> BTreeSet<u64> {
        runs.iter().flat_map(Run::entries).map(|entry| entry.seq.0).collect()
    };
    let added: Vec<_> = entries(&own).difference(&entries(&others)).copied().collect();
    assert_eq!(added, [2_001]);
    let (own, others) = log.apart(&log.clone());
    assert!(own.is_empty() && others.is_empty());
}

#[test]
fn a_log_knows_whether_it_ascends_in_time() {
    let (mut model, mut log) = (Model::default(), Log::default());
    let mut revision = 0;
    let mut append = |log: &mut Log, count, at| {
        revision += 1;
        let stamp = Stamp { at: Timestamp(at), ..stamp(revision) };
        log.append(log.next_seq(), &model.append(&vec![100; count], revision), stamp);
    };
    assert!(log.ascends_in_time());
    for (count, at) in [(1, 5), (300, 6), (1, 6), (2, 9)] {
        append(&mut log, count, at);
        assert!(log.ascends_in_time());
    }
    append(&mut log, 1, 8);
    assert!(!log.ascends_in_time(), "in the tail");
    append(&mut log, 600, 9);
    assert!(!log.ascends_in_time(), "in a chunk");
}

#[test]
fn many_removals_leave_no_small_chunks() {
    let (mut model, mut log) = (Model::default(), Log::default());
    log.append(Seq(1), &model.append(&[800; 4_000], 1), stamp(1));
    let seqs: Vec<_> = (1..=4_000_u64).filter(|seq| !seq.is_multiple_of(50)).collect();
    for (revision, seqs) in (2..).zip(seqs.chunks(20)) {
        let gone = seqs.iter().copied().collect();
        model.remove(&mut log, &gone, revision);
    }
    model.check(&log);
    assert!(log.runs(0..log.len()).count() <= 4);
}

#[test]
fn a_removal_that_joins_the_oldest_chunks_moves_all_behind() {
    let (whole, quarter) = (CHUNK_ENTRIES, CHUNK_ENTRIES / 4);
    let at_once = [(1, 3 * quarter), (quarter, 2 * quarter), (2, whole - 3)];
    let mut removals = at_once.map(|one| vec![one]).to_vec();
    removals.push(vec![(1, 1); whole / 2]);
    for removals in removals {
        let (mut model, mut log) = (Model::default(), Log::default());
        // The second chunk is short, since a long item follows.
        let sizes = [vec![1; whole + quarter], vec![90_000, 1]];
        let removals = removals.iter().map(|(from, length)| Change::RemoveRun(*from, *length));
        let changes = sizes.map(Change::Append).into_iter().chain(removals);
        for (revision, one) in (1..).zip(changes) {
            change(&mut model, &mut log, &[], &one, revision);
            model.check(&log);
        }
        assert_eq!(log.parts.len(), 2, "the first two are one");
    }
}
