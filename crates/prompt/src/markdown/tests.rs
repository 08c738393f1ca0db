//! Tests of items as Markdown, read again by a `CommonMark` parser.

use std::sync::Arc;

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value, json};

use super::*;

fn rendered(json: &str) -> String {
    let mut out = String::new();
    item(json, &None, &mut out);
    out
}

fn one_line(plain: &str) -> String {
    let mut out = String::new();
    text(plain, &mut out);
    out
}

fn inline(json: &str) -> String {
    let mut out = String::new();
    value(json, &mut out);
    out
}

#[test]
fn an_item_is_a_list_entry_with_a_member_a_line() {
    assert_eq!(
        rendered(
            r#"{ "step" : 1.50, "action":"click \"OK\"","results":[{"status":"FAIL"}],"done":true}"#
        ),
        concat!(
            "- **step:** 1.50  \n",
            "  **action:** click \"OK\"  \n",
            "  **results:** `[{\"status\": \"FAIL\"}]`  \n",
            "  **done:** true\n",
        )
    );
    assert_eq!(rendered("{}"), "- {}\n");
    assert_eq!(rendered(r#"{"a":"","b":""}"#), "- **a:**  \n  **b:**\n");
}

#[test]
fn lines_are_a_block_under_their_name() {
    assert_eq!(
        rendered(r#"{"a":1,"thought":"one\r\n\n  # two\t`\u0000","b":2}"#),
        concat!(
            "- **a:** 1  \n",
            "  **thought:**\n",
            "  ```\n",
            "  one\n",
            "\n",
            "    # two\t`\u{fffd}\n",
            "  ```\n",
            "  **b:** 2\n",
        )
    );
    assert_eq!(rendered(r#"{"a":"```\n````"}"#), "- **a:**\n  `````\n  ```\n  ````\n  `````\n");
}

#[test]
fn members_are_chosen_and_repeated_names_are_as_python_has_them() {
    let keys = Some(Arc::from(["a".to_owned(), "c".to_owned()]));
    let mut out = String::new();
    item(r#"{"a":1,"b":2,"\u0061":3,"c":4}"#, &keys, &mut out);
    assert_eq!(out, "- **a:** 3  \n  **c:** 4\n");
    out.clear();
    item(r#"{"b":2}"#, &keys, &mut out);
    assert_eq!(out, "- {}\n");
}

#[test]
fn only_what_is_active_is_escaped() {
    for (plain, expected) in [
        ("file_name.txt at C:\\dir\\x, 2 * 3 < 4 & 5, AT&T, 50 % ~ 60 #5 (a) {b} \"c\"", None),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("C# and F#", None),
        ("*a* _b_ __init__", Some(r"\*a\* \_b\_ \_\_init\_\_")),
        ("`code` [a](b) ![c](d)", Some(r"\`code\` \[a\](b) !\[c\](d)")),
        ("<b> </b> <!-- x -->", Some(r"\<b> \</b> \<!-- x -->")),
        ("&amp; &#35; &x", Some(r"\&amp; \&#35; &x")),
        (r"\* \a \", Some(r"\\\* \a \\")),
        ("- a", Some(r"\- a")),
        ("---", Some(r"\---")),
        ("===", Some(r"\===")),
        ("> a", Some(r"\> a")),
        ("# a #", Some(r"\# a \#")),
        ("12. a", Some(r"12\. a")),
        ("3) a", Some(r"3\) a")),
        ("  a\nb\r\u{1}\u{85} ", Some("a b \u{fffd}\u{fffd}")),
        ("", None),
    ] {
        assert_eq!(one_line(plain), expected.unwrap_or(plain));
    }
}

#[test]
fn a_value_stays_in_its_line() {
    for (json, expected) in [
        (r#" "- a_ " "#, r"\- a\_"),
        (r#""a\nb""#, r#"`"a\nb"`"#),
        ("-1e5", "-1e5"),
        ("null", "null"),
        (r#"{"a":[1,"`x``"]}"#, r#"```{"a": [1, "`x``"]}```"#),
        (
            r#"["\u4e2d 🚀","\\u4e2d","\u0007\ud800\u007f"]"#,
            r#"`["中 🚀", "\\u4e2d", "\u0007\ud800\u007f"]`"#,
        ),
    ] {
        assert_eq!(inline(json), expected);
    }
}

/// What a member's value is shown as.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Plain(String),
    Code(String),
    Block(String),
}

/// Reads a list back: of each entry its names with what they show.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else a parser sees should not be there"
)]
fn read(markdown: &str) -> Vec<Vec<(String, Shown)>> {
    let (mut entries, mut lists, mut depth) = (Vec::<Vec<(String, Shown)>>::new(), 0, 0);
    let (mut in_name, mut in_block) = (false, false);
    for event in Parser::new_ext(markdown, options()) {
        match event {
            Event::Start(Tag::List(None)) => lists += 1,
            Event::Start(Tag::Item) => {
                depth += 1;
                entries.push(Vec::new());
            }
            Event::End(TagEnd::Item) => depth -= 1,
            Event::Start(Tag::Strong) => {
                in_name = true;
                entries.last_mut().unwrap().push((String::new(), Shown::Plain(String::new())));
            }
            Event::End(TagEnd::Strong) => in_name = false,
            Event::Start(Tag::CodeBlock(_)) => {
                in_block = true;
                entries.last_mut().unwrap().last_mut().unwrap().1 = Shown::Block(String::new());
            }
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(text) if in_name => {
                entries.last_mut().unwrap().last_mut().unwrap().0 += &text;
            }
            Event::Text(text) => match entries.last_mut().unwrap().last_mut() {
                Some((_, Shown::Plain(shown))) if !in_block => *shown += &text,
                Some((_, Shown::Block(shown))) if in_block => *shown += &text,
                None if &*text == "{}" => {}
                other => panic!("{text:?} after {other:?} in {markdown}"),
            },
            Event::Code(code) => {
                let shown = &mut entries.last_mut().unwrap().last_mut().unwrap().1;
                assert_eq!(*shown, Shown::Plain(" ".to_owned()), "{markdown}");
                *shown = Shown::Code(code.to_string());
            }
            Event::HardBreak
            | Event::Start(Tag::Paragraph)
            | Event::End(TagEnd::Paragraph | TagEnd::List(false)) => {}
            other => panic!("{other:?} in {markdown}"),
        }
        assert!(lists == 1 && depth <= 1 && !(in_name && in_block), "{markdown}");
    }
    entries
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// What a text is expected to show as in one line.
fn seen(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' => ' ',
        '\t' => '\t',
        _ if c.is_control() => '\u{fffd}',
        _ => c,
    };
    text.chars().map(shown).collect::<String>().trim_matches([' ', '\t']).to_owned()
}

fn expected(value: &Value, shown: &Shown) -> Shown {
    match value {
        Value::String(said) if has_lines(said) => {
            let lines = said.replace("\r\n", "\n").replace('\r', "\n");
            let visible =
                |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
            Shown::Block(lines.chars().map(visible).chain(['\n']).collect())
        }
        Value::String(said) => {
            let said = seen(said);
            Shown::Plain(if said.is_empty() { said } else { format!(" {said}") })
        }
        Value::Array(_) | Value::Object(_) => {
            let Shown::Code(code) = shown else { panic!("{shown:?} for {value}") };
            assert_eq!(serde_json::from_str::<Value>(code).unwrap(), *value);
            Shown::Code(code.clone())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Shown::Plain(format!(" {value}")),
    }
}

/// Text that tries to be more than text.
fn hostile() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "*",
        "**",
        "***",
        "_",
        "__",
        "`",
        "``",
        "```",
        "~",
        "~~",
        "~~~",
        "[a](b)",
        "![x](y)",
        "[a]: /u",
        "[^1]",
        "[ ] ",
        "]",
        "[",
        "(",
        ")",
        "!",
        "<b>",
        "</b>",
        "<",
        ">",
        "<!--",
        "-->",
        "<?x?>",
        "<![CDATA[",
        "]]>",
        "<https://a.b>",
        "<a@b.c>",
        "http://a.b/c_d",
        "www.a.b",
        "&amp;",
        "&#35;",
        "&#x41;",
        "&",
        ";",
        "\\",
        "\\\\",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\n- x",
        "\n# h",
        "\n---",
        "\n===",
        "\n```\n",
        "\n    x",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "1) ",
        "> ",
        "|",
        "|-|",
        "--",
        "=",
        "#",
        " #",
        "# ",
        "a",
        "b1",
        "a_b",
        " ",
        "  ",
        "   ",
        "\t",
        "中",
        "🚀",
        "Ⓐ",
        "é",
        "\u{a0}",
        "\u{2003}",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{b}",
        "\u{c}",
        "\u{2028}",
        "\u{feff}",
        "\u{200b}",
        ":",
        "**:",
        ":**",
        "**: ",
        "{",
        "}",
        "\"",
        "'",
        "$x$",
        "^x^",
        "<x",
        "<x a=\"",
        "\">",
        "<script>",
        "javascript:",
    ];
    let pieces = proptest::collection::vec(proptest::sample::select(PIECES), 0..8);
    prop_oneof![9 => pieces.prop_map(|pieces| pieces.concat()), 1 => any::<String>()]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => hostile().prop_map(Value::String),
        1 => hostile().prop_map(|text| json!([text, {"x": text}])),
        1 => hostile().prop_map(|text| json!({ text.clone(): [1, text] })),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<Option<bool>>().prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn each_item_is_one_entry_and_shows_what_went_in(
        items in proptest::collection::vec(
            proptest::collection::vec((hostile(), any_value()), 0..5),
            1..4,
        ),
    ) {
        let items: Vec<Map<String, Value>> = items.into_iter().map(|item| item.into_iter().collect()).collect();
        let markdown: String = items.iter().map(|item| rendered(&Value::from(item.clone()).to_string())).collect();
        let entries = read(&markdown);
        prop_assert_eq!(entries.len(), items.len(), "{}", &markdown);
        for (entry, item) in entries.iter().zip(&items) {
            prop_assert_eq!(entry.len(), item.len(), "{}", &markdown);
            for ((name, shown), (key, value)) in entry.iter().zip(item) {
                prop_assert_eq!(name, &format!("{}:", seen(key.trim())), "{}", &markdown);
                prop_assert_eq!(shown, &expected(value, shown), "{}", &markdown);
            }
        }
    }

    #[test]
    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever else a parser sees should not be there")]
    fn a_text_is_one_line_wherever_it_stands(plain in hostile()) {
        for (before, after) in [("", ""), ("# ", ""), ("x ", ""), ("x\n", ""), ("x\n\n", "\ny"), ("- ", "")] {
            let markdown = format!("{before}{}{after}\n", one_line(&plain));
            let mut shown = String::new();
            let mut blocks = Vec::new();
            for event in Parser::new_ext(&markdown, options()) {
                match event {
                    Event::Text(text) => shown += &text,
                    Event::SoftBreak => shown.push('\n'),
                    Event::Start(tag @ (Tag::Paragraph | Tag::Heading { .. } | Tag::List(None) | Tag::Item)) => {
                        blocks.push(tag.to_end());
                    }
                    Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::List(_) | TagEnd::Item) => {}
                    other => prop_assert!(false, "{:?} in {}", other, &markdown),
                }
            }
            let said = seen(&plain);
            let visible = match before {
                "# " | "- " => said,
                "x\n\n" if said.is_empty() => "xy".to_owned(),
                "x\n\n" => format!("x{said}\ny"),
                _ => format!("{before}{said}").trim_end_matches([' ', '\n']).to_owned(),
            };
            prop_assert_eq!(shown, visible, "{}", &markdown);
            prop_assert!(blocks.len() <= 2, "{:?} in {}", blocks, &markdown);
        }
    }
}
