//! JPEG files one after the other in one file, as `v4l2-ctl --stream-to` and `ffmpeg -f mjpeg` write them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;

use super::super::picture::Content;
use super::io;
use crate::error::Result;

/// No picture of a camera is larger; a longer one is a stream that is none.
const MAX_PICTURE: usize = 32 << 20;

/// Reads one picture at a time; the stream itself may be of any length.
#[derive(Debug)]
pub(super) struct JpegStream {
    file: BufReader<File>,
}

impl JpegStream {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| io("open the pictures of", path, e))?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file) })
    }

    pub(super) fn rewind(&mut self, path: &Path) -> Result<()> {
        self.file.rewind().map_err(|e| io("rewind the pictures of", path, e))
    }

    /// The next picture; `None` at the end.
    pub(super) fn next(&mut self, path: &Path) -> Result<Option<Content>> {
        self.picture().map_err(|e| io("read the pictures of", path, e))
    }

    fn picture(&mut self) -> std::io::Result<Option<Content>> {
        // What stands between two pictures, such as padding, is passed over.
        let mut last = 0;
        loop {
            match self.byte()? {
                None => return Ok(None),
                Some(0xd8) if last == 0xff => break,
                Some(byte) => last = byte,
            }
        }
        let mut bytes = alloc::vec![0xff, 0xd8];
        let whole = self.segments(&mut bytes)? && self.scan(&mut bytes)?;
        Ok(Some(if whole {
            Content::Jpeg(Arc::from(bytes))
        } else {
            Content::Damaged("the stream ends or breaks off within a picture".into())
        }))
    }

    /// Reads segments up to and with the start of the scan. A thumbnail inside of one is no picture.
    fn segments(&mut self, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
        loop {
            let mut head = [0; 4];
            for slot in &mut head {
                let Some(byte) = self.byte()? else { return Ok(false) };
                *slot = byte;
            }
            let [mark, marker, hi, lo] = head;
            let len = usize::from(u16::from_be_bytes([hi, lo]));
            if mark != 0xff || len < 2 || bytes.len() + len > MAX_PICTURE {
                return Ok(false);
            }
            bytes.extend_from_slice(&head);
            let start = bytes.len();
            bytes.resize(start + len - 2, 0);
            let body = bytes.get_mut(start..).unwrap_or_default();
            if let Err(e) = self.file.read_exact(body) {
                return if e.kind() == std::io::ErrorKind::UnexpectedEof { Ok(false) } else { Err(e) };
            }
            if marker == 0xda {
                return Ok(true);
            }
        }
    }

    /// Reads up to and with the end marker. Inside of the scan, FF stands in front of 00 and restarts only.
    fn scan(&mut self, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
        let mut last = 0;
        while let Some(byte) = self.byte()? {
            bytes.push(byte);
            match (last, byte) {
                (0xff, 0xd9) => return Ok(true),
                _ if bytes.len() > MAX_PICTURE => return Ok(false),
                _ => last = byte,
            }
        }
        Ok(false)
    }

    fn byte(&mut self) -> std::io::Result<Option<u8>> {
        let mut one = [0];
        loop {
            match self.file.read(&mut one) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(one.first().copied()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}
