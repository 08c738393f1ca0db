//! Counts of an indexed item, by `valgrind --tool=callgrind`, without a server.
//!
//! ```text
//! cargo bench -p blackboard-search --bench indexing -- FOLDER KIND ITEMS BATCH SESSIONS
//! valgrind --tool=callgrind --toggle-collect='*counted*' target/release/deps/indexing-… FOLDER KIND ITEMS BATCH SESSIONS
//! ```
//!
//! Indexes ITEMS items of some 800 bytes, BATCH of them in each transaction, in SESSIONS sessions in turn, and tidies up at the
//! end. KIND is `agent` (a step of an agent as `benches/http` sends it), `prose` (words by Zipf's law from 50,000) or `scripts`
//! (twelve languages). All that the index does is in functions whose names begin with `counted`. Prints the bytes of the file,
//! the matches of some queries, which must not change with a faster index, and the time of queries of two words.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use blackboard_board::{Epoch, LogName, Seq, SessionName, Timestamp};
use blackboard_search::{Document, Index, Logs, Names, Reach, SearchError};

/// The words of a Zipf's law, and the number of words in an item of prose.
const VOCABULARY: usize = 50_000;
const PROSE_WORDS: usize = 130;

/// A generator of numbers that need not be good.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn vocabulary(numbers: &mut Numbers) -> Vec<String> {
    let word = |_| {
        let letters = 3 + numbers.below(8);
        (0..letters).map(|_| char::from(b'a' + u8::try_from(numbers.below(26)).unwrap())).collect()
    };
    (0..VOCABULARY).map(word).collect()
}

/// Draws the number of a word: one whose logarithm is even has the frequencies of Zipf's law.
fn zipf(numbers: &mut Numbers, words: usize) -> usize {
    let bits = numbers.below(1 << 20) as f64 / f64::from(1 << 20);
    (words as f64).powf(bits) as usize - 1
}

fn prose(numbers: &mut Numbers, words: &[String]) -> String {
    let mut text = String::from("{\"t\":\"");
    for _ in 0..PROSE_WORDS {
        text.push_str(&words[zipf(numbers, words.len())]);
        text.push(' ');
    }
    text.truncate(797);
    text + "\"}"
}

fn agent(step: u64) -> String {
    let thought = "The sum is there, but the invoice of May is still missing in the list. I should look for it in \
        the second sheet, add its amount, and compare the total with the one in the mail again before \
        I report that the subtask is finished. ";
    format!(
        "{{\"step\":{step},\"round\":3,\"agent\":\"AppAgent\",\"subtask\":\"Fill in the totals of the second quarter and check \
         them against the invoices\",\"action\":[{{\"function\":\"set_edit_text\",\"args\":{{\"control_label\":\"37\",\
         \"text\":\"=SUM(C2:C118)\",\"clear\":true}},\"status\":\"success\"}}],\"results\":\"The cell C119 shows 48,211.50 €. The \
         status bar says “Ready”.\",\"status\":\"CONTINUE\",\"cost\":0.01342,\"time\":4.218,\"application\":\"EXCEL.EXE\",\
         \"thought\":\"{thought}{}\"}}",
        &thought[..110]
    )
}

fn scripts(numbers: &mut Numbers) -> String {
    let texts = [
        "Die Straße nach Köln ist für größere Fahrzeuge gesperrt.",
        "Łódź i Kraków są połączone koleją od dziewiętnastego wieku.",
        "Отчёт за третий квартал ещё не готов, проверьте счёт.",
        "Η αναφορά για το τρίτο τρίμηνο δεν είναι έτοιμη.",
        "第三季度的报告还没有完成,请再检查一遍发票。",
        "第三四半期の報告書はまだ完成していません。",
        "삼분기 보고서가 아직 완성되지 않았습니다.",
        "तीसरी तिमाही की रिपोर्ट अभी तैयार नहीं है।",
        "التقرير الفصلي الثالث لم يكتمل بعد.",
        "הדוח לרבעון השלישי עדיין לא מוכן.",
        "รายงานไตรมาสที่สามยังไม่เสร็จสมบูรณ์",
        "Báo cáo quý ba vẫn chưa hoàn thành, hãy kiểm tra lại.",
    ];
    let mut text = String::from("{\"t\":\"");
    while text.len() < 740 {
        let at = usize::try_from(numbers.below(texts.len() as u64)).unwrap();
        text.push_str(texts[at]);
        text.push(' ');
    }
    text + "\"}"
}

#[inline(never)]
fn counted_write(index: &Index, items: &[(SessionName, u64, String)]) {
    let log = LogName::Trajectories;
    index
        .write(|batch| {
            for (session, seq, item) in items {
                let key = batch.session(session)?;
                let at = Timestamp(i64::try_from(*seq).unwrap_or_default());
                let seq = Seq(*seq);
                batch.put(
                    key,
                    Document { log: &log, seq, at, agent: None, values: &[item.as_str()] },
                )?;
            }
            Ok::<_, SearchError>(())
        })
        .unwrap();
}

#[inline(never)]
fn counted_tidy(index: &Index) {
    while index.tidy().unwrap() {}
}

fn main() {
    // `cargo bench` adds an argument of its own.
    let given: Vec<String> = std::env::args().filter(|given| given != "--bench").collect();
    let [_, folder, kind, items, batch, sessions] = given.as_slice() else {
        println!("usage: indexing FOLDER KIND ITEMS BATCH SESSIONS");
        return;
    };
    let [items, batch, sessions]: [u64; 3] =
        [items, batch, sessions].map(|given| given.parse().unwrap());
    let path = Path::new(folder).join("search.db");
    let index = Index::make(&path, Epoch(1)).unwrap();
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let words = vocabulary(&mut numbers);
    let mut next = 0;
    while next < items {
        let texts: Vec<_> = (next..items.min(next + batch))
            .map(|n: u64| {
                let item = match kind.as_str() {
                    "agent" => agent(n),
                    "prose" => prose(&mut numbers, &words),
                    _ => scripts(&mut numbers),
                };
                (format!("s{}", n % sessions).parse().unwrap(), 1 + n / sessions, item)
            })
            .collect();
        next += batch;
        counted_write(&index, &texts);
    }
    counted_tidy(&index);
    let bytes = std::fs::metadata(&path).unwrap().len();
    let names = vec![Names::From(String::new())];
    let reach = Reach::new(names, Arc::new(|_| true), vec![Logs::Board]);
    let prefixes = ["\"the sum\"", "invoice* -may", "4.218", "报告", "보고서*", "strasse", "отчет"];
    let queries = words.iter().take(200).step_by(9).map(String::as_str).chain(prefixes);
    let (mut found, mut sum) = (0, 0.0);
    for query in queries {
        let matches = index.search(&query.parse().unwrap(), &reach, &|| true).unwrap();
        found += matches.ranked.len();
        sum += matches
            .ranked
            .iter()
            .zip(1..)
            .map(|(one, rank)| one.score * f64::from(rank) + one.seq.0 as f64)
            .sum::<f64>();
    }
    println!("{bytes} bytes, {found} matches, {sum}");
    let mut times: Vec<_> = (0..300)
        .map(|_| {
            let [one, other] = [(); 2].map(|()| &words[zipf(&mut numbers, words.len())]);
            let query = format!("{one} {other}").parse().unwrap();
            let begun = Instant::now();
            index.search(&query, &reach, &|| true).unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("two words: median {:?}, p95 {:?}", times[150], times[285]);
}
