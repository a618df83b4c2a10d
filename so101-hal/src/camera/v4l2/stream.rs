//! The buffers that go back and forth between the kernel and us.

use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

use super::super::Stamps;
use super::super::jpeg;
use super::super::picture::{Buffers, Content};
use super::super::yuyv::{self, Range};
use super::abi::{
    BUF_ERROR, BUF_STAMP_MASK, BUF_STAMP_MONOTONIC, BUF_STAMP_SOURCE_MASK, BUF_STAMP_START, Buffer,
    BufferRequest, CAPTURE, Kind, MMAP, QueryBuf, ReqBufs, StreamOff, StreamOn,
};
use super::calls::{Calls, Errno, Ready};
use super::errors::Place;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// Buffers to ask for: one that is filled, one that waits, two for a computer that is busy.
pub(super) const BUFFERS: u32 = 4;
/// With fewer the driver has nothing to fill while we copy.
const FEWEST: u32 = 2;

/// How the bytes of a picture lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// A JPEG file.
    Jpeg,
    /// Packed 4:2:2.
    Yuyv {
        /// Bytes from one row to the next.
        stride: usize,
        /// Its codes.
        range: Range,
    },
}

/// A buffer that is ours for the moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) buffer: Buffer,
    /// The kernel's monotonic clock when the picture was taken, where it stamps with that.
    pub(super) stamp: Option<Duration>,
    pub(super) stamps: Stamps,
}

/// Gets buffers, maps them, gives all to the kernel and starts the stream.
pub(super) fn begin<C: Calls>(calls: &mut C, place: &Place) -> Result<()> {
    let mut request = BufferRequest { count: BUFFERS, kind: CAPTURE, memory: MMAP, ..BufferRequest::ZERO };
    calls.ioctl::<ReqBufs>(&mut request).map_err(|e| place.error("get buffers of", e))?;
    if request.count < FEWEST {
        return Err(Error::CameraNode {
            what: format!("it has {} buffers, {FEWEST} are needed", request.count),
            path: place.path.clone(),
        });
    }
    for index in 0..request.count {
        let mut buffer = Buffer { index, kind: CAPTURE, memory: MMAP, ..Buffer::ZERO };
        calls.ioctl::<QueryBuf>(&mut buffer).map_err(|e| place.error("ask for a buffer of", e))?;
        calls.map(index, buffer.length, buffer.offset).map_err(|e| place.error("map a buffer of", e))?;
        give_back(calls, place, buffer)?;
    }
    calls.ioctl::<StreamOn>(&mut Kind { kind: CAPTURE }).map_err(|e| place.error("start", e))
}

/// Stops the stream; a camera that is gone has stopped.
pub(super) fn end<C: Calls>(calls: &mut C) {
    let _ = calls.ioctl::<StreamOff>(&mut Kind { kind: CAPTURE });
}

/// Waits for a filled buffer; `None` where none comes in time.
pub(super) fn take<C: Calls>(calls: &mut C, place: &Place, patience: Duration) -> Result<Option<Taken>> {
    let failed = |e| place.error("take a picture of", e);
    let end = calls.monotonic_now() + patience;
    loop {
        let left = end.saturating_sub(calls.monotonic_now());
        if calls.wait(left).map_err(failed)? == Ready::TimedOut {
            return Ok(None);
        }
        let mut buffer = Buffer { kind: CAPTURE, memory: MMAP, ..Buffer::ZERO };
        match calls.dequeue(&mut buffer) {
            Ok(()) => return Ok(Some(Taken::of(buffer))),
            Err(Errno::AGAIN) if calls.monotonic_now() >= end => return Ok(None),
            // Woken for nothing.
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
}

/// Gives a buffer to the kernel.
pub(super) fn give_back<C: Calls>(calls: &mut C, place: &Place, buffer: Buffer) -> Result<()> {
    let mut empty = Buffer { index: buffer.index, kind: CAPTURE, memory: MMAP, ..Buffer::ZERO };
    calls.queue(&mut empty).map_err(|e| place.error("give a buffer to", e))
}

/// What is in a buffer, copied out of it.
pub(super) fn content<C: Calls>(
    calls: &C,
    taken: &Taken,
    layout: &Layout,
    size: FrameSize,
    (sequence, captured): (u64, Timestamp),
    buffers: &mut Buffers,
) -> Result<Content> {
    let damaged = |why: &str| Ok(Content::Damaged(Arc::from(why)));
    if taken.buffer.flags & BUF_ERROR != 0 {
        return damaged("the driver marked it as damaged: bytes were lost on the USB bus");
    }
    let used = taken.buffer.bytesused as usize;
    let Some(bytes) = calls.taken(taken.buffer.index).and_then(|b| b.get(..used)).filter(|b| !b.is_empty())
    else {
        return damaged("it came without bytes");
    };
    match *layout {
        Layout::Jpeg => match jpeg::trim(bytes) {
            Some(file) => Ok(Content::Jpeg(Arc::from(file))),
            None => damaged(&format!("{used} bytes came that are no whole JPEG file")),
        },
        Layout::Yuyv { stride, range } => {
            let mut rgb = buffers.take(size.rgb_len());
            if yuyv::to_rgb(bytes, stride, size, range, &mut rgb) {
                return Ok(Content::Frame(Frame::new(size, rgb, sequence, captured)?));
            }
            buffers.give(rgb);
            damaged(&format!("{used} bytes came, a YUYV picture of {size} has more"))
        }
    }
}

impl Taken {
    fn of(buffer: Buffer) -> Self {
        let monotonic = buffer.flags & BUF_STAMP_MASK == BUF_STAMP_MONOTONIC;
        let seconds = u64::try_from(buffer.seconds).unwrap_or(0);
        let micros = u64::try_from(buffer.microseconds).unwrap_or(0);
        // Some drivers leave the time at zero.
        let stamp = (monotonic && (seconds, micros) != (0, 0))
            .then(|| Duration::from_secs(seconds) + Duration::from_micros(micros));
        let stamps = match stamp {
            None => Stamps::Arrival,
            Some(_) if buffer.flags & BUF_STAMP_SOURCE_MASK == BUF_STAMP_START => Stamps::StartOfExposure,
            Some(_) => Stamps::EndOfFrame,
        };
        Self { buffer, stamp, stamps }
    }
}
