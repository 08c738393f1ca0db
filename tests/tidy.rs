//! Layers, sizes of files, folders and functions, circles of imports, and the table of limits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops where it fails and says why"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The server's own modules from the top down; one may use those below it, never one beside it. Below them are the crates.
const LAYERS: [&[&str]; 4] = [
    &["main"],
    &["commands"],
    &["app"],
    &["config", "telemetry", "descriptors", "doors", "systemd"],
];

/// The crates from the top down, of which the same is true.
const CRATES: [&[&str]; 8] = [
    &["cli", "http", "mcp", "ui", "control"],
    &["api"],
    &["service"],
    &["auth"],
    &["store", "prompt", "search"],
    &["address", "clock"],
    // The client of the commands knows nothing of the server.
    &["board", "client"],
    // The rest knows none of our types. Anybody may read media ranges, take turns, show an error with its sources, count what it does, keep
    // files to their owner, print for people, and trust roots.
    &[
        "accept",
        "child-test",
        "error-chain",
        "exact-json",
        "fairness",
        "metrics",
        "owner-files",
        "printable",
        "roots",
        "suggestion",
        "thumbnail",
    ],
];

/// What the board may not name: it has no clock, no files and no network. Its manifest has no tasks.
const IMPURE: [&str; 7] =
    ["std::fs", "std::net", "std::time", "SystemTime", "Instant", "Timestamp::now", "Zoned::now"];

const LINES_MAX: usize = 600;

const FUNCTION_LINES_MAX: usize = 70;

/// Production files in one folder, `mod.rs` included.
const FOLDER_FILES_MAX: usize = 15;

/// Characters in the name of a test.
const TEST_NAME_MAX: usize = 60;

/// Functions that are longer. The list may only shrink.
const LONG_FUNCTIONS: [&str; 0] = [];

/// Rooms that use each other in a circle: folders of a layer, files beside these, and as `top` its `mod.rs` or `lib.rs`. The
/// list may only shrink. The service's top has the parts, whose rooms have methods that take several; the top of `commands`
/// has the command line, which these show. The two decoders were looked at last.
const IN_CIRCLES: [(&str, &str); 4] = [
    ("crates/exact-json/src", "check elements members number tree"),
    (
        "crates/service/src",
        "archive claims handle heads history images inbox list maintenance search thumbnails top watch writer",
    ),
    ("crates/thumbnail/src", "decode encode image_type jpeg metadata need png shrink top"),
    ("src/commands", "environment server shell top"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file under that folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    found
}

/// Every file of the server and of its crates that is no test.
fn production() -> impl Iterator<Item = (PathBuf, String)> {
    let all = [sources("src"), sources("crates")].concat();
    all.into_iter().filter(|(path, _)| !is_test(path))
}

/// Whether a file has unit tests alone: `tests.rs`, or below `tests/`. Short tests are at the end of their file.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// The lines that are code: comments may name any layer.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

/// `src/commands/serve.rs` and `src/commands.rs` are of `commands`.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix("src").unwrap();
    let first = inside.components().next().unwrap().as_os_str();
    let name = first.to_str().unwrap().trim_end_matches(".rs");
    name.to_owned()
}

fn layer(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&module))
        .unwrap_or_else(|| panic!("`{module}` has no place among the layers of tests/tidy.rs"))
}

/// The top modules that a text names by `crate::a`, `crate::{a, b::c}` or `blackboard::a`.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = code(text).collect::<Vec<_>>().join("\n");
    let mut modules = BTreeSet::new();
    for prefix in ["crate::", "blackboard::"] {
        for (at, _) in code.match_indices(prefix) {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            let rest = code.get(at + prefix.len()..).unwrap_or_default();
            if before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | ':' | '$'))) {
                modules.extend(first_names(rest));
            }
        }
    }
    modules
}

fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let (mut names, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(name(group.get(from..at).unwrap_or_default()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(group.get(from..at).unwrap_or_default()));
                from = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn a_layer_uses_only_those_below_it() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let own = module(&path);
        if own == "lib" {
            continue;
        }
        for other in named(&text) {
            let is_module = LAYERS.iter().any(|layer| layer.contains(&other.as_str()))
                || root().join("src").join(&other).is_dir()
                || root().join("src").join(&other).with_extension("rs").is_file();
            if is_module && other != own && layer(&other) <= layer(&own) {
                wrong.push(format!("{}: `{own}` uses `{other}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_its_layer() {
    for (path, _) in sources("src") {
        let module = module(&path);
        if module != "lib" {
            layer(&module);
        }
    }
}

#[test]
fn a_crate_uses_only_those_below_it() {
    let below = |name: &str| CRATES.iter().position(|layer| layer.contains(&name));
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let own = folder.file_name().unwrap().to_str().unwrap();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(below(own).is_some(), "`{own}` has no place among the crates of tests/tidy.rs");
        assert!(!manifest.contains("path ="), "`{own}` names a crate beside the workspace's table");
        let names = manifest.lines().filter_map(|line| line.split(['.', ' ']).next());
        for other in names.map(|name| name.strip_prefix("blackboard-").unwrap_or(name)) {
            if below(other).is_some_and(|other| Some(other) <= below(own)) {
                wrong.push(format!("`{own}` uses `{other}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_that_ships_is_optimised() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, of_release) = manifest.split_once("[profile.release.package]\n").unwrap();
    let (_, of_dist) = manifest.split_once("[profile.dist.package]\n").unwrap();
    let rows = of_release.lines().take_while(|line| !line.is_empty());
    let slow = rows.filter_map(|row| row.split_once(" = { opt-level = ")).filter(|row| row.1 < "3");
    for (name, _) in slow {
        let shipped = format!("{name} = {{ opt-level = 3 }}\n");
        assert!(of_dist.contains(&shipped), "profile dist inherits the level of `{name}`");
    }
}

#[test]
fn the_board_knows_no_clock_no_files_and_no_network() {
    let mut wrong = Vec::new();
    for (path, text) in sources("crates/board/src") {
        for line in code(&text) {
            for name in IMPURE {
                let names = line.match_indices(name).any(|(at, _)| {
                    let part = |c: char| c.is_alphanumeric() || c == '_';
                    let before = line.get(..at).and_then(|text| text.chars().next_back());
                    let after = line.get(at + name.len()..).and_then(|text| text.chars().next());
                    !before.is_some_and(part) && !after.is_some_and(part)
                });
                if names {
                    wrong.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the layer between the doors and `auth` may not name: it knows no protocol.
const OF_HTTP: [&str; 6] =
    ["axum", "StatusCode", "HeaderMap", "HeaderName", "HeaderValue", "http::"];

#[test]
fn requests_and_answers_know_no_protocol() {
    let mut wrong = Vec::new();
    for (path, text) in sources("crates/api/src") {
        let named = code(&text).filter(|line| OF_HTTP.iter().any(|name| line.contains(name)));
        wrong.extend(named.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for_and_stays_short() {
    let mut wrong = Vec::new();
    for (path, text) in [sources("src"), sources("crates"), sources("tests")].concat() {
        let path = path.display();
        if !text.starts_with("//!") {
            wrong.push(format!("{path} does not open with `//!`"));
        }
        let lines = text.lines().count();
        if lines >= LINES_MAX {
            wrong.push(format!("{path} has {lines} lines"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The lines of each function of a text, by name: rustfmt closes one at the indentation at which it begins.
fn functions(text: &str) -> Vec<(String, usize)> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let indentation = line.len() - line.trim_start().len();
        let words: Vec<_> = line.split_whitespace().collect();
        let is_head = !line.trim_start().starts_with("//") && words.contains(&"fn");
        if is_head && !line.ends_with(';') && !line.ends_with('}') {
            let name = line.split("fn ").nth(1).unwrap_or_default();
            open.push((
                indentation,
                number,
                name.chars().take_while(|c| *c != '(').collect::<String>(),
            ));
        } else if line.trim_end() == format!("{}}}", " ".repeat(indentation))
            && let Some((_, from, name)) = open.pop_if(|(at, ..)| *at == indentation)
        {
            found.push((name, number - from + 1));
        }
    }
    found
}

#[test]
fn functions_stay_short() {
    let mut found = BTreeSet::new();
    for (path, text) in production() {
        let long = functions(&text).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        found.extend(long.map(|(name, _)| format!("{}: {name}", path.display())));
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), LONG_FUNCTIONS);
}

#[test]
fn names_of_tests_are_short() {
    let mut wrong = Vec::new();
    for (path, text) in [sources("src"), sources("crates"), sources("tests")].concat() {
        for part in text.split("test]").skip(1) {
            let name = part.split("fn ").nth(1).unwrap_or_default();
            let name: String =
                name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if name.len() > TEST_NAME_MAX {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "longer than {TEST_NAME_MAX}: {wrong:#?}");
}

#[test]
fn a_folder_holds_few_files() {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, _) in production() {
        *files.entry(path.parent().unwrap().to_owned()).or_default() += 1;
    }
    files.remove(Path::new("src"));
    files.retain(|_, count| *count > FOLDER_FILES_MAX);
    assert!(files.is_empty(), "{files:?}");
}

/// A module at the top or a crate: its folder, and the file with its names.
fn home(path: &Path) -> Option<(PathBuf, &'static str)> {
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
    match *parts {
        ["src", layer, _, ..] => Some((Path::new("src").join(layer), "mod.rs")),
        ["crates", name, "src", ..] => Some((Path::new("crates").join(name).join("src"), "lib.rs")),
        _ => None,
    }
}

/// Where such a file has its names from: the folder, or the file beside the folders, by name.
fn exports(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let code: String = code(&text).collect::<Vec<_>>().join(" ");
    let mut found = BTreeMap::new();
    for part in code.split("use ").skip(1) {
        let tree = part.split(';').next().unwrap_or_default();
        let first = tree.split("::").next().unwrap_or_default();
        let names = tree.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        found.extend(names.skip(1).map(|name| (name.to_owned(), first.to_owned())));
    }
    found
}

/// The rooms of its layer that a file names: the folders there, and the files beside these.
fn rooms_named(
    path: &Path,
    text: &str,
    layer: &Path,
    exports: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let inside = path.strip_prefix(layer).unwrap().with_extension("");
    // The names from the top of the crate to this file, and from there to its layer.
    let to_layer: Vec<_> = layer.iter().skip(1).filter(|_| !layer.starts_with("crates")).collect();
    let mut own: Vec<_> =
        to_layer.iter().copied().chain(inside.iter()).map(|part| part.to_str().unwrap()).collect();
    own.retain(|part| *part != "mod");
    let code: String = code(text).collect::<Vec<_>>().join(" ");
    let mut rooms = BTreeSet::new();
    for found in paths(&code) {
        let names: Vec<&str> = found.split("::").collect();
        let ups = names.iter().take_while(|name| **name == "super").count();
        let (base, rest) = match own.len().checked_sub(ups) {
            Some(base) if ups > 0 => (own.get(..base).unwrap_or_default(), names.get(ups..)),
            Some(_) | None => (<&[&str]>::default(), names.get(1..)),
        };
        let absolute: Vec<&str> = [base, rest.unwrap_or_default()].concat();
        let (before, within) = absolute.split_at(to_layer.len().min(absolute.len()));
        if let [name, ..] = *within
            && own.starts_with(before)
        {
            let room = root().join(layer).join(name);
            let is_room = room.is_dir() || room.with_extension("rs").is_file();
            let room = if is_room { Some(name) } else { exports.get(name).map(String::as_str) };
            // A name that is no room's is of the file with the layer's names.
            rooms.insert(room.unwrap_or(TOP).to_owned());
        }
    }
    rooms
}

/// All paths by `crate` or `super` in code, of a group each of its members.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                continue;
            }
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            let end = code[at..].find(|c| !is_part(c)).map_or(code.len(), |end| at + end);
            let path = &code[at..end];
            if code[end..].starts_with('{') {
                let members = first_names(&code[end..]);
                found.extend(members.iter().map(|member| format!("{path}{member}")));
            } else {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// The room that the file with a layer's names is: `mod.rs` or `lib.rs`.
const TOP: &str = "top";

/// The rooms that the file with a layer's names uses, other than by declaring them and exporting their names.
fn rooms_of_top(text: &str, layer: &Path) -> BTreeSet<String> {
    let code: String = code(text).collect::<Vec<_>>().join(" ");
    let uses = code.split(';').map(|part| part.split("pub use ").next().unwrap_or_default());
    let room = |name: &str| root().join(layer).join(name);
    let is_room = |name: &String| room(name).is_dir() || room(name).with_extension("rs").is_file();
    let heads = uses.flat_map(|part| {
        let paths = part.match_indices("::").map(|(at, _)| &part[..at]);
        paths.filter_map(|path| path.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next())
    });
    heads.filter(|name| *name != "tests").map(str::to_owned).filter(is_room).collect()
}

/// By layer and room, the rooms of the layer that it uses.
fn arrows() -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut arrows: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in production() {
        let Some((layer, names)) = home(&path) else { continue };
        let inside = path.strip_prefix(&layer).unwrap();
        let (own, others) = if inside == Path::new(names) {
            (TOP.to_owned(), rooms_of_top(&shipped(&text), &layer))
        } else {
            let own = inside.iter().next().unwrap().to_str().unwrap();
            let exports = exports(&layer.join(names));
            let others = rooms_named(&path, &shipped(&text), &layer, &exports);
            (own.trim_end_matches(".rs").to_owned(), others)
        };
        let others = others.into_iter().filter(|other| *other != own);
        arrows.entry((layer.display().to_string(), own.clone())).or_default().extend(others);
    }
    arrows
}

#[test]
fn no_folders_of_a_layer_use_each_other_in_a_circle() {
    let arrows = arrows();
    let mut found = BTreeSet::new();
    for (layer, room) in arrows.keys() {
        let of = |room: &String| arrows.get(&(layer.clone(), room.clone())).into_iter().flatten();
        let (mut seen, mut next) = (BTreeSet::new(), vec![room]);
        while let Some(at) = next.pop() {
            next.extend(of(at).filter(|other| seen.insert(*other)));
        }
        if seen.contains(room) {
            found.insert(format!("{layer}/{room}"));
        }
    }
    let known = IN_CIRCLES
        .iter()
        .flat_map(|(layer, rooms)| rooms.split(' ').map(move |room| format!("{layer}/{room}")));
    let known: BTreeSet<_> = known.collect();
    let (new, left): (Vec<_>, Vec<_>) =
        (found.difference(&known).collect(), known.difference(&found).collect());
    assert!(
        new.is_empty() && left.is_empty(),
        "in a circle: {new:#?}; in none any more: {left:#?}"
    );
}

/// What makes a pool or a queue.
const POOLS: [&str; 8] = [
    "RateLimiter::direct(",
    "Semaphore::new(",
    "SharedPlaces::new(",
    "WorkTurns::",
    "Queue::new(",
    "broadcast::channel(",
    "mpsc::channel(",
    "sync_channel(",
];

/// What the name of a bound has as a word where it is that of a pool, a queue or a cache.
const POOL_WORDS: [&str; 13] = [
    "BOARDS",
    "BODIES",
    "CACHE",
    "CONVERSATIONS",
    "LOADS",
    "QUEUE",
    "READERS",
    "RECENT",
    "REMEMBERED",
    "REPLACED",
    "THREADS",
    "UNMOVED",
    "WAITING",
];

/// The rows of `docs/reference/limits.md`, each as its spans of code.
fn limits() -> Vec<BTreeSet<String>> {
    let text = fs::read_to_string(root().join("docs/reference/limits.md")).expect("the limits");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

/// A file's code without the tests at its end.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code(text).collect::<Vec<_>>().join("\n")
}

/// The names of the bounds in a text that are numbers, as times are not: `…_MAX`.
fn bounds(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, kind) = line.split_once("const ")?.1.split_once(": ")?;
        let is_number =
            ["usize", "u64", "u32", "u16"].iter().any(|number| kind.starts_with(number));
        (is_number && name.ends_with("_MAX")).then_some(name)
    })
}

/// The bounds of a file that have to stand among the limits: all of them where it makes a pool.
fn shared_bounds(text: &str) -> Vec<&str> {
    let makes_pool = POOLS.iter().any(|pool| text.contains(pool));
    let of_pool = |name: &str| name.split('_').any(|word| POOL_WORDS.contains(&word));
    bounds(text).filter(|name| makes_pool || of_pool(name)).collect()
}

#[test]
fn the_service_starts_threads_in_one_place() {
    let starts = ["thread::spawn", "thread::Builder", "thread::sleep"];
    let wrong: Vec<_> = production()
        .filter(|(path, _)| path.starts_with("crates/service"))
        .filter(|(path, _)| !path.starts_with("crates/service/src/threads"))
        .filter(|(_, text)| starts.iter().any(|start| shipped(text).contains(start)))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?} start or stop threads beside crates/service/src/threads");
}

#[test]
fn every_pool_queue_and_cache_has_its_row_among_the_limits() {
    let (rows, mut wrong) = (limits(), Vec::new());
    for (path, text) in production() {
        let path = path.display().to_string();
        let text = shipped(&text);
        let of_file: Vec<_> = rows.iter().filter(|row| row.contains(&path)).collect();
        for name in shared_bounds(&text) {
            if !of_file.iter().any(|row| row.contains(name)) {
                wrong.push(format!("`{name}` of `{path}` has no row"));
            }
        }
        let pools: usize = POOLS.iter().map(|pool| text.matches(pool).count()).sum();
        if pools > of_file.len() {
            wrong.push(format!("`{path}` makes {pools} pools and has {} rows", of_file.len()));
        }
    }
    assert!(wrong.is_empty(), "in docs/reference/limits.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_limits_name_what_there_is() {
    for row in limits() {
        let is_file = |span: &&String| span.starts_with("src/") || span.starts_with("crates/");
        let files: Vec<_> = row.iter().filter(is_file).collect();
        let text: String =
            files.iter().map(|file| fs::read_to_string(root().join(file)).expect(file)).collect();
        for name in row.iter().filter(|span| span.ends_with("_MAX")) {
            assert!(bounds(&text).any(|bound| bound == name), "{name} is not in {files:?}");
        }
    }
}
