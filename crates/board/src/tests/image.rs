//! Tests of images: each is cut out of its item and rebuilt exactly, or left in place.

use blackboard_thumbnail::{IMAGE_TYPES, recognise};
use proptest::prelude::*;

use crate::*;

fn cut(text: &str) -> Screenshot {
    Screenshot::from_json(text).unwrap()
}

/// The item as it was sent, made again from what is kept.
fn again(screenshot: &Screenshot) -> String {
    match (screenshot.item.image(), &screenshot.bytes) {
        (Some(image), Some(bytes)) => screenshot.item.with_image_text(&image.data_url(bytes)),
        (None, None) => screenshot.item.text().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A picture of so many pixels.
fn picture(format: ::image::ImageFormat, width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    ::image::RgbImage::new(width, height).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[test]
fn a_data_url_is_cut_out_and_made_again() {
    for (text, kept, bytes) in [
        (r#"{"image_str":"data:image/png;base64,AAEC"}"#, r#"{"image_str":""}"#, &[0, 1, 2][..]),
        (
            r#"{"metadata":{"é":"日本"}, "image_str" : "data:image/png;base64,eA==" ,"z":[1]}"#,
            r#"{"metadata":{"é":"日本"}, "image_str" : "" ,"z":[1]}"#,
            b"x",
        ),
        (r#"{"image\u005fstr":"data:x/y+z;base64,eHk="}"#, r#"{"image\u005fstr":""}"#, b"xy"),
        (
            r#"{"image_str":"data:image/svg+xml;charset=utf-8;a=b;base64,++//"}"#,
            r#"{"image_str":""}"#,
            &[0xfb, 0xef, 0xff],
        ),
    ] {
        let shot = cut(text);
        assert_eq!(shot.item.text(), kept);
        assert_eq!(shot.bytes.as_deref(), Some(bytes), "{text}");
        let image = shot.item.image().unwrap();
        assert_eq!((image.sha256, image.bytes), (Digest::of(bytes), bytes.len() as u64));
        assert_eq!(again(&shot), text);
    }
}

#[test]
fn what_would_not_come_back_to_the_letter_stays() {
    for url in [
        "",
        "data:",
        "data:image/png;base64,",
        "data:image/png;base64",
        "data:image/png,AAEC",
        "data:image/png;base64,AA",
        "data:image/png;base64,AA=",
        "data:image/png;base64,AA===",
        "data:image/png;base64,AB==",
        "data:image/png;base64,AAEC====",
        "data:image/png;base64,_-__",
        "data:image/png;base64,AA EC",
        "data:image/png;base64, AAEC",
        r"data:image/png;base64,AAE\u0043",
        r"data:image\/png;base64,AAEC",
        r"data:image/png;base64,++\/\/",
        "data:image/png;base64,AAEC,AAEC",
        "data:;base64,AAEC",
        "data:image;base64,AAEC",
        "data:/png;base64,AAEC",
        "data:image/;base64,AAEC",
        "data:image/png/x;base64,AAEC",
        "data:image/p ng;base64,AAEC",
        "data:image/png;;base64,AAEC",
        "data:image/png;x;base64,AAEC",
        "data:image/png;=;base64,AAEC",
        "data:bild/é;base64,AAEC",
        "DATA:image/png;base64,AAEC",
        "data:image/png;BASE64,AAEC",
        " data:image/png;base64,AAEC",
        "https://example.org/a.png",
    ] {
        let text = format!(r#"{{"image_str":"{url}","a":1}}"#);
        let shot = cut(&text);
        assert_eq!((shot.item.text(), shot.item.image()), (text.as_str(), None));
        assert_eq!(shot.bytes, None);
    }
}

#[test]
fn only_the_last_image_str_of_the_item_itself_is_cut() {
    let url = "data:a/b;base64,eA==";
    for (text, kept) in [
        (
            format!(r#"{{"image_str":"{url}","image_str":"{url}"}}"#),
            format!(r#"{{"image_str":"{url}","image_str":""}}"#),
        ),
        (
            format!(r#"{{"image_str":1,"image_\u0073tr":"{url}"}}"#),
            r#"{"image_str":1,"image_\u0073tr":""}"#.to_owned(),
        ),
    ] {
        assert_eq!(cut(&text).item.text(), kept);
        assert_eq!(again(&cut(&text)), text);
    }
    for text in [
        format!(r#"{{"image_str":"{url}","image_str":null}}"#),
        format!(r#"{{"metadata":{{"image_str":"{url}"}}}}"#),
        format!(r#"{{"image_str":["{url}"]}}"#),
        format!(r#"{{"Image_str":"{url}"}}"#),
    ] {
        assert_eq!(cut(&text).item.text(), text);
        assert_eq!(cut(&text).bytes, None);
    }
}

#[test]
fn a_string_is_a_text_even_where_it_is_a_data_url() {
    let shot = cut(r#""data:a/b;base64,eA==""#);
    assert_eq!(shot.item.text(), r#"{"text":"data:a/b;base64,eA=="}"#);
    assert_eq!(shot.item.image(), None);
    assert!(Screenshot::from_json("[]").is_err());
}

#[test]
fn an_item_is_checked_without_its_image() {
    let refused = |text: &str| Screenshot::from_json(text).unwrap_err().code();
    let url = "data:a/b;base64,eA==";
    let deep = "[".repeat(128) + &"]".repeat(128);
    assert_eq!(refused(&format!(r#"{{"image_str":"{url}","a":{deep}}}"#)), Code::TooDeep);
    assert_eq!(refused(&format!(r#"{{"a":1e999,"image_str":"{url}"}}"#)), Code::UnsupportedValue);
    let long = "x".repeat(ITEM_BYTES_MAX);
    assert_eq!(refused(&format!(r#"{{"a":"{long}","image_str":"{url}"}}"#)), Code::ItemTooLarge);
}

#[test]
fn an_image_has_at_most_20_mebibytes() {
    let of = |bytes: usize| {
        // Three bytes are four characters; the rest is padded.
        let data = format!("{}{}", "AAAA".repeat(bytes / 3), ["", "AA==", "AAA="][bytes % 3]);
        format!(r#"{{"image_str":"data:image/png;base64,{data}"}}"#)
    };
    let largest = of(IMAGE_BYTES_MAX);
    assert_eq!(cut(&largest).bytes.unwrap().len(), 20 << 20);
    let too_large = InvalidItem::ImageTooLarge { bytes: (20 << 20) + 1, max: 20 << 20 };
    assert_eq!(Screenshot::from_json(&of(IMAGE_BYTES_MAX + 1)).unwrap_err(), too_large);
    let raw = vec![0; IMAGE_BYTES_MAX + 1];
    let refused = Screenshot::from_bytes("image/png", raw, None, "").unwrap_err();
    assert_eq!((refused.code(), &refused), (Code::ItemTooLarge, &too_large));
}

#[test]
fn raw_bytes_become_the_items_of_the_original() {
    let shot = |metadata, path| {
        Screenshot::from_bytes("image/png", b"x".to_vec(), metadata, path).unwrap()
    };
    let plain = shot(None, "");
    let head = r#"{"metadata":null,"image_path":"","image_str":""}"#;
    assert_eq!((plain.item.text(), plain.bytes.as_deref()), (head, Some(&b"x"[..])));
    let all = shot(Some("{\n \"a\": 1}"), "C:\\a \"b\".png\u{7}");
    let expected = concat!(
        r#"{"metadata":{"a": 1},"image_path":"C:\\a \"b\".png\u0007","#,
        r#""image_str":"data:image/png;base64,eA=="}"#
    );
    assert_eq!(again(&all), expected);
    assert_eq!(cut(expected), all, "as JSON it is the same item");
    let deep = "[".repeat(128) + &"]".repeat(128);
    let refused = Screenshot::from_bytes("image/png", vec![1], Some(&deep), "").unwrap_err();
    assert_eq!(refused.code(), Code::TooDeep);
}

#[test]
fn pictures_are_recognised_with_their_size() {
    for (media_type, format) in IMAGE_TYPES {
        let bytes = picture(format, 5, 3);
        assert_eq!(recognise(&bytes), Some((format, (5, 3))), "{media_type}");
        let shot = Screenshot::from_bytes(media_type, bytes, None, "").unwrap();
        let image = shot.item.image().unwrap();
        assert_eq!((image.size, image.media_type()), (Some((5, 3)), media_type));
    }
    for nothing in [&b""[..], b"x", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP", b"BM"] {
        assert_eq!(recognise(nothing), None);
    }
}

#[test]
fn a_media_type_is_what_its_data_url_says() {
    let of = |url: &str| {
        let shot = cut(&format!(r#"{{"image_str":"{url}"}}"#));
        shot.item.image().unwrap().media_type().to_owned()
    };
    assert_eq!(of("data:image/jpeg;base64,eA=="), "image/jpeg");
    assert_eq!(of("data:Image/X-y;q=1;base64,eA=="), "Image/X-y");
}

proptest! {
    #[test]
    fn any_bytes_come_back(
        bytes in proptest::collection::vec(any::<u8>(), 1..200),
        before in "[ ]{0,2}(\"[a-zé]{0,3}\":[ ]?[0-9],){0,3}[ ]{0,2}",
        after in "(,\"[a-zé]{0,3}\":\"\\PC{0,5}\"){0,3}[ ]{0,2}",
    ) {
        let after = after.replace('\\', "\\\\");
        let url = cut(r#"{"image_str":"data:a/b;base64,eA=="}"#);
        let url = url.item.image().unwrap().data_url(&bytes);
        let text = format!("{{{before}\"image_str\":\"{url}\"{after}}}");
        prop_assume!(json::syntax(text.as_bytes()).is_ok());
        let shot = cut(&text);
        prop_assert_eq!(shot.bytes.as_ref(), Some(&bytes));
        prop_assert_eq!(again(&shot), text);
    }

    #[test]
    fn any_data_url_stays_or_comes_back(
        url in "(data:)?[a-z/]{0,9}(;[a-z=]{0,5})?(;base64)?,[A-Za-z0-9+/=_-]{0,12}",
    ) {
        let text = format!("{{\"a\":\"é\",\"image_str\":\"{url}\"}}");
        prop_assert_eq!(again(&cut(&text)), text);
    }
}

#[test]
fn a_string_that_is_no_image_is_kept_with_a_warning() {
    use crate::ImageWarning::{NoDataUrl, NotBase64, OtherBytes, UnknownKind};
    const GIF: &str = "R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7";
    for (url, expected) in [
        ("", Some(NoDataUrl)),
        ("shot.png", Some(NoDataUrl)),
        ("https://example.com/a.png", Some(NoDataUrl)),
        (GIF, Some(NoDataUrl)),
        ("data:text/plain;base64,eA==", Some(NoDataUrl)),
        (&format!("data:;base64,{GIF}"), None),
        ("data:;base64,eA==", Some(NoDataUrl)),
        ("data:image/png", Some(NoDataUrl)),
        ("data:image/gif;base64,", Some(NotBase64)),
        ("data:image/gif;base64,R0lGO", Some(NotBase64)),
        (&format!("data:image/png;base64,{GIF}"), Some(OtherBytes)),
        ("data:image/gif;base64,eA==", Some(OtherBytes)),
        (&format!("data:image/gif;base64,{GIF}"), None),
        (&format!("data:IMAGE/GIF;base64,{GIF}"), None),
        (&format!("data:image/gif;BASE64,{GIF}"), None),
        (&format!("data:image/gif; base64,{GIF}"), None),
        (&format!("data:image/gif;base64,{}\\r\\n{}", &GIF[..20], &GIF[20..]), None),
        (&format!("data:image/gif;base64,{} {}", &GIF[..20], &GIF[20..]), None),
        (&format!("data:image/png;BASE64,{GIF}"), Some(OtherBytes)),
        ("data:image/gif; base64,eA", Some(OtherBytes)),
        // Another name of a kind that is known.
        (&format!("data:image/x-gif;base64,{GIF}"), None),
        ("data:image/svg+xml,%3Csvg/%3E", Some(UnknownKind)),
        ("data:image/svg+xml;base64,PHN2Zy8+", Some(UnknownKind)),
        ("data:image/heic;base64,AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWlj", Some(UnknownKind)),
        ("data:image/avif;BASE64,AAAAGGZ0eXBhdmlmAAAAAG1pZjFoZWlj", Some(UnknownKind)),
        ("data:image/tiff;base64,SUkqAAgAAAA=", Some(UnknownKind)),
    ] {
        let text = format!("{{\"image_str\":\"{url}\"}}");
        let shot = Screenshot::from_json(&text).unwrap();
        assert_eq!(shot.warning, expected, "{url}");
    }
    for text in ["{}", "{\"image_str\":null}", "{\"image_str\":1}", "\"shot.png\""] {
        assert_eq!(Screenshot::from_json(text).unwrap().warning, None, "{text}");
    }
}

#[test]
fn an_image_that_a_provider_rejects_is_warned_of() {
    use ::image::ImageFormat::{Bmp, Jpeg, Png, WebP};
    let warning = |media_type: &str, bytes: Vec<u8>| {
        let text = format!("{{\"image_str\":\"{}\"}}", data_url(media_type, &bytes));
        let warning = cut(&text).warning;
        let sent = Screenshot::from_bytes(media_type, bytes, None, "").unwrap();
        assert_eq!(sent.warning, warning, "bytes and a data URL are warned of alike");
        warning
    };
    for (media_type, format) in [("image/png", Png), ("image/jpeg", Jpeg), ("image/webp", WebP)] {
        let bytes = picture(format, 64, 64);
        assert_eq!(warning(media_type, bytes.clone()), None, "{media_type}");
        let cut = bytes[..bytes.len() - 7].to_vec();
        assert_eq!(warning(media_type, cut), Some(ImageWarning::Cut), "{media_type}");
        let longer = [bytes, vec![0; 9]].concat();
        assert_eq!(warning(media_type, longer), None, "{media_type}");
    }
    assert_eq!(warning("image/bmp", picture(Bmp, 64, 64)), None);
    assert_eq!(warning("image/png", picture(Png, 8_000, 2)), None);
    let Some(ImageWarning::Undecodable(_)) = warning("image/png", picture(Png, 70_000, 1)) else {
        panic!()
    };
    let sides = ImageWarning::Sides { provider: "Anthropic", width: 8_001, height: 2, max: 8_000 };
    assert_eq!(warning("image/png", picture(Png, 8_001, 2)), Some(sides));
    let mut large = picture(Png, 2, 2);
    large.resize(3_750_000, 0);
    assert_eq!(warning("image/png", large.clone()), None);
    large.push(0);
    let bytes = ImageWarning::Bytes { provider: "Anthropic", bytes: 3_750_001, max: 3_750_000 };
    assert_eq!(warning("image/png", large), Some(bytes));
    // A BMP is decoded whole.
    let Some(ImageWarning::Undecodable(_)) = warning("image/bmp", wide_bmp()) else { panic!() };
}

/// The head of a BMP of 60,000 pixels a side.
fn wide_bmp() -> Vec<u8> {
    let mut bytes = picture(::image::ImageFormat::Bmp, 2, 2);
    bytes[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
    bytes[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
    bytes
}

fn data_url(media_type: &str, bytes: &[u8]) -> String {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    format!("{}{base64}", Image::head_of(media_type))
}

#[test]
fn a_data_url_is_read_as_a_browser_reads_it() {
    let bytes = [0xfb, 0xef, 0xff, 0xfe];
    for url in [
        "data:image/png;base64,++///g==",
        "data:image/png;base64,++///g",
        "data:image/png;BASE64,++///g==",
        "DATA:IMAGE/PNG;Base64,++///g==",
        "data:image/png; base64,++///g==",
        "data:image/png;name=a.png;base64,++///g==",
        " data:image/png;base64,++///g==\n",
        "data:image/png;base64,\n ++/\t//\r\ng= =",
        "data:image/png;base64,--___g",
        "data:image/png;base64,--___g==",
        "data:image/png;base64,%2B%2b///g%3D%3D",
        // Bits beyond the last byte.
        "data:image/png;base64,++///h==",
    ] {
        let text = format!("{{\"a\":1,\"image_str\":{}}}", serde_json::to_string(url).unwrap());
        let shot = cut(&text);
        assert_eq!(again(&shot), text, "the string stays as it was");
        let read = match shot.bytes {
            Some(bytes) => bytes,
            None => DataUrl::of(&shot.item).unwrap().bytes,
        };
        assert_eq!(read, bytes, "{url}");
        assert_eq!(DataUrl::parse(url).unwrap().media_type, "image/png", "{url}");
    }
    for url in [
        "",
        "data:",
        "data:image/png,AAEC",
        "data:image/png;base64",
        "data:image/png;base64,",
        "data:image/png;base64,A",
        "data:image/png;base64,AA=",
        "data:image/png;base64,AA===",
        "data:image/png;base64,AA=A",
        "data:image/png;base64,AA.A",
        "data:image/png;base64x,AAEC",
        "data:image/png;base 64,AAEC",
        "https://example.org/a.png",
    ] {
        assert_eq!(DataUrl::parse(url), None, "{url}");
    }
}
