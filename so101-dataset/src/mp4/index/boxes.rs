//! Boxes and their fields as slices: every read is checked, nothing is copied.

use std::io;
use std::path::Path;

use crate::error::Error;

/// What is wrong with which box; the path of the file comes later.
#[derive(Debug)]
pub(super) enum Fault {
    Box { at: &'static str, problem: String },
    Io(io::Error),
}

impl Fault {
    pub(super) fn new(at: &'static str, problem: impl Into<String>) -> Self {
        Self::Box { at, problem: problem.into() }
    }

    pub(super) fn with_path(self, path: &Path) -> Error {
        match self {
            Self::Box { at, problem } => Error::Mp4 { at, problem, path: path.into() },
            Self::Io(source) => Error::io("read the video", path, source),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The rest of a box's body, read field by field.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    at: &'static str,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub(super) const fn new(at: &'static str, rest: &'a [u8]) -> Self {
        Self { at, rest }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (field, rest) = self.rest.split_first_chunk().ok_or_else(|| self.short(N))?;
        self.rest = rest;
        Ok(*field)
    }

    fn short(&self, wanted: usize) -> Fault {
        Fault::new(self.at, format!("ends {} bytes too early", wanted - self.rest.len()))
    }

    pub(super) fn skip(&mut self, bytes: usize) -> Result<(), Fault> {
        self.rest = self.rest.get(bytes..).ok_or_else(|| self.short(bytes))?;
        Ok(())
    }

    /// The version byte of a full box; its flags are passed over.
    pub(super) fn version(&mut self) -> Result<u8, Fault> {
        let [version, ..] = self.take::<4>()?;
        Ok(version)
    }

    pub(super) fn four(&mut self) -> Result<[u8; 4], Fault> {
        self.take()
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.take().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.take().map(u64::from_be_bytes)
    }

    /// A table of `count` entries of `N` bytes; refused before anything is allocated where the body is shorter.
    pub(super) fn entries<const N: usize>(self, count: u64) -> Result<impl Iterator<Item = Body<'a>>, Fault> {
        let held = (self.rest.len() / N) as u64;
        if count > held {
            return Err(Fault::new(self.at, format!("claims {count} entries and holds {held}")));
        }
        let at = self.at;
        Ok(self.rest.chunks_exact(N).take(count as usize).map(move |entry| Body::new(at, entry)))
    }
}

/// Kind and body of a box.
pub(super) type Entry<'a> = ([u8; 4], &'a [u8]);

/// The boxes in `body`.
pub(super) fn children<'a>(
    body: &'a [u8],
    at: &'static str,
) -> impl Iterator<Item = Result<Entry<'a>, Fault>> {
    let mut rest = body;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = split_box(rest, at);
        rest = next.as_ref().map_or(&[], |&(_, after)| after);
        Some(next.map(|(entry, _)| entry))
    })
}

fn split_box<'a>(bytes: &'a [u8], at: &'static str) -> Result<(Entry<'a>, &'a [u8]), Fault> {
    let mut head = Body::new(at, bytes);
    let (short, kind) = (head.u32()?, head.four()?);
    let claimed = match short {
        0 => bytes.len() as u64,
        1 => head.u64()?,
        n => u64::from(n),
    };
    let header = bytes.len() - head.rest().len();
    let whole = usize::try_from(claimed).ok().filter(|&n| n >= header && n <= bytes.len());
    let parts = whole.and_then(|n| Some((bytes.get(header..n)?, bytes.get(n..)?)));
    let (inner, after) = parts.ok_or_else(|| {
        let name = kind.escape_ascii();
        Fault::new(at, format!("holds box {name} that claims {claimed} bytes, {} are left", bytes.len()))
    })?;
    Ok(((kind, inner), after))
}

/// The body of the first box of this kind.
pub(super) fn child<'a>(body: &'a [u8], kind: &[u8; 4], at: &'static str) -> Result<Option<&'a [u8]>, Fault> {
    for entry in children(body, at) {
        let (found, inner) = entry?;
        if found == *kind {
            return Ok(Some(inner));
        }
    }
    Ok(None)
}

/// The body of the first box of this kind, which has to be there.
pub(super) fn required<'a>(body: &'a [u8], kind: &[u8; 4], at: &'static str) -> Result<&'a [u8], Fault> {
    child(body, kind, at)?.ok_or_else(|| Fault::new(at, "is missing"))
}
