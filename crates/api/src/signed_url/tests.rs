//! Tests of signed addresses: their images and expiry.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;

use super::*;
use blackboard_auth::Caller;
use blackboard_board::{Command, Policy, SessionCommand, Set, Terms};
use blackboard_clock::Clock;
use blackboard_service::Reply;
use blackboard_store::{SqliteOptions, SqliteStore, SyncLevel};

/// The midnight that begins a Thursday.
const MIDNIGHT_S: u64 = 20_000 * DAY_S;

/// A service with a clock that the test sets, and a session.
struct World {
    service: Service,
    board: Arc<Board>,
    hand: Arc<AtomicI64>,
    _home: TempDir,
}

impl World {
    async fn new() -> Self {
        let home = TempDir::new().unwrap();
        let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
        let store = SqliteStore::open(home.path(), options).unwrap();
        let hand = Arc::new(AtomicI64::new(0));
        let clock = {
            let hand = Arc::clone(&hand);
            Clock::new(move || Timestamp(hand.load(Ordering::SeqCst)))
        };
        let policy = Policy {
            auto_create: true,
            session_bytes_max: 1 << 30,
            session_blob_bytes_max: 1 << 30,
            session_items_max: 1 << 30,
            sessions_max: 1 << 30,
            qa_pairs: Vec::new(),
        };
        let service = Service::start(Arc::new(store), policy, clock).unwrap();
        let (settings, labels) = (Set::Keep, Set::Keep);
        let command =
            Command::Session(SessionCommand::Put { settings, labels, qa_pairs: Vec::new() });
        let session = service.session(&Caller::owner(), &name()).await.unwrap();
        let reply = session.write(Terms::default(), command, Vec::new(), None).await.unwrap();
        let Reply::Now(receipt) = reply else { panic!("{reply:?}") };
        let world = Self { service, board: receipt.board, hand, _home: home };
        world.set(MIDNIGHT_S);
        world
    }

    fn set(&self, seconds: u64) {
        self.hand.store(i64::try_from(seconds).unwrap() * 1000, Ordering::SeqCst);
    }

    fn addresses(&self) -> ImageAddresses {
        let public = Arc::from("https://board.example.org/team");
        ImageAddresses::of(&self.service, Some(public), &self.board, &name())
    }

    /// Returns true if an address opens this image.
    fn opens(&self, address: &str, seq: u64, image: &Image, max_px: Option<u32>) -> bool {
        let (_, query) = address.split_once('?').unwrap();
        let member = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next().unwrap()
        };
        let signed = SignedQuery {
            expires: member("expires").parse().unwrap(),
            signature: member("signature"),
        };
        let max_px = max_px.and_then(NonZeroU32::new);
        signed.check(&self.service, &self.board, Seq(seq), image, max_px).is_ok()
    }
}

fn name() -> SessionName {
    "a b".parse().unwrap()
}

fn image(bytes: &[u8]) -> Image {
    let head = "data:image/png;base64,".to_owned();
    Image { at: 0, head, sha256: Digest::of(bytes), bytes: 3, size: None }
}

#[tokio::test]
async fn without_a_public_address_it_is_a_path() {
    let world = World::new().await;
    let addresses = ImageAddresses::of(&world.service, None, &world.board, &name());
    let path = "/v1/sessions/a%20b/screenshots/7/image";
    assert_eq!(addresses.of_image(Seq(7), &image(b"one"), None), path);
    let small = addresses.of_image(Seq(7), &image(b"one"), NonZeroU32::new(512));
    assert_eq!(small, format!("{path}?max_px=512"));
    assert_eq!(addresses.version(), "");
}

#[tokio::test]
async fn a_signed_address_opens_its_image_in_its_size_and_no_other() {
    let world = World::new().await;
    let (one, two) = (image(b"one"), image(b"two"));
    let address = world.addresses().of_image(Seq(7), &one, None);
    let expires = MIDNIGHT_S + 2 * DAY_S;
    let begin = format!(
        "https://board.example.org/team/v1/sessions/a%20b/screenshots/7/image?expires={expires}&signature="
    );
    assert_eq!(address.strip_prefix(&begin).map(str::len), Some(43), "{address}");
    assert!(world.opens(&address, 7, &one, None));
    assert!(!world.opens(&address, 7, &two, None));
    assert!(!world.opens(&address, 8, &one, None));
    assert!(!world.opens(&address, 7, &one, Some(512)));
    let small = world.addresses().of_image(Seq(7), &one, NonZeroU32::new(512));
    assert!(small.contains("/image?max_px=512&expires="), "{small}");
    assert!(world.opens(&small, 7, &one, Some(512)));
    assert!(!world.opens(&small, 7, &one, Some(511)));
    assert!(!world.opens(&small, 7, &one, None));
    let other = World::new().await;
    assert!(!other.opens(&address, 7, &one, None), "another store's");
}

#[tokio::test]
async fn an_address_is_the_same_all_day_and_valid_for_one_day_to_two() {
    let world = World::new().await;
    let one = image(b"one");
    let at = |seconds: u64| {
        world.set(seconds);
        (world.addresses().of_image(Seq(1), &one, None), world.addresses().version())
    };
    let first = at(MIDNIGHT_S);
    assert_eq!(at(MIDNIGHT_S + DAY_S - 1), first);
    let next = at(MIDNIGHT_S + DAY_S);
    assert!(next.0 != first.0 && next.1 != first.1);
    for (seconds, opens) in [
        (MIDNIGHT_S - 1, false),
        (MIDNIGHT_S, true),
        (MIDNIGHT_S + 2 * DAY_S - 1, true),
        (MIDNIGHT_S + 2 * DAY_S, false),
        (MIDNIGHT_S + 9 * DAY_S, false),
    ] {
        world.set(seconds);
        assert_eq!(world.opens(&first.0, 1, &one, None), opens, "{seconds}");
    }
}

#[tokio::test]
async fn a_changed_signature_opens_nothing() {
    let world = World::new().await;
    let one = image(b"one");
    let address = world.addresses().of_image(Seq(1), &one, None);
    let (begin, signature) = address.split_once("signature=").unwrap();
    for place in 0..signature.len() {
        let mut changed = signature.to_owned().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = format!("{begin}signature={}", String::from_utf8(changed).unwrap());
        assert!(!world.opens(&changed, 1, &one, None), "{changed}");
    }
    for other in ["", "A", &format!("{signature}="), &format!("{signature}A"), &signature[..42]] {
        assert!(!world.opens(&format!("{begin}signature={other}"), 1, &one, None), "{other}");
    }
    let later = address.replace("expires=1", "expires=2");
    assert!(!world.opens(&later, 1, &one, None));
}

#[test]
fn the_end_is_the_next_midnight_but_one() {
    assert_eq!([0, 1, DAY_S - 1, DAY_S].map(end_of), [2, 2, 2, 3].map(|days| days * DAY_S));
    assert_eq!(seconds(Timestamp(-1)), 0);
    assert_eq!(seconds(Timestamp(1999)), 1);
}
