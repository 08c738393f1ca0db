//! Tests of archives: exact bytes, round trips, and rejection of altered archives.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::stored::{BaseReader, base_parts, decode_commit, encode_commit};
use crate::tests::board::ID;
use crate::tests::plan::{Step, history, steps};
use crate::*;

const NOW: Timestamp = Timestamp(1_795_244_591_123);

/// The images that plans have.
const IMAGES: [&[u8]; 4] = [b"one", b"two", b"three", b"four"];

/// The SHA-256 of `abc`.
const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// The change of a session's settings to a profile.
fn profiled(profile: &str) -> String {
    format!(r#"{{"configured":{{"settings":{{"profiles":{{"p":{profile}}}}},"labels":{{}}}}}}"#)
}

fn created() -> String {
    r#"{"revision":6,"at":999,"nonce":1,"changes":[{"created":{"name":"s","settings":{},"labels":{}}},{"appended":{"log":"requests","first":1,"items":[{ "a" : 1E5 }]}}]}"#.to_owned()
}

fn pictured() -> String {
    format!(
        r#"{{"revision":7,"at":1000,"agent":"A","nonce":2,"changes":[{{"appended":{{"log":"screenshots","first":1,"items":[{{"image_str":""}}],"images":[[0,{{"at":14,"head":"data:image/png;base64,","sha256":"{DIGEST}","bytes":3}}]]}}}}]}}"#
    )
}

fn small() -> String {
    let header = Header { oldest: Revision(5), revision: Revision(7) };
    let counts = Counts { images: 1, parts: 0, commits: 2 };
    [
        header_line(header),
        image_line(Digest::of(b"abc"), b"abc"),
        commit_line(Revision(6), &created()),
        commit_line(Revision(7), &pictured()),
        end_line(counts),
    ]
    .concat()
}

fn read(archive: &[u8]) -> Result<Board, Fault> {
    read_as_of(archive, NOW)
}

fn read_as_of(archive: &[u8], now: Timestamp) -> Result<Board, Fault> {
    let mut reader = ArchiveReader::new(ID, now);
    let archive = archive.strip_suffix(b"\n").unwrap_or(archive);
    for line in archive.split(|byte| *byte == b'\n') {
        reader.take(line)?;
    }
    reader.finish()
}

/// The archive of a history from a revision on.
fn written(history: &[(Board, Commit)], begin: usize) -> String {
    let Some((last, _)) = history.last() else { return String::new() };
    let base = begin.checked_sub(1).and_then(|begin| history.get(begin)).map(|(board, _)| board);
    let oldest = base.map(Board::revision).unwrap_or_default();
    let header = Header { oldest, revision: last.revision() };
    let mut counts = Counts::default();
    let mut archive = header_line(header);
    for (sha256, _) in last.images() {
        let bytes = IMAGES.into_iter().find(|bytes| Digest::of(bytes) == *sha256);
        archive += &image_line(*sha256, bytes.unwrap());
        counts.images += 1;
    }
    for part in base.into_iter().flat_map(base_parts) {
        archive += &part_line(oldest, std::str::from_utf8(&part.unwrap()).unwrap());
        counts.parts += 1;
    }
    for (_, commit) in history.iter().skip(begin) {
        let body = String::from_utf8(encode_commit(commit).unwrap()).unwrap();
        archive += &commit_line(commit.revision, &body);
        counts.commits += 1;
    }
    archive + &end_line(counts)
}

#[test]
fn an_archive_is_these_bytes_and_stays_so() {
    let lines = [
        r#"{"blackboard_archive":1,"oldest_revision":5,"revision":7,"is_partial":false}"#
            .to_owned(),
        format!(r#"{{"image":{{"sha256":"{DIGEST}","bytes":3,"base64":"YWJj"}}}}"#),
        format!(r#"{{"commit":{},"crc":"CRC6"}}"#, created()),
        format!(r#"{{"commit":{},"crc":"CRC7"}}"#, pictured()),
        r#"{"end":{"images":1,"parts":0,"commits":2}}"#.to_owned(),
    ];
    let crc = |revision: u64, body: &str| {
        let bytes = [&revision.to_le_bytes(), body.as_bytes()].concat();
        format!("{:08x}", crc32fast::hash(&bytes))
    };
    let text = lines.join("\n") + "\n";
    let text = text.replace("CRC6", &crc(6, &created())).replace("CRC7", &crc(7, &pictured()));
    assert_eq!(small(), text);
    let board = read(text.as_bytes()).unwrap();
    assert_eq!((board.id(), board.oldest(), board.revision()), (ID, Revision(5), Revision(7)));
    assert_eq!(board.image_bytes(), 3);
    let request = board.log(&LogName::Requests).unwrap().get(Seq(1)).unwrap();
    assert_eq!(request.item.text(), r#"{ "a" : 1E5 }"#);
    assert_eq!(part_line(Revision(1), "{}"), "{\"part\":{},\"crc\":\"ee37aef4\"}\n");
}

#[test]
fn a_changed_byte_is_refused_or_changes_nothing() {
    let archive = small().into_bytes();
    let board = read(&archive).unwrap();
    let mut changed = archive.clone();
    for at in 0..archive.len() {
        for byte in 0..=u8::MAX {
            changed[at] = byte;
            if let Ok(read) = read(&changed) {
                assert_eq!(read, board, "byte {at} became {byte}");
            }
        }
        changed[at] = archive[at];
    }
}

#[test]
fn a_missing_repeated_or_moved_line_is_refused() {
    let archive = small();
    let lines: Vec<&str> = archive.lines().collect();
    let refused = |lines: &[&str]| {
        assert!(read(lines.join("\n").as_bytes()).is_err(), "{lines:#?}");
    };
    for index in 0..lines.len() {
        let mut changed = lines.clone();
        changed.remove(index);
        refused(&changed);
        let mut changed = lines.clone();
        changed.insert(index, lines[index]);
        refused(&changed);
        let mut changed = lines.clone();
        changed.insert(index, "");
        refused(&changed);
        refused(&lines[..index]);
        for other in 0..index {
            let mut changed = lines.clone();
            changed.swap(index, other);
            refused(&changed);
        }
    }
    assert!(
        read(archive.trim_end().as_bytes()).is_ok(),
        "the end of the last line may be left out"
    );
}

#[test]
fn what_is_no_line_of_an_archive_says_why() {
    #[track_caller]
    fn check(archive: &str, code: Code, why: &str) {
        let fault = read(archive.as_bytes()).unwrap_err();
        assert_eq!(fault.code(), code, "{fault}");
        assert!(fault.to_string().contains(why), "{fault}");
    }
    let archive = small();
    check("", Code::InvalidJson, "a value is missing");
    check("nonsense", Code::InvalidJson, "was found");
    check("{}", Code::InvalidField, "the first line of an archive");
    let later = archive.replace("\"blackboard_archive\":1", "\"blackboard_archive\":2");
    check(&later, Code::InvalidField, "version 2");
    check(
        &archive.replace("\"is_partial\":false", "\"is_partial\":true"),
        Code::InvalidField,
        "order",
    );
    let before = r#"{"format":"blackboard-archive","version":3,"oldest_revision":5,"revision":7}"#;
    check(before, Code::InvalidField, "before the first release");
    check(&archive.replace("1E5", "1E6"), Code::InvalidField, "checksum");
    check(&archive.replace("YWJj", "YWJk"), Code::InvalidField, "image");
    check(&archive.replace("\"commit\":{", "\"comment\":{"), Code::InvalidField, "does not belong");
    check(&archive.replace("}}\n", "}},\n"), Code::InvalidJson, "");
    let (whole, _) = archive.trim_end().rsplit_once('\n').unwrap();
    check(whole, Code::InvalidField, "truncated");
    let end = end_line(Counts { images: 1, parts: 0, commits: 3 });
    check(&format!("{whole}\n{end}"), Code::InvalidField, "declares");
    let longer = archive.replace("\"revision\":7,\"is", "\"revision\":8,\"is");
    check(&longer, Code::InvalidField, "ends at revision 7");
}

/// Returns the small archive with this commit after its first one, correctly sealed.
fn with_commit(changes: &str, at: i64, rest: &str) -> String {
    let body = format!(r#"{{"revision":7,"at":{at},"nonce":2,{rest}"changes":[{changes}]}}"#);
    [
        header_line(Header { oldest: Revision(5), revision: Revision(7) }),
        commit_line(Revision(6), &created()),
        commit_line(Revision(7), &body),
        end_line(Counts { images: 0, parts: 0, commits: 2 }),
    ]
    .concat()
}

/// The board of the small archive, its screenshot deleted, as a base; the image forgotten after it.
fn forgetting(image: bool, again: &[&str]) -> String {
    let board = read(small().as_bytes()).unwrap();
    let mut base = board.clone();
    let removed =
        r#"{"revision":8,"at":1000,"nonce":3,"changes":[{"cleared":{"log":"screenshots"}}]}"#;
    apply(&mut base, &decode_commit(removed.as_bytes()).unwrap());
    let base = base.beginning_at(Revision(8));
    let parts: Vec<_> =
        base_parts(&base).map(|part| String::from_utf8(part.unwrap()).unwrap()).collect();
    let forgotten = format!(r#"{{"images_forgotten":{{"images":["{DIGEST}"]}}}}"#);
    let bodies =
        again.iter().copied().chain([&*forgotten]).zip(9_u64..).map(|(change, revision)| {
            (
                revision,
                format!(r#"{{"revision":{revision},"at":1000,"nonce":4,"changes":[{change}]}}"#),
            )
        });
    let bodies: Vec<_> = bodies.collect();
    let counts =
        Counts { images: image.into(), parts: parts.len() as u64, commits: bodies.len() as u64 };
    let head = Revision(8 + counts.commits);
    let mut archive = header_line(Header { oldest: Revision(8), revision: head });
    if image {
        archive += &image_line(Digest::of(b"abc"), b"abc");
    }
    archive.extend(parts.iter().map(|part| part_line(Revision(8), part)));
    archive.extend(bodies.iter().map(|(revision, body)| commit_line(Revision(*revision), body)));
    archive + &end_line(counts)
}

#[test]
fn an_archive_forgets_no_image_that_it_names() {
    let board = read(forgetting(false, &[]).as_bytes()).unwrap();
    assert_eq!((board.image_bytes(), board.revision()), (0, Revision(9)));
    let refused = |archive: String| {
        let fault = read(archive.as_bytes()).unwrap_err();
        assert!(matches!(fault, Fault::Images { .. }), "{fault}");
    };
    // The image is unused.
    refused(forgetting(true, &[]));
    // A commit that is kept names it, so a read of the past would miss it.
    let pictured = pictured();
    let (_, appended) = pictured.split_once("\"changes\":[").unwrap();
    let appended = appended.strip_suffix("]}").unwrap().replace("\"first\":1", "\"first\":2");
    for image in [true, false] {
        refused(forgetting(image, &[&appended, r#"{"cleared":{"log":"screenshots"}}"#]));
    }
}

#[test]
fn a_commit_beyond_the_bounds_is_refused_though_sealed() {
    let fits = |changes: &str| read(with_commit(changes, 1000, "").as_bytes()).is_ok();
    assert!(fits(r#"{"cleared":{"log":"requests"}}"#));
    assert!(fits(&profiled(r#"{"max_px":16384,"steps":["1"]}"#)));
    let restored = |what: &str| format!(r#"{{"restored":{{"to":6,{what}}}}}"#);
    let agent = |note: &str| {
        restored(&format!(
            r#""agents":[["A",{{"profile":{{"status":"CONTINUE","a":"{note}"}},"registered_at":1,"updated_at":1}}]]"#
        ))
    };
    assert!(fits(&restored(r#""state":[{"path":["a"],"value":1}]"#)));
    assert!(fits(&agent("x")));
    assert!(fits(r#"{"awaited":{"first":1,"last":1,"expires_at":1795244591123}}"#).eq(&false));
    for changes in [
        r#"{"deleted":{}}"#.to_owned(),
        r#"{"session_expired":{}}"#.to_owned(),
        r#"{"appended":{"log":"requests","first":2,"items":[[]]}}"#.to_owned(),
        r#"{"appended":{"log":"requests","first":2,"items":["\ud800"]}}"#.to_owned(),
        r#"{"appended":{"log":"requests","first":2,"items":[{"a":1e999}]}}"#.to_owned(),
        format!(
            r#"{{"updated":{{"log":"requests","seq":1,"item":{}1{}}}}}"#,
            "{\"a\":".repeat(129),
            "}".repeat(129)
        ),
        format!(
            r#"{{"updated":{{"log":"requests","seq":1,"item":{{"a":"{}"}}}}}}"#,
            "x".repeat(2 << 20)
        ),
        format!(r#"{{"finished":{{"seq":1,"result":{}{}}}}}"#, "[".repeat(129), "]".repeat(129)),
        r#"{"claimed":{"seq":1,"agent":"A","fence":7,"expires_at":9223372036854775807}}"#
            .to_owned(),
        r#"{"claimed":{"seq":1,"agent":"A","fence":7,"expires_at":-1}}"#.to_owned(),
        r#"{"state_put":{"path":["a"],"value":1,"expires_at":9223372036854775807}}"#.to_owned(),
        format!(r#"{{"state_put":{{"path":["a"],"value":"{}"}}}}"#, "x".repeat(17 << 20)),
        format!(
            r#"{{"agent_put":{{"agent":"A","profile":{{"status":"CONTINUE","a":"{}"}}}}}}"#,
            "x".repeat(PROFILE_BYTES_MAX)
        ),
        format!(
            r#"{{"configured":{{"settings":{{}},"labels":{{"a":"{}"}}}}}}"#,
            "x".repeat(LABEL_BYTES_MAX + 1)
        ),
        format!(
            r#"{{"configured":{{"settings":{{"history_keys":["{}"]}},"labels":{{}}}}}}"#,
            "x".repeat(LABEL_BYTES_MAX + 1)
        ),
        r#"{"configured":{"settings":{"agent_states":{"FAIL":{"from":[],"to":[]}}},"labels":{}}}"#
            .to_owned(),
        profiled(r#"{"max_px":16385}"#),
        profiled(r#"{"max_tokens":100000001}"#),
        profiled(r#"{"latest":1000001}"#),
        profiled(r#"{"screenshots":1000001}"#),
        profiled(r#"{"keys":[]}"#),
        profiled(r#"{"include":["state","state"]}"#),
        profiled(r#"{"steps":["one"]}"#),
        profiled(r#"{"headings":{"state":""}}"#),
        profiled(&format!(r#"{{"status":"{}"}}"#, "x".repeat(LABEL_BYTES_MAX + 1))),
        restored(&format!(
            r#""state":[{{"path":["a"],"value":{}{}}}]"#,
            "[".repeat(129),
            "]".repeat(129)
        )),
        restored(r#""expiries":[[["a"],9223372036854775807]],"state":[{"path":["a"],"value":1}]"#),
        agent(&"x".repeat(PROFILE_BYTES_MAX)),
        r#"{"adopted":{"name":"t","after":9007199254740991}}"#.to_owned(),
        format!(
            r#"{{"appended":{{"log":"screenshots","first":1,"items":[{{"image_str":""}}],"images":[[0,{{"at":14,"head":"data:image/png;base64,","sha256":"{DIGEST}","bytes":99999999}}]]}}}}"#
        ),
    ] {
        let shown: String = changes.chars().take(200).collect();
        assert!(!fits(&changes), "{shown}");
    }
    let cleared = r#"{"cleared":{"log":"requests"}}"#;
    let key = |key: &str| {
        let kept =
            format!(r#""idempotency":{{"key":"{key}","fingerprint":"{DIGEST}","answer":null}},"#);
        read(with_commit(cleared, 1000, &kept).as_bytes()).is_ok()
    };
    assert!(key("k") && !key("") && !key(&"k".repeat(KEY_CHARS_MAX + 1)));
}

#[test]
fn a_future_commit_is_refused_beyond_a_clocks_difference() {
    let cleared = r#"{"cleared":{"log":"requests"}}"#;
    let made = |at: i64| read(with_commit(cleared, at, "").as_bytes()).is_ok();
    assert!(made(NOW.0 + CLOCK_AHEAD_MS_MAX));
    assert!(!made(NOW.0 + CLOCK_AHEAD_MS_MAX + 1));
    assert!(!made(998), "it would be before the one before it");
}

#[test]
fn revisions_end_far_below_where_counting_ends() {
    let at = |oldest: u64| {
        let revision = Revision(oldest + 1);
        let body = created().replace("\"revision\":6", &format!("\"revision\":{revision}"));
        let archive = [
            header_line(Header { oldest: Revision(oldest), revision }),
            commit_line(revision, &body),
            end_line(Counts { images: 0, parts: 0, commits: 1 }),
        ];
        read(archive.concat().as_bytes()).is_ok()
    };
    assert!(at(FOREIGN_REVISION_MAX.0 - 1));
    assert!(!at(FOREIGN_REVISION_MAX.0));
    assert!(!at(u64::MAX - 1));
}

/// The beginning of a history in which it is one session's that lives, each commit with the board after it.
fn living(steps: &[Step]) -> Vec<(Board, Commit)> {
    let all = history(steps).into_iter();
    let own = all.take_while(|(_, commit)| !commit.ends_session() && commit.kind() != "adopted");
    let after = own.map(|(mut board, commit)| {
        apply(&mut board, &commit);
        (board, commit)
    });
    after.collect()
}

proptest! {
    #[test]
    fn any_history_comes_out_and_in(steps in steps(24), begin in any::<Index>()) {
        let history = living(&steps);
        prop_assume!(!history.is_empty());
        let begin = begin.index(history.len() + 1);
        let archive = written(&history, begin);
        let (last, _) = history.last().unwrap();
        let read = read_as_of(archive.as_bytes(), last.updated_at());
        prop_assert!(last.life().is_some());
        let oldest = if begin == 0 { Revision(0) } else { history[begin - 1].0.revision() };
        prop_assert_eq!(read.unwrap(), last.beginning_at(oldest));
    }

    #[test]
    fn a_resealed_change_is_refused_or_makes_a_sound_board(
        steps in steps(12), line in any::<Index>(), at in any::<Index>(), byte in any::<u8>(),
    ) {
        let history = living(&steps);
        prop_assume!(!history.is_empty());
        let archive = written(&history, 0);
        let mut lines: Vec<Vec<u8>> = archive.lines().map(|line| line.as_bytes().to_vec()).collect();
        let (line, count) = (line.index(history.len()), lines.len());
        let (_, commit) = &history[line];
        let mut body = encode_commit(commit).unwrap();
        let at = at.index(body.len());
        body[at] = byte;
        let Ok(body) = String::from_utf8(body) else { return Ok(()) };
        let sealed = commit_line(commit.revision, &body);
        lines[count - 1 - history.len() + line] = sealed.trim_end().as_bytes().to_vec();
        if let Ok(board) = read(&lines.join(&b'\n')) {
            // An imported board is read again after a restart.
            let mut reader = BaseReader::new(ID);
            for part in base_parts(&board) {
                reader.take(&part.unwrap()).unwrap();
            }
            let again = reader.finish().unwrap();
            prop_assert_eq!(again, board.beginning_at(board.revision()));
        }
    }
}
