//! Packets into bytes.

use super::{Alarms, BROADCAST_ID, Block, Instruction, MAX_PACKET, OVERHEAD, ServoId, checksum};
use crate::error::{Error, Result};

/// Whom a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// One servo.
    One(ServoId),
    /// Every servo on the bus; only a ping is answered.
    All,
}

impl Target {
    /// The byte on the wire.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::One(id) => id.get(),
            Self::All => BROADCAST_ID,
        }
    }
}

impl From<ServoId> for Target {
    fn from(id: ServoId) -> Self {
        Self::One(id)
    }
}

/// The bytes for one servo in a sync write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRow<'a> {
    /// The servo.
    pub id: ServoId,
    /// Its bytes; every row of a request has the same number.
    pub data: &'a [u8],
}

/// A request to one, some or all servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request<'a> {
    /// Are you there?
    Ping(Target),
    /// The bytes of a block.
    Read(ServoId, Block),
    /// Bytes from an address on.
    Write(Target, u8, &'a [u8]),
    /// The same, kept until [`Request::Action`].
    RegWrite(Target, u8, &'a [u8]),
    /// Carry out the kept writes.
    Action(Target),
    /// Factory registers. Not verified on an STS3215.
    Reset(ServoId),
    /// Start again. Not verified on an STS3215.
    Reboot(ServoId),
    /// The same block of several servos.
    SyncRead(Block, &'a [ServoId]),
    /// Bytes from an address on, for each of several servos.
    SyncWrite(u8, &'a [SyncRow<'a>]),
}

impl Request<'_> {
    /// Its instruction.
    #[must_use]
    pub const fn instruction(&self) -> Instruction {
        match self {
            Self::Ping(_) => Instruction::Ping,
            Self::Read(..) => Instruction::Read,
            Self::Write(..) => Instruction::Write,
            Self::RegWrite(..) => Instruction::RegWrite,
            Self::Action(_) => Instruction::Action,
            Self::Reset(_) => Instruction::Reset,
            Self::Reboot(_) => Instruction::Reboot,
            Self::SyncRead(..) => Instruction::SyncRead,
            Self::SyncWrite(..) => Instruction::SyncWrite,
        }
    }

    /// Bytes of the packet.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Ping(_) | Self::Action(_) | Self::Reset(_) | Self::Reboot(_) => 0,
                Self::Read(..) => 2,
                Self::Write(_, _, data) | Self::RegWrite(_, _, data) => 1 + data.len(),
                Self::SyncRead(_, ids) => 2 + ids.len(),
                Self::SyncWrite(_, rows) => 2 + rows.iter().map(|row| 1 + row.data.len()).sum::<usize>(),
            }
    }

    /// Writes the packet to the front of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::PacketLength`] when it is longer than `out` or than [`MAX_PACKET`], [`Error::SyncRows`] when the rows of
    /// a sync write differ in length.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize> {
        let (id, row_len) = match self {
            Self::Ping(to) | Self::Write(to, ..) | Self::RegWrite(to, ..) | Self::Action(to) => (to.id(), 0),
            Self::Read(id, _) | Self::Reset(id) | Self::Reboot(id) => (id.get(), 0),
            Self::SyncRead(..) => (BROADCAST_ID, 0),
            Self::SyncWrite(_, rows) => (BROADCAST_ID, equal_row_length(rows)?),
        };
        let mut packet = Writer::begin(out, self.encoded_len(), id, self.instruction() as u8)?;
        match self {
            Self::Ping(_) | Self::Action(_) | Self::Reset(_) | Self::Reboot(_) => {}
            Self::Read(_, block) => packet.put(&[block.address, block.len]),
            Self::Write(_, address, data) | Self::RegWrite(_, address, data) => {
                packet.put(&[*address]);
                packet.put(data);
            }
            Self::SyncRead(block, ids) => {
                packet.put(&[block.address, block.len]);
                for id in *ids {
                    packet.put(&[id.get()]);
                }
            }
            Self::SyncWrite(address, rows) => {
                packet.put(&[*address, row_len]);
                for row in *rows {
                    packet.put(&[row.id.get()]);
                    packet.put(row.data);
                }
            }
        }
        Ok(packet.end())
    }
}

/// Writes a reply, which is what a servo sends, to the front of `out` and returns its length.
///
/// # Errors
/// [`Error::PacketLength`] when it is longer than `out` or than [`MAX_PACKET`].
pub fn encode_status(id: ServoId, alarms: Alarms, data: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut packet = Writer::begin(out, OVERHEAD + data.len(), id.get(), alarms.bits())?;
    packet.put(data);
    Ok(packet.end())
}

fn equal_row_length(rows: &[SyncRow<'_>]) -> Result<u8> {
    let len = rows.first().map_or(0, |row| row.data.len());
    match rows.iter().find(|row| row.data.len() != len) {
        Some(row) => Err(Error::SyncRows { id: row.id.get(), expected: len, got: row.data.len() }),
        // Longer rows are refused by the length of the packet.
        None => Ok(u8::try_from(len).unwrap_or(u8::MAX)),
    }
}

/// Fills a buffer that is known to be long enough.
struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl<'o> Writer<'o> {
    fn begin(out: &'o mut [u8], len: usize, id: u8, code: u8) -> Result<Self> {
        let room = out.len().min(MAX_PACKET);
        if len > room {
            return Err(Error::PacketLength { needed: len, room });
        }
        let mut packet = Self { out: &mut out[..len], at: 0 };
        // `len` is at most MAX_PACKET, so this fits a byte.
        packet.put(&[0xff, 0xff, id, (len - 4) as u8, code]);
        Ok(packet)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn end(mut self) -> usize {
        let sum = checksum(&self.out[2..self.at]);
        self.put(&[sum]);
        self.at
    }
}
