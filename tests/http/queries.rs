//! Search queries as people type them, in many scripts: each with matching and other texts.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Server, encoded};
use crate::postgres;

/// A query, the texts that it finds, and others that it does not find.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Signs, flags and exclusions.
const SIGNS: &[Row] = &[
    ("pip install --upgrade", &["ran pip install --upgrade pip"], &["pip install pip"]),
    ("--upgrade", &["ran it with --upgrade"], &["ran it"]),
    ("tar -xzf", &["tar of everything"], &["tar -xzf a.tgz"]),
    ("tar \"-xzf\"", &["unpack with tar -xzf a.tgz"], &["tar of everything"]),
    ("disk & memory", &["disk & memory full", "memory of the disk"], &["disk full"]),
    ("disk - memory", &["disk and memory"], &["disk full"]),
    ("disk -> memory = 5 –", &["5 from disk to memory"], &["disk, memory"]),
    ("disk \"\" \"&\" *", &["disk full"], &["memory full"]),
    ("disk -5", &["disk at -5 degrees", "5 disks, one disk"], &["disk full"]),
    ("\"disk full\"-quota", &["disk full by quota"], &["disk full"]),
    ("-quota disk -\"is full\" -mem*", &["disk"], &["disk quota", "disk is full", "disk memory"]),
];

/// Letters of Latin.
const LATIN: &[Row] = &[
    ("café", &["CAFÉ", "cafe", "cafe\u{301}"], &["caf", "e"]),
    ("cafe\u{301}", &["café", "Cafe"], &["caf"]),
    ("strasse", &["Straße", "STRASSE", "STRAẞE"], &["strase"]),
    ("file", &["the \u{FB01}le", "ＦＩＬＥ"], &["files"]),
    ("x2", &["x²", "X₂"], &["x", "2"]),
    ("istanbul", &["İSTANBUL", "ISTANBUL", "ıstanbul", "I\u{307}stanbul"], &["stanbul"]),
    ("\u{110}à Nẵng", &["Đà Nẵng", "da nang", "ĐA\u{300} NA\u{306}\u{303}NG"], &["a nang"]),
    ("tieng viet", &["tiếng Việt", "tie\u{302}\u{301}ng Vie\u{323}\u{302}t"], &["tieng"]),
    ("łódź", &["LODZ", "Łódź"], &["odz"]),
    ("windows", &["Windows™ 11", "Ｗｉｎｄｏｗｓ"], &["windowstm"]),
    ("aufgabe", &["Auf\u{AD}gabe"], &["Auf gabe"]),
    ("naïv*", &["naivety", "NAI\u{308}VE"], &["nai"]),
];

const GREEK: &[Row] = &[
    ("Αθήνα", &["ΑΘΗΝΑ", "αθηνα", "Αθη\u{301}να"], &["Αθηναι"]),
    ("οδυσσευς", &["ΟΔΥΣΣΕΥΣ", "Ὀδυσσεύς", "οδυσσευσ"], &["οδυσσεα"]),
    ("τω λόγω", &["τῷ λόγῳ"], &["τον λόγον"]),
    ("5 \u{B5}m", &["5 \u{3BC}m", "5 ΜM"], &["5 um"]),
    ("\"και η\"", &["ΚΑΊ Ἡ"], &["η και"]),
];

const CYRILLIC: &[Row] = &[
    ("ёлка", &["ЕЛКА", "Ёлка", "Е\u{308}лка"], &["палка"]),
    ("мой", &["МОЙ", "мои\u{306}"], &["мои"]),
    ("київ", &["КИЇВ", "киі\u{308}в"], &["кив"]),
    ("задача -отчёт", &["Задача"], &["задача: ОТЧЕТ"]),
    ("№5", &["дом № 5", "дом №5"], &["дом №6"]),
    ("до́м", &["ДОМ"], &["дома"]),
];

const ARABIC: &[Row] = &[
    ("محمد", &["مُحَمَّد", "مـحـمـد", "\u{FEE3}\u{FEA4}\u{FEE4}\u{FEAA}"], &["حمد"]),
    ("سَلَام", &["سلام", "\u{FEB3}\u{FEFC}\u{FEE1}"], &["سلم"]),
    ("احمد", &["أحمد", "ا\u{654}حمد"], &["حامد"]),
    ("سئل", &["سُئِلَ", "سي\u{654}ل"], &["سيل"]),
    ("کتاب", &["کتاب\u{200C}ها"], &["کتابها"]),
];

const HEBREW: &[Row] = &[
    ("שלום", &["שָׁלוֹם", "\u{FB2A}לום"], &["שלם"]),
    ("תל אביב", &["תֵּל־אָבִיב"], &["תל"]),
    ("\"תל אביב\"", &["תל־אביב"], &["אביב תל"]),
    ("יְרוּשָׁלַיִם", &["ירושלים"], &["ירושלם"]),
];

/// Devanagari and other scripts of India, whose marks are parts of letters.
const INDIC: &[Row] = &[
    ("हिन्दी", &["यह हिन्दी है"], &["हन्द", "हिन्द"]),
    ("कि", &["कि"], &["की", "क"]),
    ("\u{95B}मीन", &["ज\u{93C}मीन"], &["जमीन"]),
    ("राम*", &["रामायण"], &["रमा"]),
    ("\u{9B2}\u{9CB}ক", &["\u{9B2}\u{9C7}\u{9BE}ক"], &["\u{9B2}\u{9C7}ক"]),
    ("क्ष", &["क्\u{200D}ष", "क्\u{200C}ष"], &["कष"]),
];

const THAI: &[Row] = &[
    ("ภาษา", &["ฉันพูดภาษาไทย"], &["ภาพ"]),
    ("ไทย -พูด", &["ภาษาไทย"], &["พูดภาษาไทย"]),
    ("น้ำ", &["ดื่มน้ำ"], &["นา"]),
];

const CHINESE: &[Row] = &[
    ("北京", &["我在北京。"], &["京北"]),
    ("磁盘 满", &["磁盘已满"], &["磁盘"]),
    ("\u{8C48}", &["\u{F900}"], &["\u{5C82}"]),
    ("ＧＰＵ", &["换gpu吧"], &["换显卡吧"]),
];

const JAPANESE: &[Row] = &[
    ("ガラス", &["\u{FF76}\u{FF9E}\u{FF97}\u{FF7D}", "カ\u{3099}ラス"], &["カラス"]),
    ("東京　タワー", &["東京のタワー"], &["東京"]),
    ("株式会社", &["㍿ブラック"], &["会社"]),
    ("ディスク", &["ディスクが満杯です"], &["デスク"]),
];

const KOREAN: &[Row] = &[
    ("게임", &["게임을 했다", "게임은 끝났다", "온라인게임"], &["임게", "게다 임"]),
    ("한글", &["\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}.docx", "한글로"], &["하글"]),
    ("\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}", &["한글을"], &["한 글"]),
    ("서울 -부산", &["서울에서"], &["서울에서 부산까지"]),
    ("학교*", &["학교에서 봤다"], &["대학"]),
    ("\"디스크가 가득\"", &["디스크가 가득 찼다"], &["가득 디스크가"]),
];

/// Scripts with cases that few programs know.
const OTHERS: &[Row] = &[
    ("երևան", &["ԵՐԵՒԱՆ"], &["երեան"]),
    ("თბილისი", &["ᲗᲑᲘᲚᲘᲡᲘ"], &["თბილი"]),
    ("ᏣᎳᎩ", &["ꮳꮃꭹ"], &["ᏣᎳ"]),
    ("𐐔𐐯𐑅", &["𐐼𐐇𐐝"], &["𐐔𐐯"]),
    ("𞤀𞤣𞤤𞤢𞤥", &["𞤢𞤣𞤤𞤢𞤥"], &["𞤀𞤣"]),
];

const SCRIPTS: &[&[Row]] = &[
    SIGNS, LATIN, GREEK, CYRILLIC, ARABIC, HEBREW, INDIC, THAI, CHINESE, JAPANESE, KOREAN, OTHERS,
];

/// Returns what is wrong with the answer to a query: none for what it should be.
fn fault((query, found, others): &Row, status: u16, page: &Value) -> Option<String> {
    if status != 200 {
        return Some(format!("{query}: {status} {page}"));
    }
    let hits = page["hits"].as_array().unwrap();
    let seqs: BTreeSet<u64> = hits.iter().map(|hit| hit["seq"].as_u64().unwrap()).collect();
    let text =
        |seq: &u64| found.iter().chain(*others).nth(usize::try_from(*seq).unwrap() - 1).unwrap();
    let wanted: BTreeSet<u64> = (1..=found.len() as u64).collect();
    if seqs != wanted {
        let lacks: Vec<_> = wanted.difference(&seqs).map(text).collect();
        let extra: Vec<_> = seqs.difference(&wanted).map(text).collect();
        return Some(format!("{query}: lacks {lacks:?}, has {extra:?}"));
    }
    // A snippet is the text itself with marks.
    hits.iter().find_map(|hit| {
        let snippet = hit["snippet"].as_str().unwrap();
        let plain = snippet.replace("<mark>", "").replace("</mark>", "").replace("&amp;", "&");
        let text = *text(&hit["seq"].as_u64().unwrap());
        let is_whole = plain == text && snippet.contains("<mark>");
        (!is_whole).then(|| format!("{query}: {snippet:?} of {text:?}"))
    })
}

#[tokio::test]
async fn queries_of_many_scripts_find_what_people_mean() {
    let server = Server::start();
    let rows: Vec<&Row> = SCRIPTS.iter().copied().flatten().collect();
    assert!(rows.len() >= 60, "{}", rows.len());
    let mut revisions = Vec::new();
    for (n, (_, found, others)) in rows.iter().enumerate() {
        let items: Vec<Value> =
            found.iter().chain(*others).map(|text| json!({"t": text})).collect();
        let (board, items) = (server.board(&format!("row{n}")), json!(items).to_string());
        revisions.push(board.post("requests", &items).await.is(201).revision());
    }
    let mut faults = Vec::new();
    for ((n, row), revision) in rows.iter().enumerate().zip(revisions) {
        let wait = format!("&session=row{n}&min_revision={revision}&wait=30s");
        let answer = server.get(&format!("/v1/search?q={}{wait}", encoded(row.0))).await;
        faults.extend(fault(row, answer.status(), &answer.json()));
    }
    assert!(
        faults.is_empty(),
        "{} of {} queries:\n{}",
        faults.len(),
        rows.len(),
        faults.join("\n")
    );
}

/// Takes the words from the index, and makes it one of the version before.
fn age(server: &Server) {
    if let Some(schema) = server.schema() {
        let position = "UPDATE text_position SET revision = revision & ((1::bigint << 48) - 1)";
        postgres::run(schema, position);
        return postgres::run(schema, "UPDATE text_entry SET words = ''");
    }
    let index = Connection::open(server.data().join("cache/search.db")).unwrap();
    index.execute_batch("DELETE FROM blocks; PRAGMA user_version = 4").unwrap();
}

#[tokio::test]
async fn words_of_an_older_version_are_made_anew() {
    let mut server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"[{"t":"게임을 했다"},{"t":"gone"}]"#).await.is(201);
    let last = board.delete("requests/2").await.revision();
    let query = format!("/v1/search?q={}&session=s&min_revision={last}&wait=30s", encoded("게임"));
    for is_aged in [false, true] {
        if is_aged {
            assert!(server.stop().success());
            age(&server);
            server.start_again();
        }
        let page = server.get(&query).await.is(200).json();
        let hits = page["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 1, "{page}");
        assert_eq!(hits[0]["snippet"], "<mark>게임</mark>을 했다");
    }
}

/// Of words that PostgreSQL has no room for, the first ones count; none may stop the others.
#[tokio::test]
async fn entries_of_very_many_words_keep_none_from_being_found() {
    let server = Server::start();
    let (large, other) = (server.board("large"), server.board("other"));
    // Chinese characters, each of which is a word.
    let different: String = ('\u{20000}'..='\u{32000}').take(65_500).collect();
    let same = "a ".repeat(120_000);
    for text in [format!("begin {different}"), format!("begin {same}"), "begin, after".to_owned()] {
        large.post("requests", &json!({"t": text}).to_string()).await.is(201);
    }
    other.post("requests", r#"{"t":"after"}"#).await.is(201);
    for (name, query, hits) in [("large", "begin", 3), ("large", "after", 1), ("other", "after", 1)]
    {
        let last = server.board(name).get("").await.revision();
        let path = format!("/v1/search?q={query}&session={name}&min_revision={last}&wait=30s");
        let page = server.get(&path).await.is(200).json();
        assert_eq!(page["hits"].as_array().unwrap().len(), hits, "{name}: {query}");
    }
}
