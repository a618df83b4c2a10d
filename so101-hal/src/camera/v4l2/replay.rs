//! Recorded replies of a camera, and their playback.
//!
//! One line a call: `NAME [FIELD=VALUE ..] -> FIELD=VALUE ..`, `-> ok` where nothing changes, `-> EBUSY` where it fails; `#`
//! begins a comment. The fields in front of the arrow are those that have to be asked with; names are those of
//! [`abi`](super::abi). A call is answered by the first line not used yet that fits; questions may be asked again.
//! `DQBUF` also has `time_us` and `data`, the name of the bytes to find in the buffer; `WAIT -> TIMEOUT` is a silence.

mod record;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

pub use record::{CallLog, Recorder};

use super::abi::{Buffer, Field, Fields, Request};
use super::calls::{Calls, Errno, Ready};
use crate::error::{Error, Result};

/// How long after its stamp a replayed picture is taken.
const LAG: Duration = Duration::from_millis(5);

/// A camera that answers as one did that was recorded. The text is a line a call.
///
/// ```
/// use so101_hal::camera::v4l2::{Replay, formats};
/// let mut calls = Replay::parse(
///     "ENUM_FMT index=0 -> pixelformat=MJPG description=\"Motion-JPEG\"
///      ENUM_FRAMESIZES index=0 pixel_format=MJPG -> kind=1 width=640 height=480
///      ENUM_FRAMEINTERVALS index=0 width=640 -> kind=1 numerator=1 denominator=30",
/// )?;
/// let formats = formats(&mut calls).unwrap_or_default();
/// assert_eq!((formats[0].fourcc.as_str(), formats[0].sizes[0].fps[0]), ("MJPG", 30.0));
/// # Ok::<(), so101_hal::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Replay {
    lines: Vec<Line>,
    data: BTreeMap<String, Vec<u8>>,
    buffers: Vec<Mapped>,
    now: Duration,
    asked: Vec<String>,
}

#[derive(Clone, Debug)]
struct Line {
    call: String,
    asked: Vec<(String, String)>,
    answer: Result<Vec<(String, String)>, Errno>,
    used: bool,
}

#[derive(Clone, Debug)]
struct Mapped {
    bytes: Vec<u8>,
    ours: bool,
}

impl Replay {
    /// Reads a text.
    ///
    /// # Errors
    /// [`Error::CameraReplayLine`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let content = line.split(" #").next().unwrap_or_default().trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let parsed = parse_line(content);
            lines.push(
                parsed.ok_or_else(|| Error::CameraReplayLine { line: number + 1, text: line.to_string() })?,
            );
        }
        Ok(Self { lines, ..Self::default() })
    }

    /// Bytes that a `DQBUF` line calls by this name.
    #[must_use]
    pub fn with_data(mut self, name: &str, bytes: &[u8]) -> Self {
        self.data.insert(name.to_string(), bytes.to_vec());
        self
    }

    /// The calls that were made, each with the fields that were not zero.
    #[must_use]
    pub fn asked(&self) -> &[String] {
        &self.asked
    }

    /// Sets `argument` to the recorded answer.
    fn answer(&mut self, call: &str, argument: &mut dyn Fields) -> Result<Vec<(String, String)>, Errno> {
        let now = show(argument);
        self.asked.push(words(call, &now));
        let fits = |line: &Line| {
            let has = |(key, value): &(String, String)| now.iter().any(|(k, v)| k == key && same(v, value));
            line.call == call && line.asked.iter().all(has)
        };
        let fresh = self.lines.iter().position(|l| !l.used && fits(l));
        let found = match fresh {
            None if call != "DQBUF" => self.lines.iter().rposition(fits),
            fresh => fresh,
        };
        let Some(line) = found.and_then(|i| self.lines.get_mut(i)) else {
            // The end of a list, a control that is not there; else a request that this driver does not know.
            let is_list = call.starts_with("ENUM_") || call == "QUERYCTRL";
            let is_default = matches!(call, "QBUF" | "STREAMON" | "STREAMOFF");
            return if is_default {
                Ok(Vec::new())
            } else {
                Err(if is_list { Errno::INVAL } else { Errno::NOTTY })
            };
        };
        line.used = true;
        let fields = line.answer.clone()?;
        for (key, value) in &fields {
            put(argument, key, value);
        }
        Ok(fields)
    }
}

impl Calls for Replay {
    fn ioctl<R: Request>(&mut self, argument: &mut R::Argument) -> Result<(), Errno> {
        self.answer(R::NAME, argument).map(|_| ())
    }

    fn map(&mut self, index: u32, length: u32, _offset: u32) -> Result<(), Errno> {
        if index as usize != self.buffers.len() || length > 64 << 20 {
            return Err(Errno::INVAL);
        }
        self.buffers.push(Mapped { bytes: alloc::vec![0; length as usize], ours: true });
        Ok(())
    }

    fn queue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        self.answer("QBUF", buffer)?;
        let mapped = self.buffers.get_mut(buffer.index as usize).ok_or(Errno::INVAL)?;
        if !core::mem::replace(&mut mapped.ours, false) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    fn dequeue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        let fields = match self.answer("DQBUF", buffer) {
            // The recording has ended.
            Err(Errno::NOTTY) => return Err(Errno::AGAIN),
            other => other?,
        };
        let value = |key: &str| fields.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        if let Some(us) = value("time_us").and_then(|v| v.parse::<i64>().ok()) {
            (buffer.seconds, buffer.microseconds) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
        }
        let mapped = self.buffers.get_mut(buffer.index as usize).ok_or(Errno::INVAL)?;
        if core::mem::replace(&mut mapped.ours, true) {
            return Err(Errno::INVAL);
        }
        if let Some(data) = value("data").and_then(|name| self.data.get(name)) {
            let len = data.len().min(mapped.bytes.len());
            mapped.bytes.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
            if value("bytesused").is_none() {
                buffer.bytesused = u32::try_from(len).unwrap_or(u32::MAX);
            }
        }
        let micros = buffer.seconds.saturating_mul(1_000_000).saturating_add(buffer.microseconds);
        self.now = self.now.max(Duration::from_micros(u64::try_from(micros).unwrap_or(0)) + LAG);
        Ok(())
    }

    fn taken(&self, index: u32) -> Option<&[u8]> {
        self.buffers.get(index as usize).filter(|b| b.ours).map(|b| b.bytes.as_slice())
    }

    fn wait(&mut self, limit: Duration) -> Result<Ready, Errno> {
        let next = self.lines.iter_mut().find(|l| !l.used && (l.call == "DQBUF" || l.call == "WAIT"));
        match next {
            Some(line) if line.call == "WAIT" => {
                line.used = true;
                self.now += limit;
                Ok(Ready::TimedOut)
            }
            Some(_) => Ok(Ready::Yes),
            None => Ok(Ready::TimedOut),
        }
    }

    fn monotonic_now(&self) -> Duration {
        self.now
    }
}

fn parse_line(text: &str) -> Option<Line> {
    let (asked, answer) = text.split_once("->")?;
    let mut asked = tokens(asked)?.into_iter();
    let call = asked.next()?;
    if !call.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
        return None;
    }
    let asked = asked.map(|t| pair(&t)).collect::<Option<Vec<_>>>()?;
    let answer = tokens(answer)?;
    let answer = match answer.as_slice() {
        [] => return None,
        [one] if one == "ok" || one == "TIMEOUT" => Ok(Vec::new()),
        [one] if !one.contains('=') => Err(errno(one)?),
        several => Ok(several.iter().map(|t| pair(t)).collect::<Option<Vec<_>>>()?),
    };
    Some(Line { call, asked, answer, used: false })
}

fn errno(text: &str) -> Option<Errno> {
    Errno::of_name(text).or_else(|| text.strip_prefix("errno").and_then(|n| n.parse().ok()).map(Errno))
}

fn pair(token: &str) -> Option<(String, String)> {
    token.split_once('=').map(|(k, v)| (k.to_string(), v.to_string()))
}

/// Words between blanks; quotation marks hold several together and are left out.
fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                if !token.is_empty() {
                    tokens.push(core::mem::take(&mut token));
                }
            }
            c => token.push(c),
        }
    }
    if !token.is_empty() {
        tokens.push(token);
    }
    (!quoted).then_some(tokens)
}

/// The fields that are not zero, as texts.
pub(super) fn show(argument: &mut dyn Fields) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    argument.visit(&mut |name, field| {
        let value = match field {
            Field::U32(v) => v.to_string(),
            Field::I32(v) => v.to_string(),
            Field::I64(v) => v.to_string(),
            Field::FourCc(v) if *v == 0 => "0".to_string(),
            Field::FourCc(v) => super::fourcc_text(*v),
            Field::Text(v) => super::text_of(v),
        };
        if value != "0" && !value.is_empty() {
            fields.push((name.to_string(), value));
        }
    });
    // Zero counts where it names something: the first of a list.
    if !fields.iter().any(|(k, _)| k == "index") {
        argument.visit(&mut |name, _| {
            if name == "index" {
                fields.insert(0, (name.to_string(), "0".to_string()));
            }
        });
    }
    fields
}

fn put(argument: &mut dyn Fields, key: &str, value: &str) {
    argument.visit(&mut |name, field| {
        if name != key {
            return;
        }
        let number = number(value).unwrap_or(0);
        match field {
            Field::U32(v) => *v = number as u32,
            Field::I32(v) => *v = number as i32,
            Field::I64(v) => *v = number,
            Field::FourCc(v) => {
                let mut code = [b' '; 4];
                code.iter_mut().zip(value.bytes()).for_each(|(to, from)| *to = from);
                *v = u32::from_le_bytes(code);
            }
            Field::Text(v) => {
                v.fill(0);
                let room = v.len().saturating_sub(1);
                v.iter_mut().take(room).zip(value.bytes()).for_each(|(to, from)| *to = from);
            }
        }
    });
}

/// Equal as numbers, or as texts.
fn same(a: &str, b: &str) -> bool {
    a == b || number(a).is_some_and(|x| number(b) == Some(x))
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn words(call: &str, fields: &[(String, String)]) -> String {
    let mut text = call.to_string();
    for (key, value) in fields {
        // Names of devices may have what would end a text, a line or begin a comment.
        let value: String =
            value.chars().map(|c| if c == '"' || c == '#' || c.is_control() { '_' } else { c }).collect();
        let quote = if value.contains(char::is_whitespace) { "\"" } else { "" };
        text.push_str(&format!(" {key}={quote}{value}{quote}"));
    }
    text
}
