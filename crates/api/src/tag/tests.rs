//! Tests of tags of resources, versions and renderings.

use uuid::Uuid;

use super::*;
use blackboard_board::{LogName, Revision, Seq, SessionId, Version};

const EPOCH: Epoch = Epoch(1);
const SESSION: SessionId = SessionId(Uuid::from_u128(7));

fn version(changed: u64) -> Version {
    Version { session: SESSION, changed: Revision(changed) }
}

fn log() -> Resource {
    Resource::Log(LogName::Requests)
}

fn tag(changed: u64) -> Tag {
    Tag::new(EPOCH, version(changed), &log())
}

#[test]
fn tags_differ_by_epoch_session_revision_and_resource() {
    let memory = |name: &str| LogName::Memory(name.parse().unwrap());
    let other = Version { session: SessionId(Uuid::from_u128(8)), ..version(3) };
    let mut tags = vec![
        Tag::new(Epoch(2), version(3), &log()),
        Tag::new(EPOCH, other, &log()),
        Tag::new(EPOCH, version(4), &log()),
        Tag::of_bytes(EPOCH, b"{}"),
        Tag::of_bytes(Epoch(2), b"{}"),
        Tag::of_bytes(EPOCH, b"[]"),
    ];
    for resource in [
        Resource::Session,
        Resource::Blackboard,
        log(),
        Resource::Log(LogName::Questions),
        Resource::Log(memory("a")),
        Resource::Log(memory("b")),
        Resource::Entry(LogName::Requests, Seq(1)),
        Resource::Entry(LogName::Requests, Seq(11)),
        Resource::Entry(memory("a"), Seq(1)),
        Resource::Image(Seq(1)),
        Resource::Image(Seq(2)),
        Resource::Prompt,
        Resource::Cost(memory("a")),
        Resource::Cost(memory("b")),
    ] {
        tags.push(Tag::new(EPOCH, version(3), &resource));
        assert_eq!(tags.last(), Some(&Tag::new(EPOCH, version(3), &resource)));
    }
    let mut values: Vec<_> = tags.iter().map(Tag::as_str).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), tags.len());
}

#[test]
fn a_tag_is_a_quoted_header_value() {
    for tag in [tag(0), tag(u64::MAX), tag(3).rendering("keys=a", "x"), Tag::of_bytes(EPOCH, b"")] {
        let text = tag.as_str();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
        assert!(inner.len() > 15 && inner.bytes().all(|b| b.is_ascii_graphic() && b != b'"'));
    }
}

#[test]
fn renderings_differ_by_query_and_format_and_not_by_waiting() {
    let shown = |query, format| tag(3).rendering(query, format).to_string();
    let all = [
        ("", ""),
        ("keys=a", ""),
        ("keys=b", ""),
        ("keys=a&limit=1", ""),
        ("", "x"),
        ("keys=a", "x"),
    ];
    for (index, (query, format)) in all.into_iter().enumerate() {
        for (other_query, other_format) in all.into_iter().skip(index + 1) {
            assert_ne!(shown(query, format), shown(other_query, other_format));
        }
    }
    assert_eq!(shown("", ""), tag(3).to_string());
    assert_eq!(shown("min_revision=7", ""), tag(3).to_string());
    assert_eq!(shown("min_revision=7&keys=a", ""), shown("keys=a", ""));
}

#[test]
fn hexadecimal_numbers_are_those_of_the_formatter() {
    for number in [0, 1, 0xf, 0x10, 0x1234_5678_9abc, u64::MAX] {
        let mut text = String::new();
        push_hex(&mut text, number, 1);
        text.push(' ');
        push_hex(&mut text, number, HASH_DIGITS);
        assert_eq!(text, format!("{number:x} {number:016x}"));
    }
}
