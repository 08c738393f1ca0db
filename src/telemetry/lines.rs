//! Writes log lines on a dedicated thread.
//!
//! A slow or absent reader never blocks the server: lines that do not fit into the buffer are dropped and counted.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::metrics;

/// The maximum size of buffered lines in bytes.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// The capacity that is kept for the next lines.
const KEPT_BYTES: usize = 64 << 10;

/// The pause between two writes, which saves a wake-up per line.
const GATHERING: Duration = Duration::from_millis(5);

/// The time that the shutdown waits for a reader.
const END_MAX: Duration = Duration::from_secs(1);

/// The buffer of log lines; each write adds a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    lines: Mutex<Left>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Left {
    bytes: Vec<u8>,
    dropped: u64,
    is_ended: bool,
}

/// Writes lines until dropped; buffered lines are then written first, if anybody reads.
#[derive(Debug)]
pub(super) struct Writing {
    waiting: Arc<Waiting>,
    ended: Receiver<()>,
}

impl Lines {
    /// Starts the thread.
    pub(super) fn begin(&self, mut out: impl Write + Send + 'static) -> io::Result<Writing> {
        let (end, ended) = sync_channel(0);
        let waiting = Arc::clone(&self.0);
        let run = move || {
            // A log that ended by a panic would be missed only when somebody needs it.
            while catch_unwind(AssertUnwindSafe(|| waiting.write_all(&mut out))).is_err() {
                metrics::THREAD_FAILURES.add_one("log");
                thread::sleep(GATHERING);
            }
            // Tells that all of it is written.
            drop::<SyncSender<()>>(end);
        };
        thread::Builder::new().name("log".to_owned()).spawn(run)?;
        Ok(Writing { waiting: Arc::clone(&self.0), ended })
    }
}

#[cfg(test)]
impl Lines {
    /// The buffer.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lines.lock().bytes).into_owned()
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut left = self.0.lines.lock();
        if left.bytes.len() + line.len() > WAITING_BYTES_MAX {
            left.dropped += 1;
        } else {
            left.bytes.extend_from_slice(line);
            self.0.came.notify_one();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Waiting {
    /// Writes the buffered lines until the end.
    fn write_all(&self, out: &mut impl Write) {
        let mut lines = Vec::new();
        loop {
            let (dropped, is_ended) = self.take(&mut lines);
            // Where nobody reads any more there is nobody to tell.
            out.write_all(&lines).and_then(|()| out.flush()).ok();
            if is_ended {
                return;
            }
            lines.clear();
            lines.shrink_to(KEPT_BYTES);
            if dropped > 0 {
                tracing::warn!(
                    lines = dropped,
                    "log lines were dropped because the log's reader is too slow"
                );
            }
            thread::sleep(GATHERING);
        }
    }

    /// Waits for lines and takes them; returns the number of dropped lines, and true at the end.
    fn take(&self, lines: &mut Vec<u8>) -> (u64, bool) {
        let mut left = self.lines.lock();
        while left.bytes.is_empty() && !left.is_ended {
            self.came.wait(&mut left);
        }
        std::mem::swap(&mut left.bytes, lines);
        (std::mem::take(&mut left.dropped), left.is_ended)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.waiting.lines.lock().is_ended = true;
        self.waiting.came.notify_one();
        // Either it has ended, or nobody reads.
        self.ended.recv_timeout(END_MAX).ok();
    }
}

#[cfg(test)]
mod tests {
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
}
