//! Tests of log lines: whole and in order, without waiting for a reader.

use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use super::*;

/// A reader that takes what is written once it is let, and keeps it.
struct Slow {
    let_in: Receiver<()>,
    read: Sender<Vec<u8>>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.let_in.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.read.send(bytes.to_vec()).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow() -> (Slow, Sender<()>, Receiver<Vec<u8>>) {
    let ((let_it_in, let_in), (read, reading)) = (channel(), channel());
    (Slow { let_in, read }, let_it_in, reading)
}

#[test]
fn all_lines_are_written_in_their_order_before_the_end() {
    let (reader, let_it_in, read) = slow();
    (0..1000).for_each(|_| let_it_in.send(()).unwrap());
    let mut lines = Lines::default();
    let writing = lines.begin(reader).unwrap();
    let sent: Vec<String> = (0..1000).map(|n| format!("line {n}\n")).collect();
    sent.iter().for_each(|line| lines.write_all(line.as_bytes()).unwrap());
    drop(writing);
    assert_eq!(read.iter().flatten().collect::<Vec<u8>>(), sent.concat().into_bytes());
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody() {
    let (reader, let_it_in, read) = slow();
    let mut lines = Lines::default();
    let writing = lines.begin(reader).unwrap();
    let line = [b'x'; 1 << 10];
    lines.write_all(&line).unwrap();
    // The first is on its way, and goes no further.
    while !lines.text().is_empty() {
        thread::yield_now();
    }
    for _ in 0..3 * (WAITING_BYTES_MAX >> 10) {
        lines.write_all(&line).unwrap();
    }
    assert!(lines.0.lines.lock().dropped > 0);
    assert!(lines.0.lines.lock().bytes.capacity() <= 2 * WAITING_BYTES_MAX);
    let begun = Instant::now();
    drop(writing);
    assert!(begun.elapsed() >= END_MAX, "it waits for a reader for a while");
    (0..3).for_each(|_| let_it_in.send(()).unwrap());
    drop(let_it_in);
    let written = read.iter().map(|written| written.len()).sum::<usize>();
    assert!(written > 0 && written % line.len() == 0, "whole lines");
}

#[test]
fn a_reader_that_has_gone_holds_up_nobody() {
    let (reader, let_it_in, _read) = slow();
    drop(let_it_in);
    let mut lines = Lines::default();
    let writing = lines.begin(reader).unwrap();
    for _ in 0..100 {
        lines.write_all(b"line\n").unwrap();
    }
    drop(writing);
}
