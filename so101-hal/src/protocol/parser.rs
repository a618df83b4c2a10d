//! Bytes into packets.

use super::{Alarms, Instruction, MAX_PACKET, MAX_PARAMS, OVERHEAD, checksum};

/// A packet found in the stream, request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The servo it comes from or goes to.
    pub id: u8,
    /// Instruction of a request, alarms of a reply.
    pub code: u8,
    /// Parameters of a request, data of a reply.
    pub params: &'a [u8],
}

impl Packet<'_> {
    /// The code as a reply's alarms.
    #[must_use]
    pub const fn alarms(&self) -> Alarms {
        Alarms::from_bits(self.code)
    }

    /// Whether these are its bytes on the wire.
    pub(crate) fn is_same_as(&self, wire: &[u8]) -> bool {
        match wire {
            [_, _, id, _, code, params @ .., _] => (*id, *code, params) == (self.id, self.code, self.params),
            _ => false,
        }
    }

    /// The code as a request's instruction.
    #[must_use]
    pub const fn instruction(&self) -> Option<Instruction> {
        Instruction::from_code(self.code)
    }
}

/// Something that looked like a packet and was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameFault {
    /// The checksum does not agree.
    Checksum {
        /// The id that the damaged packet names.
        id: u8,
        /// The checksum of its bytes.
        computed: u8,
        /// The checksum it carries.
        received: u8,
    },
    /// The length byte is below 2 or more than this parser takes.
    Length {
        /// The id that the damaged packet names.
        id: u8,
        /// The length byte.
        len: u8,
    },
    /// The checksum agrees, but another reply begins within the packet, so that its end may be borrowed from that one;
    /// or its alarms have bit 7, which no servo sets. Only when replies of a known length are awaited.
    Ambiguous {
        /// The id that the packet names.
        id: u8,
    },
}

const CAPACITY: usize = 2 * MAX_PACKET;

/// Finds packets in a stream of bytes and steps over everything else.
///
/// After bytes that only looked like a packet the search goes on one byte behind their start, so a valid packet is
/// never swallowed by noise before it. A false header may claim more bytes than have come; [`Self::finish`] says
/// that nothing more will come and frees what waits behind it.
#[derive(Clone, Debug)]
pub struct FrameParser {
    buffer: [u8; CAPACITY],
    start: usize,
    end: usize,
    max_params: usize,
    finishing: bool,
    skipped: u64,
    replies: Option<Awaited>,
}

/// The replies that are awaited.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    /// Their length byte.
    len: u8,
    /// Only one is missing.
    is_last: bool,
}

impl FrameParser {
    /// A parser for packets of up to [`MAX_PARAMS`] parameters.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_max_params(MAX_PARAMS)
    }

    /// A parser that takes no more than `max_params` parameters: the tighter the bound, the sooner a false header
    /// is recognised.
    #[must_use]
    pub const fn with_max_params(max_params: usize) -> Self {
        let max_params = if max_params < MAX_PARAMS { max_params } else { MAX_PARAMS };
        Self {
            buffer: [0; CAPACITY],
            start: 0,
            end: 0,
            max_params,
            finishing: false,
            skipped: 0,
            replies: None,
        }
    }

    /// Changes the bound on the number of parameters.
    pub fn set_max_params(&mut self, max_params: usize) {
        self.max_params = max_params.min(MAX_PARAMS);
    }

    /// From now on packets are replies with this many bytes of data, and those that can be read in two ways are
    /// [`FrameFault::Ambiguous`]. A reply that was cut off borrows its end from the next one; its checksum agrees in one
    /// of 256 cases.
    pub(crate) fn expect_replies(&mut self, data_len: usize) {
        let len = u8::try_from(data_len.min(MAX_PARAMS) + 2).unwrap_or(u8::MAX);
        self.replies = Some(Awaited { len, is_last: false });
    }

    /// Whether the next reply is the last that is awaited: it needs no look at what follows.
    pub(crate) const fn set_last(&mut self, is_last: bool) {
        if let Some(replies) = &mut self.replies {
            replies.is_last = is_last;
        }
    }

    /// Takes bytes and returns how many it took: all of them when [`Self::next_packet`] was called to its end
    /// before and there are no more than [`MAX_PACKET`].
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        self.finishing = false;
        if self.end + bytes.len() > CAPACITY {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let taken = bytes.len().min(CAPACITY - self.end);
        self.buffer[self.end..self.end + taken].copy_from_slice(&bytes[..taken]);
        self.end += taken;
        taken
    }

    /// The next packet or fault; `None` when more bytes are needed.
    pub fn next_packet(&mut self) -> Option<Result<Packet<'_>, FrameFault>> {
        loop {
            match self.look() {
                Look::Incomplete if self.finishing && self.start < self.end => self.skip(1),
                Look::Incomplete => return None,
                Look::Skip(n) => self.skip(n),
                Look::Fault(fault) => {
                    self.skip(1);
                    return Some(Err(fault));
                }
                Look::Packet(len) => {
                    let at = self.start;
                    self.start += len;
                    let bytes = &self.buffer[at..at + len];
                    return Some(Ok(Packet {
                        id: bytes[2],
                        code: bytes[4],
                        params: &bytes[OVERHEAD - 1..len - 1],
                    }));
                }
            }
        }
    }

    /// No more bytes will come: an incomplete packet at the front is noise. Ends with the next [`Self::push`].
    pub fn finish(&mut self) {
        self.finishing = true;
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.finishing = false;
    }

    /// Bytes stepped over since the parser was made.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    fn skip(&mut self, n: usize) {
        self.start += n;
        self.skipped += n as u64;
    }

    /// What stands at the front of the buffer.
    fn look(&self) -> Look {
        let bytes = &self.buffer[self.start..self.end];
        match *bytes {
            [] | [0xff] | [0xff, 0xff] => Look::Incomplete,
            // No servo has the id 0xff: three in a row are a header that begins one byte later.
            [0xff, 0xff, 0xff, ..] => Look::Skip(1),
            [0xff, 0xff, _] => Look::Incomplete,
            [0xff, 0xff, id, len, ..] => {
                let total = usize::from(len) + 4;
                if total < OVERHEAD || total > OVERHEAD + self.max_params {
                    return Look::Fault(FrameFault::Length { id, len });
                }
                let Some(packet) = bytes.get(..total) else { return Look::Incomplete };
                let (computed, received) = (checksum(&packet[2..total - 1]), packet[total - 1]);
                if computed != received {
                    return Look::Fault(FrameFault::Checksum { id, computed, received });
                }
                match self.replies.map_or(Overlap::None, |replies| self.overlap(bytes, total, replies)) {
                    Overlap::None => Look::Packet(total),
                    Overlap::Possible => Look::Incomplete,
                    Overlap::Certain => Look::Fault(FrameFault::Ambiguous { id }),
                }
            }
            _ => Look::Skip(bytes.iter().skip(1).position(|b| *b == 0xff).map_or(bytes.len(), |k| k + 1)),
        }
    }
}

impl FrameParser {
    /// Whether another reply begins within the packet of `total` bytes at the front of `bytes`.
    fn overlap(&self, bytes: &[u8], total: usize, replies: Awaited) -> Overlap {
        if bytes.get(4).is_some_and(|alarms| alarms & 0x80 != 0) {
            return Overlap::Certain;
        }
        for start in 4..total {
            let mut rest = bytes.get(start..).unwrap_or(&[]);
            // Most bytes are nothing like the start of a header.
            if rest.first().is_none_or(|b| !is_near_ff(*b)) {
                continue;
            }
            // Headers of which nothing else came, before a whole one.
            while total - start > 1 && rest.starts_with(&[0xff; 3]) {
                rest = &rest[1..];
            }
            match (like_a_header(rest, replies.len), total - start) {
                (Some(true), _) => return Overlap::Certain,
                (Some(false), _) => {}
                (None, _) if replies.is_last => {}
                (None, _) if !self.finishing => return Overlap::Possible,
                // One byte alone is no sign of a packet that never came.
                (None, 1) if rest.len() == 1 => {}
                (None, _) => return Overlap::Certain,
            }
        }
        Overlap::None
    }
}

/// Whether bytes begin like a packet, one wrong bit allowed; `None` when there are too few to say.
fn like_a_header(bytes: &[u8], awaited_len: u8) -> Option<bool> {
    let (first, second) = (*bytes.first()?, bytes.get(1));
    let wrong = first.count_zeros() + second.map_or(0, |b| b.count_zeros());
    if wrong > 1 {
        return Some(false);
    }
    match (second?, bytes.get(2)?, bytes.get(3)) {
        (_, 0xff, _) => Some(false),
        (_, _, None) => None,
        (_, _, Some(len)) if wrong > 0 => Some(*len == awaited_len),
        // An older packet may have another length than the awaited ones.
        (_, _, Some(len)) => Some(SHORT.contains(len) || (len ^ awaited_len).count_ones() == 1),
    }
}

/// At most one of its bits is zero.
const fn is_near_ff(byte: u8) -> bool {
    let zeros = !byte;
    zeros & zeros.wrapping_sub(1) == 0
}

/// Length bytes of the packets that are common on a bus.
const SHORT: core::ops::RangeInclusive<u8> = 2..=66;

impl Default for FrameParser {
    fn default() -> Self {
        Self::new()
    }
}

enum Look {
    Incomplete,
    Skip(usize),
    Fault(FrameFault),
    Packet(usize),
}

/// Whether a packet may share its last bytes with the next one.
enum Overlap {
    None,
    /// More bytes will tell.
    Possible,
    Certain,
}
