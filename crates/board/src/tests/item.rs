//! Tests of items: accepted and refused texts, and the positions of members.

use super::board::*;
use crate::*;

fn code(text: &str) -> Code {
    Item::from_json(text).unwrap_err().code()
}

fn ordered(text: &str, other: &str) -> String {
    item(text).in_order_of(&item(other)).text().to_owned()
}

#[test]
fn an_object_stays_as_it_was_sent() {
    for text in [
        "{}",
        r#"{ "b" : 1E5, "a":-0.0,"b":1.10 }"#,
        r#"{"\u0061\/":"\ud83d\ude80\u0000","é":"日本"}"#,
        r#"{"$serde_json::private::Number":"1","to_dict":{"step":[]}}"#,
        r#"{"n":123456789012345678901234567890,"x":1e-400}"#,
    ] {
        assert_eq!(item(text).text(), text);
        assert_eq!(item(text).bytes(), text.len() as u64);
    }
}

#[test]
fn a_string_becomes_the_text_of_an_object() {
    assert_eq!(item(r#""a\nb\/é""#).text(), r#"{"text":"a\nb\/é"}"#);
}

#[test]
fn nothing_else_is_an_item() {
    for (text, found) in [
        ("[{}]", json::Kind::Array),
        ("1", json::Kind::Number),
        ("true", json::Kind::Bool),
        ("null", json::Kind::Null),
    ] {
        assert_eq!(Item::from_json(text).unwrap_err(), InvalidItem::NotAnItem { found });
        assert_eq!(code(text), Code::UnsupportedItem);
    }
}

#[test]
fn an_item_is_one_line() {
    let text = "{\r\n\t\"a\" : [\n  1,\r  2 ],\n\"b\": \"x\\n\" }";
    assert_eq!(item(text).text(), r#"{"a" : [1,2 ],"b": "x\n" }"#);
    let shot = Screenshot::from_json("{\n\"image_str\":\n \"data:a/b;base64,eA==\"\n}").unwrap();
    assert_eq!(shot.item.text(), r#"{"image_str":""}"#);
}

#[test]
fn an_item_is_at_most_a_mebibyte() {
    let of = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    assert_eq!(item(&of(ITEM_BYTES_MAX)).bytes(), 1 << 20);
    let too_large = InvalidItem::TooLarge { bytes: ITEM_BYTES_MAX + 1 };
    assert_eq!(Item::from_json(&of(ITEM_BYTES_MAX + 1)).unwrap_err(), too_large);
    assert_eq!(code(&of(ITEM_BYTES_MAX + 1)), Code::ItemTooLarge);
    let string = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 11));
    assert_eq!(item(&string(ITEM_BYTES_MAX)).bytes(), 1 << 20);
    assert_eq!(Item::from_json(&string(ITEM_BYTES_MAX + 1)).unwrap_err(), too_large);
}

#[test]
fn an_item_is_at_most_128_levels_deep() {
    let of = |levels: usize| {
        let inside = levels - 1;
        format!("{{\"a\":{}{}}}", "[".repeat(inside), "]".repeat(inside))
    };
    assert_eq!(item(&of(128)).text(), of(128));
    assert_eq!(code(&of(129)), Code::TooDeep);
    assert_eq!(code(&of(100_000)), Code::TooDeep);
}

#[test]
fn what_python_could_not_read_again_is_refused_with_its_place() {
    for (text, pointer) in [
        (r#"{"a":[1,1e400]}"#.to_owned(), "/a/1"),
        (r#"{"a":{"b":"\ud800"}}"#.to_owned(), "/a/b"),
        (format!(r#"{{"n":{}}}"#, "7".repeat(4_301)), "/n"),
    ] {
        let refused = Item::from_json(&text).unwrap_err();
        assert_eq!(refused.code(), Code::UnsupportedValue);
        let InvalidItem::Unsupported(unsupported) = refused else { panic!("{refused:?}") };
        assert_eq!(unsupported.pointer, pointer);
    }
    assert_eq!(code(r#""\udc00""#), Code::UnsupportedValue);
}

#[test]
fn existing_members_keep_their_place_and_new_ones_follow() {
    for (text, other, expected) in [
        ("{}", r#"{"a":1}"#, "{}"),
        (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
        (r#"{"c":3,"b":2,"a":1}"#, r#"{"a":0,"b":0}"#, r#"{"a":1,"b":2,"c":3}"#),
        (r#"{"x":1,"b":2,"y":3,"a":4}"#, r#"{"a":0,"z":0,"b":0}"#, r#"{"a":4,"b":2,"x":1,"y":3}"#),
        (r#"{ "a" : 1 , "n":2}"#, r#"{"a":0}"#, r#"{ "a" : 1 , "n":2}"#),
        (r#"{ "n" : [ 2 ] , "a":1}"#, r#"{"a":0}"#, r#"{"a":1,"n":[ 2 ]}"#),
        (r#"{"b":2,"\u0061":1}"#, r#"{"a":0,"b":0}"#, r#"{"\u0061":1,"b":2}"#),
        (r#"{"b":1,"a":2,"b":3}"#, r#"{"a":0,"b":0,"a":1}"#, r#"{"a":2,"b":1,"b":3}"#),
    ] {
        assert_eq!(ordered(text, other), expected);
    }
}

#[test]
fn an_image_moves_with_its_member() {
    let cut = |text: &str| Screenshot::from_json(text).unwrap();
    let url = "data:image/png;base64,AAEC";
    let old = cut(r#"{"metadata":1,"image_path":"","image_str":"data:a/b;base64,eA=="}"#).item;
    for (text, expected) in [
        (
            format!(r#"{{"image_str" : "{url}" , "new":0,"metadata":2}}"#),
            format!(r#"{{"metadata":2,"image_str":"{url}","new":0}}"#),
        ),
        (
            format!(r#"{{"image_str":"","metadata":2,"image_str":"{url}"}}"#),
            format!(r#"{{"metadata":2,"image_str":"","image_str":"{url}"}}"#),
        ),
        (
            format!(r#"{{"metadata":2,"image_str":"{url}"}}"#),
            format!(r#"{{"metadata":2,"image_str":"{url}"}}"#),
        ),
    ] {
        let new = cut(&text).item.in_order_of(&old);
        assert_eq!(new.with_image_text(url), expected);
        assert_eq!(new, cut(&expected).item);
    }
    assert_eq!(item(r#"{"image_str":1,"metadata":2}"#).in_order_of(&old).image(), None);
}

#[test]
fn a_hundred_thousand_members_find_their_places_in_good_time() {
    let object = |range: &mut dyn Iterator<Item = u32>| {
        let members: Vec<_> = range.map(|i| format!("\"{i:x}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    let (up, down) = (object(&mut (0..90_000)), object(&mut (0..90_000).rev()));
    assert_eq!(ordered(&down, &up), up);
}

#[test]
fn items_are_equal_by_text_and_image() {
    assert_eq!(screenshot(b"x"), screenshot(b"x"));
    assert_ne!(screenshot(b"x"), screenshot(b"y"));
    assert_ne!(screenshot(b"x"), item(screenshot(b"x").text()));
    assert_ne!(item(r#"{"a":1}"#), item(r#"{"a":1.0}"#));
}

#[test]
fn a_repeated_member_counts_as_its_last() {
    assert_eq!(item(r#"{"step":1,"\u0073tep":2}"#).get("step"), Some("2"));
    assert_eq!(item(r#"{"a":{"step":1}}"#).get("step"), None);
}
