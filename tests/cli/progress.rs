//! Progress bars: shown on a terminal only, and erased at the end.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::server::{Server, blackboard, finished};

/// How a command ended that had a terminal as its standard error.
struct Shown {
    code: Option<i32>,
    output: String,
    /// All that the terminal was sent.
    raw: String,
}

impl Shown {
    /// The lines that the terminal shows in the end.
    fn screen(&self) -> Vec<String> {
        let (mut lines, mut column) = (vec![Vec::new()], 0);
        let mut rest = self.raw.as_str();
        while let Some(c) = rest.chars().next() {
            let line: &mut Vec<char> = lines.last_mut().unwrap();
            if let Some(after) = rest.strip_prefix("\u{1b}[2K") {
                line.clear();
                rest = after;
                continue;
            }
            match c {
                '\r' => column = 0,
                '\n' => lines.push(Vec::new()),
                '\u{1b}' => panic!("no escape code but the one that erases a line: {:?}", self.raw),
                _ => {
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    column += 1;
                }
            }
            rest = &rest[c.len_utf8()..];
        }
        let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
        let lines = lines.into_iter().map(text);
        lines.filter(|line| !line.is_empty()).collect()
    }
}

fn on_terminal(mut command: Command, term: &str) -> Shown {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    command.env("TERM", term).stdout(Stdio::piped()).stderr(terminal);
    let child = command.spawn().unwrap();
    // It holds the terminal open.
    drop(command);
    let (mut raw, mut buffer) = (Vec::new(), [0; 4096]);
    let mut master = File::from(master);
    // Reading a terminal that nobody holds any more is an error.
    while let Ok(length @ 1..) = master.read(&mut buffer) {
        raw.extend_from_slice(&buffer[..length]);
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Shown { code: output.status.code(), output: text(output.stdout), raw: text(raw) }
}

/// Fills a session, and returns the arguments of each command that has a bar, with the last line that it leaves.
fn commands(server: &Server, home: &str) -> Vec<(Vec<String>, &'static str)> {
    let items: String = (0..500).map(|step| format!("{{\"step\":{step}}}\n")).collect();
    finished(server.command(&["post", "demo/trajectories", "--ndjson"]), &items).json();
    let image = format!("{}/tests/corpus/images/rgba.png", env!("CARGO_MANIFEST_DIR"));
    server.json(&["post", "demo/screenshots", "--file", &image]);
    let data = format!("{home}/data");
    let of = |words: &[&str]| {
        let words = words.iter().map(|word| word.replace("HOME", home));
        words.chain(["--data".to_owned(), data.clone()]).collect()
    };
    vec![
        (of(&["backup", "--to", "HOME/backup"]), "backed up to "),
        (of(&["check"]), ""),
        (of(&["export", "demo", "--to", "HOME/demo.ndjson"]), ""),
        (of(&["export", "--all", "--to", "HOME/all"]), "exported "),
        (of(&["import", "one", "--from", "HOME/demo.ndjson"]), "imported one at revision "),
        (of(&["import", "--all", "--from", "HOME/all"]), "error: 1 files were not imported"),
    ]
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_erased_at_the_end() {
    let mut server = Server::start();
    let home = server.home.path().to_str().unwrap().to_owned();
    let commands = commands(&server, &home);
    for is_running in [true, false] {
        if !is_running {
            server.stop();
            for made in ["backup", "all"] {
                std::fs::remove_dir_all(format!("{home}/{made}")).unwrap();
            }
            std::fs::remove_file(format!("{home}/demo.ndjson")).unwrap();
        }
        for (arguments, last) in &commands {
            let mut command = blackboard(&server.home);
            command.args(arguments);
            let shown = on_terminal(command, "xterm");
            let screen = shown.screen();
            let is_refused = last.starts_with("error") || (!is_running && arguments[1] == "one");
            assert_eq!(shown.code, Some(i32::from(is_refused)), "{arguments:?} {screen:?}");
            let bars = ["preparing ", "demo ", "one ", "sessions [", "archives ["];
            let is_drawn = bars.iter().any(|bar| shown.raw.starts_with(bar));
            assert!(is_drawn, "{arguments:?} {:?}", shown.raw);
            assert!(shown.raw.contains("\u{1b}[2K"), "{:?}", shown.raw);
            let (final_line, expected) = (screen.last().map_or("", String::as_str), *last);
            let is_expected = match (is_refused, expected) {
                (true, _) => final_line.starts_with("error: "),
                (false, "") => screen.is_empty(),
                (false, _) => final_line.starts_with(expected),
            };
            assert!(is_expected, "{arguments:?} {screen:?}");
            let is_a_bar = |line: &String| line.contains('%') || line.contains("preparing");
            assert!(!screen.iter().any(is_a_bar), "{screen:?}");
            assert_eq!(shown.output.starts_with("sound: "), arguments[0] == "check");
        }
    }
}

#[test]
fn no_bar_is_drawn_elsewhere() {
    let server = Server::start();
    let home = server.home.path().to_str().unwrap().to_owned();
    for (arguments, last) in commands(&server, &home) {
        let mut command = blackboard(&server.home);
        command.args(&arguments);
        let done = finished(command, "");
        assert!(done.error.lines().last().unwrap_or_default().starts_with(last), "{}", done.error);
        assert!(!done.error.contains(['\r', '\u{1b}', '%']), "{:?}", done.error);
    }
    let mut command = blackboard(&server.home);
    command.args(["check", "--data", &format!("{home}/data")]);
    let shown = on_terminal(command, "dumb");
    assert_eq!((shown.code, shown.raw.as_str()), (Some(0), ""));
    // Without colours a bar is the same.
    let mut command = blackboard(&server.home);
    command.args(["check", "--data", &format!("{home}/data")]).env("NO_COLOR", "1");
    assert!(on_terminal(command, "xterm").screen().is_empty());
}
