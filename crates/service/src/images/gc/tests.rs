//! Tests of image garbage collection: only unreferenced images are deleted.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::check;
use crate::sessions::session::new_session_id;
use crate::tests::clock::{BusyWriter, LONG, open, until};
use crate::tests::service::*;
use crate::{At, Collection, ImageBytes, Options, Service};
use blackboard_board::{Condition, LogCommand, LogName, Seq, Terms, Which};
use blackboard_clock::Clock;

/// Nothing is left alone for any time.
const AT_ONCE: Collection =
    Collection { age: Duration::ZERO, rest: Duration::ZERO, every: Duration::ZERO };

fn start_collecting(dir: &Path, collection: Collection) -> Service {
    let options = Options { collection, ..Options::default() };
    Service::start_with(Arc::new(open(dir)), POLICY, Clock::system(), options).unwrap()
}

async fn post(service: &Service, bytes: &[u8]) -> Seq {
    let (write, images) = screenshot("s", bytes.to_vec());
    service.receipt(write, images).await.unwrap().answer.first_added().unwrap()
}

async fn delete(service: &Service, seq: Seq) {
    let command = Command::Log(LogName::Screenshots, LogCommand::DeleteEntry { seq });
    service.carry_out("s", command).await.unwrap();
}

async fn purge(service: &Service) {
    service.at("s").purge(None).await.unwrap();
}

fn file(dir: &Path, board: &Board, bytes: &[u8]) -> PathBuf {
    let digest = Digest::of(bytes).to_string();
    dir.join("blobs").join(board.id().to_string()).join(digest)
}

async fn is_shown(service: &Service, board: &Board, seq: Seq, bytes: &[u8]) -> bool {
    let entry = board.log(&LogName::Screenshots).unwrap().get(seq).unwrap();
    service
        .at("s")
        .image(board, entry.item.image().unwrap())
        .await
        .is_ok_and(|found| found == bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_images_go_once_the_history_is_cut() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    let (kept, gone) = (post(&service, b"kept").await, post(&service, b"gone").await);
    delete(&service, gone).await;
    let now = service.published_here(&name("s")).unwrap().unwrap();
    let then = service.at("s").board_at(&now, &At::Revision(Revision(2))).await.unwrap();
    assert!(is_shown(&service, &then, gone, b"gone").await, "its history is kept");
    purge(&service).await;
    service.reach(&name("s"), Revision(4), LONG).await.unwrap();
    let after = board(&service, "s");
    assert_eq!((after.image_bytes(), after.images().count()), (4, 1));
    let lost = file(dir.path(), &after, b"gone");
    until("its file stays", || !lost.exists()).await;
    assert!(is_shown(&service, &after, kept, b"kept").await);
    // Whoever still has the board of before is told that it is no more.
    let image = then.log(&LogName::Screenshots).unwrap().get(gone).unwrap().item.image().cloned();
    let read = service.at("s").image(&then, &image.unwrap()).await;
    assert!(matches!(read, Err(ServiceError::Compacted { oldest: Revision(3) })), "{read:?}");
    let fork = service.at("f").fork(Terms::default(), Arc::clone(&then), name("s"), None).await;
    assert!(matches!(fork, Err(ServiceError::Compacted { .. })), "{fork:?}");
    let restored = service.at("s").restore(Terms::default(), then, None).await;
    assert!(matches!(restored, Err(ServiceError::Rejected { .. })), "{restored:?}");
    // The same bytes may come again.
    let again = post(&service, b"gone").await;
    assert!(is_shown(&service, &board(&service, "s"), again, b"gone").await);
    let live = board(&service, "s");
    stop(service).await;
    assert!(check(&open(dir.path())).unwrap().is_sound());
    let service = start_collecting(dir.path(), AT_ONCE);
    assert_eq!(board(&service, "s"), live);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_commit_after_the_base_names_stays_and_is_shown() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    let of_base = post(&service, b"of the base").await;
    let before = post(&service, b"before").await;
    delete(&service, before).await;
    purge(&service).await;
    let since = post(&service, b"since").await;
    for seq in [of_base, since] {
        delete(&service, seq).await;
    }
    let lost = file(dir.path(), &board(&service, "s"), b"before");
    until("what is before the base stays", || !lost.exists()).await;
    let now = service.published_here(&name("s")).unwrap().unwrap();
    assert_eq!(now.board.image_bytes(), 16);
    let then = service.at("s").board_at(&now, &At::Revision(Revision(4))).await.unwrap();
    assert!(is_shown(&service, &then, of_base, b"of the base").await);
    let restored = service.at("s").restore(Terms::default(), then, None).await;
    assert!(restored.is_ok(), "{restored:?}");
    assert!(is_shown(&service, &board(&service, "s"), of_base, b"of the base").await);
    stop(service).await;
    assert!(check(&open(dir.path())).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_young_stays_until_it_is_old() {
    let dir = TempDir::new().unwrap();
    let (age, every) = (Duration::from_secs(3600), Duration::from_millis(1));
    let collection = Collection { age, rest: Duration::ZERO, every };
    let service = start_collecting(dir.path(), collection);
    let seqs = [post(&service, b"old").await, post(&service, b"young").await];
    let now = board(&service, "s");
    for seq in seqs {
        delete(&service, seq).await;
    }
    let old = File::options().write(true).open(file(dir.path(), &now, b"old")).unwrap();
    old.set_modified(SystemTime::now() - 2 * age).unwrap();
    purge(&service).await;
    until("the old one stays", || !file(dir.path(), &now, b"old").exists()).await;
    assert!(file(dir.path(), &now, b"young").exists());
    assert_eq!(board(&service, "s").image_bytes(), 5);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_and_refused_images_go_after_a_start() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    post(&service, b"kept").await;
    let now = board(&service, "s");
    let id = now.id();
    // A server that died between storing it and its commit left this one.
    service.inner.deps.store.put_blob(id, Digest::of(b"left"), b"left").unwrap();
    stop(service).await;
    let service = start_collecting(dir.path(), AT_ONCE);
    until("what nothing names stays", || !file(dir.path(), &now, b"left").exists()).await;
    for session in ["s", "none"] {
        let (write, images) = screenshot("s", b"refused".to_vec());
        let condition = Condition { absent: session == "s", ..Condition::default() };
        let terms = Terms { condition, ..write.terms };
        // With no session of this name there is no entry to replace.
        let command = match session {
            "s" => write.command,
            _ => Command::Log(
                LogName::Screenshots,
                LogCommand::PutEntry { seq: Seq(1), item: item("{}"), basis: None },
            ),
        };
        let refused =
            service.receipt(Write { session: name(session), terms, command }, images).await;
        assert!(matches!(refused, Err(ServiceError::Rejected { .. })), "{refused:?}");
    }
    until("what was refused stays", || !file(dir.path(), &now, b"refused").exists()).await;
    let homes = || dir.path().join("blobs").read_dir().unwrap().count();
    until("a session that never was has images", || homes() == 1).await;
    assert!(file(dir.path(), &now, b"kept").exists());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_has_images_that_are_forgotten_meanwhile() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    let many: Vec<Vec<u8>> = (0_u8..8).map(|n| vec![n; 1 << 20]).collect();
    for bytes in &many {
        post(&service, bytes).await;
    }
    let all = Command::Log(LogName::Screenshots, LogCommand::Remove { which: Which::All });
    let hold = service.inner.images.pins.session(board(&service, "s").id());
    service.carry_out("s", all).await.unwrap();
    purge(&service).await;
    let base = board(&service, "s");
    service.reach(&name("s"), base.revision().next(), LONG).await.unwrap();
    let old = service.at("s").export(base).await;
    assert!(matches!(old, Err(ServiceError::Compacted { .. })), "it has lost its images");
    let now = board(&service, "s");
    assert_eq!(now.image_bytes(), 0);
    assert!(many.iter().all(|bytes| file(dir.path(), &now, bytes).exists()), "they are held");
    drop(hold);
    purge(&service).await;
    until("they stay", || many.iter().all(|bytes| !file(dir.path(), &now, bytes).exists())).await;
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_whose_commit_still_waits_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    post(&service, b"first").await;
    let now = board(&service, "s");
    // Files are removed in the order of their digests: once this one is gone, the other was looked at.
    let uploaded = Digest::of(b"uploaded");
    let later = (0_u64..).map(u64::to_le_bytes).find(|n| Digest::of(n) > uploaded).unwrap();
    let held = BusyWriter::new(&service).await;
    let posting = {
        let service = service.clone();
        tokio::spawn(async move { post(&service, b"uploaded").await })
    };
    until("it is not stored", || file(dir.path(), &now, b"uploaded").exists()).await;
    service.inner.deps.store.put_blob(now.id(), Digest::of(&later), &later).unwrap();
    service.inner.images.schedule.ask(&name("s"), Duration::ZERO);
    until("nobody looks", || !file(dir.path(), &now, &later).exists()).await;
    held.release().await;
    let seq = posting.await.unwrap();
    assert!(is_shown(&service, &board(&service, "s"), seq, b"uploaded").await);
    stop(service).await;
}

/// Many clients put and delete the same few images while the history is cut again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upload_of_what_is_being_collected_keeps_its_image() {
    const CLIENTS: u8 = 6;
    const ROUNDS: u8 = 40;
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    post(&service, b"first").await;
    let client = |client: u8| {
        let service = service.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let bytes = [b"image ", &[b'a' + (client + round) % 3][..]].concat();
                let seq = post(&service, &bytes).await;
                let now = board(&service, "s");
                assert!(is_shown(&service, &now, seq, &bytes).await, "{client}, {round}");
                if round % 5 != 4 {
                    delete(&service, seq).await;
                }
            }
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    while !clients.iter().all(tokio::task::JoinHandle::is_finished) {
        purge(&service).await;
    }
    for client in clients {
        client.await.unwrap();
    }
    let now = board(&service, "s");
    for entry in now.log(&LogName::Screenshots).unwrap().iter() {
        let image = entry.item.image().unwrap();
        assert!(service.at("s").image(&now, image).await.is_ok(), "{}", entry.seq);
    }
    stop(service).await;
    assert!(check(&open(dir.path())).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_an_earlier_session_of_the_name_are_not_sought() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    post(&service, b"first").await;
    let inner = &service.inner;
    let gc = Gc::of(&inner.deps, &inner.sessions, &JobQueue::default(), &inner.images);
    let session = inner.sessions.directory.get(&name("s")).unwrap();
    let earlier = Version { session: new_session_id(), changed: Revision::default() };
    let images = BTreeSet::from([Digest::of(b"first")]);
    assert!(gc.forget(&Pin::new(&session), earlier, images).unwrap());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_forgotten_although_others_write_all_the_time() {
    let dir = TempDir::new().unwrap();
    let service = start_collecting(dir.path(), AT_ONCE);
    let gone = post(&service, b"gone").await;
    delete(&service, gone).await;
    let writer = {
        let service = service.clone();
        tokio::spawn(async move {
            while board(&service, "s").image_bytes() > 0 {
                service.receipt(request("s", "{}"), Vec::<ImageBytes>::new()).await.unwrap();
            }
        })
    };
    purge(&service).await;
    tokio::time::timeout(LONG, writer).await.expect("it still counts").unwrap();
    stop(service).await;
}
