//! The texts of the objects in the input.

use std::io::{BufRead, ErrorKind};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::MAX_RECORD_BYTES;
use super::place::syntax;
use crate::error::RecordError;

/// Where an object starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// 1-based.
    pub(super) line: u64,
    /// Bytes before it on its line.
    pub(super) column: u64,
}

impl Start {
    /// Line and column in the input of a 1-based position in the object's text.
    pub(super) fn position(self, line: usize, column: usize) -> (u64, u64) {
        let (line, column) = (line as u64, column as u64);
        match line {
            0 | 1 => (self.line, self.column + column),
            _ => (self.line + line - 1, column),
        }
    }
}

/// Cuts the input into objects by counting brackets outside of strings; whether a text is valid JSON is the
/// parser's to say.
pub(super) struct Frames<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    column: u64,
}

/// Where the scan of an object stands.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// Why the scan of a chunk stopped.
enum Stop {
    /// The chunk is used up.
    Chunk,
    /// The object is complete.
    Object,
    /// A line ends inside a string, which JSON does not allow.
    OpenString,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            text: Vec::new(),
            line: 1,
            column: 0,
        }
    }

    /// The text of the object last found.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Find the next object. `None` at the end of the input.
    pub(super) fn advance(&mut self) -> Result<Option<Start>, RecordError> {
        self.text.clear();
        let Some(start) = self.start()? else {
            return Ok(None);
        };
        let mut scan = Scan::default();
        loop {
            let line = self.line;
            let chunk = fill(&mut self.input, line)?;
            if chunk.is_empty() {
                return Err(self.unfinished(start, "the input ends inside this record"));
            }
            let room = MAX_RECORD_BYTES - self.text.len();
            let chunk = chunk.get(..room).unwrap_or(chunk);
            let (used, stop) = scan.step(chunk);
            let (text, _) = chunk.split_at(used);
            self.text.extend_from_slice(text);
            for line in text.split_inclusive(|b| *b == b'\n') {
                self.column += line.len() as u64;
                if line.ends_with(b"\n") {
                    self.line += 1;
                    self.column = 0;
                }
            }
            self.input.consume(used);
            match stop {
                Stop::Object => return Ok(Some(start)),
                Stop::OpenString => {
                    return Err(self.unfinished(
                        start,
                        "a line ends inside a string: close the quotes, or write the line break as \\n",
                    ));
                }
                Stop::Chunk if self.text.len() == MAX_RECORD_BYTES => {
                    return Err(self.unfinished(
                        start,
                        &format!(
                            "the record is above {MAX_RECORD_BYTES} bytes (32 MiB): split it, or store \
                             its blobs by URI"
                        ),
                    ));
                }
                Stop::Chunk => {}
            }
        }
    }

    /// Skip whitespace up to the brace of an object.
    fn start(&mut self) -> Result<Option<Start>, RecordError> {
        loop {
            let line = self.line;
            let chunk = fill(&mut self.input, line)?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let mut used = 0;
            let mut found = None;
            for byte in chunk {
                match byte {
                    b'\n' => {
                        self.line += 1;
                        self.column = 0;
                    }
                    b' ' | b'\t' | b'\r' => self.column += 1,
                    other => {
                        found = Some(*other);
                        break;
                    }
                }
                used += 1;
            }
            self.input.consume(used);
            let start = Start {
                line: self.line,
                column: self.column,
            };
            match found {
                None => {}
                Some(b'{') => return Ok(Some(start)),
                Some(byte) => return Err(no_object(byte, start)),
            }
        }
    }

    /// A text that is cut off often has an error further up, of which the cut is only a consequence.
    fn unfinished(&self, start: Start, otherwise: &str) -> RecordError {
        let mut json = serde_json::Deserializer::from_slice(&self.text);
        match IgnoredAny::deserialize(&mut json) {
            Err(error) if error.is_syntax() => syntax(&error, start),
            _ => RecordError::new(otherwise).at(start.line),
        }
    }
}

impl Scan {
    fn step(&mut self, chunk: &[u8]) -> (usize, Stop) {
        let mut used = 0;
        for byte in chunk {
            used += 1;
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    b'\n' => return (used - 1, Stop::OpenString),
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (used, Stop::Object);
                    }
                }
                _ => {}
            }
        }
        (used, Stop::Chunk)
    }
}

fn fill<R: BufRead>(input: &mut R, line: u64) -> Result<&[u8], RecordError> {
    // A borrow cannot be returned from within a loop, so the interrupted reads are used up first.
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(RecordError::input(line, e)),
        }
    }
    input.fill_buf().map_err(|e| RecordError::input(line, e))
}

fn no_object(byte: u8, start: Start) -> RecordError {
    let found = match byte {
        0x21..=0x7e => format!("`{}`", char::from(byte)),
        _ => format!("byte 0x{byte:02x}"),
    };
    RecordError::new(format!(
        "found {found} at column {}, expected the `{{` of a record: the input is UTF-8 text of JSON objects, \
         one after the other, without brackets or commas around them and without a byte order mark",
        start.column + 1
    ))
    .at(start.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, Read};

    fn frames(input: &[u8], chunk: usize) -> (Vec<(u64, u64, String)>, Option<String>) {
        let mut frames = Frames::new(BufReader::with_capacity(chunk, Cursor::new(input)));
        let mut found = Vec::new();
        loop {
            match frames.advance() {
                Ok(Some(start)) => {
                    let text = String::from_utf8(frames.text().to_vec()).unwrap();
                    found.push((start.line, start.column, text));
                }
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn objects_are_cut_wherever_the_chunks_end() {
        let input = "\r\n {\"a\":\"}{\\\"\\\\\"}{}\n\n{\n  \"b\": [{}, \"]\"]\n}\t{\"ä\":1}";
        let expected = [
            (2, 1, "{\"a\":\"}{\\\"\\\\\"}"),
            (2, 15, "{}"),
            (4, 0, "{\n  \"b\": [{}, \"]\"]\n}"),
            (6, 2, "{\"ä\":1}"),
        ];
        for chunk in 1..=input.len() {
            let (found, error) = frames(input.as_bytes(), chunk);
            assert_eq!(error, None);
            let found: Vec<_> = found.iter().map(|(l, c, t)| (*l, *c, t.as_str())).collect();
            assert_eq!(found, expected, "{chunk}");
        }
    }

    #[test]
    fn what_is_not_a_sequence_of_objects() {
        let cases: [(&str, usize, &str); 9] = [
            ("[{}]", 0, "line 1: found `[` at column 1, expected the `{`"),
            ("{},\n{}", 1, "line 1: found `,` at column 3"),
            ("\n\u{feff}{}", 0, "line 2: found byte 0xef at column 1"),
            (
                "{}\n{\"a\":",
                1,
                "line 2: the input ends inside this record",
            ),
            (
                "{\"a\": 1\n{}",
                0,
                "line 1: not valid JSON: expected `,` or `}` at line 2, column 1",
            ),
            (
                " {\"a\": [}\n{}",
                0,
                "line 1: not valid JSON: expected value at line 1, column 9",
            ),
            ("{\"a\":\"b\n\"}", 0, "line 1: a line ends inside a string"),
            (
                "{\"a\" \"b\n\"}",
                0,
                "line 1: not valid JSON: expected `:` at line 1, column 6",
            ),
            ("}", 0, "line 1: found `}` at column 1"),
        ];
        for (input, count, message) in cases {
            for chunk in [1, 3, 64] {
                let (found, error) = frames(input.as_bytes(), chunk);
                assert_eq!(found.len(), count, "{input}");
                let error = error.unwrap();
                assert!(error.starts_with(message), "{input}: {error}");
            }
        }
    }

    #[test]
    fn a_record_of_the_limit_is_cut_and_one_above_is_not() {
        let mut input = b"{\"a\":\"".to_vec();
        input.resize(MAX_RECORD_BYTES - 2, b'x');
        input.extend_from_slice(b"\"}");
        let (found, error) = frames(&input, 8192);
        assert_eq!((found.len(), error), (1, None));
        input.insert(10, b'x');
        let (found, error) = frames(&input, 8192);
        assert!(found.is_empty());
        assert!(
            error
                .unwrap()
                .starts_with("line 1: the record is above 33554432 bytes (32 MiB)")
        );
    }

    /// Interrupted once, then text, then broken.
    struct Broken(u8);

    impl Read for Broken {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(ErrorKind::Interrupted.into()),
                2 => {
                    buf[..5].copy_from_slice(b"{}\n{\n");
                    Ok(5)
                }
                _ => Err(std::io::Error::other("gone")),
            }
        }
    }

    #[test]
    fn a_failed_read_is_an_input_error() {
        let mut frames = Frames::new(BufReader::new(Broken(0)));
        assert!(frames.advance().unwrap().is_some());
        let error = frames.advance().unwrap_err();
        assert!(error.io().is_some());
        assert_eq!(error.to_string(), "line 3: cannot read the input: gone");
    }
}
