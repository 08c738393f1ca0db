//! Tests of the event reader: line ends, odd pieces, bounds.

use proptest::prelude::*;

use super::*;

/// Reads a text in pieces of this size.
fn frames(text: &[u8], size: usize) -> Result<Vec<Frame>, Error> {
    let (mut decoder, mut ready) = (Decoder::new(64), VecDeque::new());
    text.chunks(size).try_for_each(|piece| decoder.read(piece, &mut ready))?;
    Ok(ready.into())
}

fn read(text: &[u8], size: usize) -> Result<Vec<Event>, Error> {
    let event = |frame| match frame {
        Frame::Event(event) => Some(event),
        Frame::Id(_) => None,
    };
    Ok(frames(text, size)?.into_iter().filter_map(event).collect())
}

fn data(text: &str) -> Vec<String> {
    let events = read(text.as_bytes(), text.len().max(1)).unwrap();
    events.into_iter().map(|event| event.data).collect()
}

#[test]
fn lines_end_by_cr_lf_or_both() {
    for end in ["\n", "\r", "\r\n"] {
        let text = "data: a\ndata:b\n\n: comment\n\ndata\n\ndata:  c\n\n".replace('\n', end);
        for size in 1..text.len() {
            let events = read(text.as_bytes(), size).unwrap();
            let data: Vec<_> = events.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["a\nb", "", " c"], "{end:?} in pieces of {size}");
        }
    }
}

#[test]
fn fields_are_told_from_comments_and_others() {
    let text = "\u{feff}retry: 5\nid: 7\nevent: k\ndatum: x\n:data: y\ndata: a\n\ndata: b\nid: 8\0\n\nid\nevent:\n\
                data:c\n\n";
    let events = read(text.as_bytes(), 3).unwrap();
    let event = |kind: Option<&str>, id: &str, data: &str| Event {
        kind: kind.map(str::to_owned),
        id: Some(id.to_owned()),
        data: data.to_owned(),
    };
    assert_eq!(events, [event(Some("k"), "7", "a"), event(None, "7", "b"), event(None, "", "c")]);
}

#[test]
fn an_event_without_data_or_end_is_none() {
    assert!(data("id: 1\n\nevent: a\n\n\n\n").is_empty());
    assert!(data("data: a\n").is_empty() && data("data: a").is_empty());
    assert_eq!(data("event: a\n\ndata: b\n\n"), ["b"]);
}

#[test]
fn an_id_holds_once_its_frame_is_whole() {
    let text = "id: 1\n\nid: 2\ndata: a\n\nid: 3\n";
    for size in 1..=text.len() {
        let frames = frames(text.as_bytes(), size).unwrap();
        let event = Event { kind: None, id: Some("2".to_owned()), data: "a".to_owned() };
        assert_eq!(frames, [Frame::Id(Some("1".to_owned())), Frame::Event(event)]);
    }
}

#[test]
fn an_event_has_a_bound_however_it_comes() {
    let long = format!("data: {}\n\n", "a".repeat(64));
    let parts = "data: aaaaaaaaaaaaaaaa\n".repeat(8);
    for text in [long.as_str(), &long[..65], &parts] {
        for size in [1, 7, text.len()] {
            assert!(matches!(read(text.as_bytes(), size), Err(Error::TooLong { max: 64 })));
        }
    }
    assert_eq!(data(&": a comment\n".repeat(100)).len(), 0);
    assert_eq!(data(&"data: a\n\n".repeat(100)).len(), 100);
}

#[test]
fn an_event_is_utf8() {
    assert!(matches!(read(b"data: \xff\n\n", 3), Err(Error::Encoding)));
    assert_eq!(read("data: é北\n\n".as_bytes(), 1).unwrap()[0].data, "é北");
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_read_the_same(text in "[a:d \\n\\r\u{e9}]{0,60}|(data: ?[ab]\r?\n\r?\n?){0,6}", size in 1_usize..9) {
        let (whole, parts) = (read(text.as_bytes(), text.len().max(1)), read(text.as_bytes(), size));
        prop_assert_eq!(whole.ok(), parts.ok());
    }
}
