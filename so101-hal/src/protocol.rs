//! The packets of Feetech's STS servos (the STS3215 of the SO-101): no allocation, no I/O.
//!
//! Source: Feetech's "Magnetic encoder smart bus servo protocol", LeRobot's "protocol 0". One wire, half duplex,
//! 8N1, 1 Mbaud, words little endian:
//!
//! ```text
//! request  FF FF id len instruction parameters.. checksum
//! reply    FF FF id len alarms      data..       checksum      len = parameters + 2
//! checksum = !(id + len + instruction + parameters) mod 256
//! ```
//!
//! A reply's fifth byte are [`Alarms`]: conditions of the servo that travel with valid data, not refusals.
//! [`Request::encode`] writes requests, [`FrameParser`] finds packets in a stream of bytes, whatever surrounds them.
//!
//! ```
//! use so101_hal::protocol::{FrameParser, Request, ServoId};
//! # fn main() -> so101_hal::Result<()> {
//! let mut bytes = [0; 8];
//! let n = Request::Ping(ServoId::new(1)?.into()).encode(&mut bytes)?;
//! assert_eq!(bytes[..n], [0xff, 0xff, 0x01, 0x02, 0x01, 0xfb]);
//!
//! let mut parser = FrameParser::new();
//! parser.push(&[0x37, 0xff, 0xff, 0xff, 0x01, 0x02, 0x20, 0xdc]); // noise, one header byte too many, a reply
//! let reply = parser.next_packet().ok_or("no reply").unwrap().unwrap();
//! assert_eq!((reply.id, reply.alarms().to_string()), (1, "overload".to_string()));
//! # Ok(()) }
//! ```

mod encode;
mod parser;

pub use encode::{Request, SyncRow, Target, encode_status};
pub use parser::{FrameFault, FrameParser, Packet};

use core::fmt;

use crate::error::{Error, Result};
use crate::joint::JointId;

/// The longest packet that the vendor's library sends or takes, in bytes.
pub const MAX_PACKET: usize = 250;

/// The most parameters (or data bytes of a reply) that fit a packet.
pub const MAX_PARAMS: usize = MAX_PACKET - OVERHEAD;

/// Bytes of a packet without parameters.
pub const OVERHEAD: usize = 6;

/// The id that addresses every servo at once.
pub const BROADCAST_ID: u8 = 0xfe;

/// The id of one servo, 0 to 253.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServoId(u8);

impl ServoId {
    /// The servos of an SO-101 in joint order, ids 1 to 6.
    pub const ARM: [Self; 6] = [Self(1), Self(2), Self(3), Self(4), Self(5), Self(6)];

    /// Takes an id of 0 to 253.
    ///
    /// # Errors
    /// [`Error::ServoId`] for 254 (every servo) and 255 (no id).
    pub const fn new(id: u8) -> Result<Self> {
        if id < BROADCAST_ID { Ok(Self(id)) } else { Err(Error::ServoId { id }) }
    }

    /// The bare id.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl From<JointId> for ServoId {
    fn from(joint: JointId) -> Self {
        Self(joint.servo_id())
    }
}

impl fmt::Display for ServoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Instruction {
    /// Answer with an empty reply.
    Ping = 0x01,
    /// Answer with the bytes of a block of registers.
    Read = 0x02,
    /// Store bytes from a register on.
    Write = 0x03,
    /// Keep a write for [`Self::Action`].
    RegWrite = 0x04,
    /// Carry out the kept write.
    Action = 0x05,
    /// Back to the factory's registers, id excepted. Not verified on an STS3215.
    Reset = 0x06,
    /// Start again. Not verified on an STS3215.
    Reboot = 0x08,
    /// Every listed servo answers a read of the same block, in the listed order.
    SyncRead = 0x82,
    /// Every listed servo stores its own bytes; nobody answers.
    SyncWrite = 0x83,
}

impl Instruction {
    /// The instruction of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x01 => Self::Ping,
            0x02 => Self::Read,
            0x03 => Self::Write,
            0x04 => Self::RegWrite,
            0x05 => Self::Action,
            0x06 => Self::Reset,
            0x08 => Self::Reboot,
            0x82 => Self::SyncRead,
            0x83 => Self::SyncWrite,
            _ => return None,
        })
    }

    /// What it is called in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Read => "read",
            Self::Write => "write",
            Self::RegWrite => "registered write",
            Self::Action => "action",
            Self::Reset => "reset",
            Self::Reboot => "reboot",
            Self::SyncRead => "sync read",
            Self::SyncWrite => "sync write",
        }
    }
}

/// A run of registers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Address of the first byte.
    pub address: u8,
    /// Number of bytes.
    pub len: u8,
}

impl Block {
    /// `len` bytes from `address` on.
    #[must_use]
    pub const fn new(address: u8, len: u8) -> Self {
        Self { address, len }
    }

    /// Number of bytes.
    #[must_use]
    pub const fn len_bytes(self) -> usize {
        self.len as usize
    }
}

/// Conditions that a servo reports beside its data: byte 4 of a reply and register 65.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Alarms(u8);

impl Alarms {
    /// Nothing to report.
    pub const NONE: Self = Self(0);
    /// Supply voltage out of the limits of registers 14 and 15.
    pub const VOLTAGE: Self = Self(1);
    /// The position sensor.
    pub const ANGLE: Self = Self(1 << 1);
    /// Hotter than register 13.
    pub const HEAT: Self = Self(1 << 2);
    /// More current than register 28 for longer than register 38.
    pub const CURRENT: Self = Self(1 << 3);
    /// More load than register 36 for longer than register 35.
    pub const OVERLOAD: Self = Self(1 << 5);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::VOLTAGE, "voltage"),
        (Self::ANGLE, "angle"),
        (Self::HEAT, "heat"),
        (Self::CURRENT, "current"),
        (Self::OVERLOAD, "overload"),
    ];

    /// The byte as the servo sends it, reserved bits included.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// No bit set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All bits of `other` are set here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Names of the alarms that are set, in the order of their bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(a, _)| self.contains(*a)).map(|(_, name)| name)
    }
}

impl core::ops::BitOr for Alarms {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOrAssign for Alarms {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// `none`, or the names joined by `+`; bits without a name in hexadecimal.
impl fmt::Display for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        let mut rest = self.0;
        for (alarm, name) in Self::NAMES {
            if self.contains(alarm) {
                write!(f, "{separator}{name}")?;
                separator = "+";
                rest &= !alarm.0;
            }
        }
        if rest != 0 {
            write!(f, "{separator}reserved bits {rest:#04x}")?;
        }
        Ok(())
    }
}

/// The checksum of a packet's bytes between header and checksum.
///
/// ```
/// assert_eq!(so101_hal::protocol::checksum(&[0x01, 0x02, 0x01]), 0xfb);
/// ```
#[must_use]
pub fn checksum(body: &[u8]) -> u8 {
    !body.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b))
}

#[cfg(test)]
mod tests;
