//! Server-sent events, read piece by piece within a bound for each event.

use std::collections::VecDeque;

use memchr::memchr2;

use super::body::Body;
use super::error::Error;

/// The maximum size of an event, in bytes.
pub const EVENT_BYTES_MAX: usize = 64 << 20;

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The kind, where the server named one.
    pub kind: Option<String>,
    /// The last id that the server gave until then.
    pub id: Option<String>,
    /// The lines of data, joined by line feeds.
    pub data: String,
}

/// A frame, which a blank line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Frame {
    Event(Event),
    /// No event: only the id holds, as after a time without events.
    Id(Option<String>),
}

/// The events of an answer.
#[derive(Debug)]
pub struct Events {
    body: Body,
    decoder: Decoder,
    ready: VecDeque<Frame>,
    position: Option<String>,
}

impl Events {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            decoder: Decoder::new(EVENT_BYTES_MAX),
            ready: VecDeque::new(),
            position: None,
        }
    }

    /// Returns the id from which another request goes on: that of the last frame that was received whole and taken by
    /// [`Events::next`], with an event or without.
    #[must_use]
    pub fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Returns the next event, or nothing at the end. An event that the end cut off is dropped, as the standard says.
    ///
    /// # Errors
    ///
    /// The connection broke off or was silent, or an event is too long or not UTF-8.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(frame) = self.ready.pop_front() {
                match frame {
                    Frame::Event(event) => {
                        self.position.clone_from(&event.id);
                        return Ok(Some(event));
                    }
                    Frame::Id(id) => self.position = id,
                }
            }
            let Some(piece) = self.body.next().await? else { return Ok(None) };
            self.decoder.read(&piece, &mut self.ready)?;
        }
    }
}

/// The state between two pieces.
#[derive(Debug)]
struct Decoder {
    max: usize,
    /// The line that is not ended yet.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no other line.
    after_return: bool,
    is_first_line: bool,
    data: Vec<u8>,
    kind: Option<String>,
    id: Option<String>,
}

impl Decoder {
    const fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            after_return: false,
            is_first_line: true,
            data: Vec::new(),
            kind: None,
            id: None,
        }
    }

    /// Reads a piece, and adds the frames that it completes.
    fn read(&mut self, mut piece: &[u8], ready: &mut VecDeque<Frame>) -> Result<(), Error> {
        while let Some(&first) = piece.first() {
            if self.after_return && first == b'\n' {
                piece = piece.get(1..).unwrap_or_default();
            }
            self.after_return = false;
            let Some(end) = memchr2(b'\n', b'\r', piece) else {
                return self.extend(piece);
            };
            let (part, rest) = piece.split_at(end);
            self.after_return = rest.first() == Some(&b'\r');
            piece = rest.get(1..).unwrap_or_default();
            self.extend(part)?;
            let line = std::mem::take(&mut self.line);
            ready.extend(self.end_line(&line)?);
            // The next line takes the same room, unless that was a large one.
            if line.capacity() <= LINE_ROOM {
                self.line = line;
                self.line.clear();
            }
        }
        Ok(())
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), Error> {
        if self.line.len() + self.data.len() + part.len() > self.max {
            return Err(Error::TooLong { max: self.max });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Takes a line, and returns the frame that it ends.
    fn end_line(&mut self, mut line: &[u8]) -> Result<Option<Frame>, Error> {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_frame().map(Some);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.kind = Some(text(value.to_owned())?),
            b"id" if !value.contains(&0) => self.id = Some(text(value.to_owned())?),
            // Comments, `retry`, and fields of no meaning.
            _ => {}
        }
        Ok(None)
    }

    fn end_frame(&mut self) -> Result<Frame, Error> {
        let (kind, mut data) = (self.kind.take(), std::mem::take(&mut self.data));
        if data.pop().is_none() {
            return Ok(Frame::Id(self.id.clone()));
        }
        let kind = kind.filter(|kind| !kind.is_empty());
        Ok(Frame::Event(Event { kind, id: self.id.clone(), data: text(data)? }))
    }
}

/// The room of a line that is kept for the next one, in bytes.
const LINE_ROOM: usize = 64 << 10;

fn text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|_| Error::Encoding)
}

#[cfg(test)]
mod tests;
