//! Structures and request numbers of `linux/videodev2.h` on 64-bit Linux, as far as a camera needs them.
//!
//! Unions are written out as the member that cameras use, with the rest as bytes, so that there is no padding.

use super::calls::sealed::Sealed;

/// `V4L2_BUF_TYPE_VIDEO_CAPTURE`.
pub const CAPTURE: u32 = 1;
/// `V4L2_MEMORY_MMAP`.
pub const MMAP: u32 = 1;
/// `V4L2_FIELD_NONE`: whole pictures.
pub const FIELD_NONE: u32 = 1;
/// `V4L2_CAP_VIDEO_CAPTURE`.
pub const CAP_VIDEO_CAPTURE: u32 = 0x1;
/// `V4L2_CAP_STREAMING`.
pub const CAP_STREAMING: u32 = 0x0400_0000;
/// `V4L2_CAP_DEVICE_CAPS`: the node's own abilities are told.
pub const CAP_DEVICE_CAPS: u32 = 0x8000_0000;
/// `V4L2_CAP_TIMEPERFRAME`: the rate can be set.
pub const CAP_TIMEPERFRAME: u32 = 0x1000;
/// `V4L2_PIX_FMT_MJPEG`.
pub const MJPG: u32 = u32::from_le_bytes(*b"MJPG");
/// `V4L2_PIX_FMT_JPEG`, which some drivers say instead.
pub const JPEG: u32 = u32::from_le_bytes(*b"JPEG");
/// `V4L2_PIX_FMT_YUYV`.
pub const YUYV: u32 = u32::from_le_bytes(*b"YUYV");
/// `V4L2_QUANTIZATION_FULL_RANGE`.
pub const FULL_RANGE: u32 = 1;
/// `V4L2_BUF_FLAG_ERROR`: the picture is damaged.
pub const BUF_ERROR: u32 = 0x40;
/// `V4L2_BUF_FLAG_TIMESTAMP_MASK`.
pub const BUF_STAMP_MASK: u32 = 0xe000;
/// `V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC`.
pub const BUF_STAMP_MONOTONIC: u32 = 0x2000;
/// `V4L2_BUF_FLAG_TSTAMP_SRC_MASK`.
pub const BUF_STAMP_SOURCE_MASK: u32 = 0x7_0000;
/// `V4L2_BUF_FLAG_TSTAMP_SRC_SOE`: stamped at the start of the exposure.
pub const BUF_STAMP_START: u32 = 0x1_0000;
/// `V4L2_CTRL_FLAG_DISABLED`.
pub const CTRL_DISABLED: u32 = 0x1;
/// `V4L2_FRMSIZE_TYPE_DISCRETE` and `V4L2_FRMIVAL_TYPE_DISCRETE`.
pub const DISCRETE: u32 = 1;

/// `V4L2_CID_AUTO_WHITE_BALANCE`.
pub const CID_AUTO_WHITE_BALANCE: u32 = 0x0098_090c;
/// `V4L2_CID_AUTOGAIN`.
pub const CID_AUTOGAIN: u32 = 0x0098_0912;
/// `V4L2_CID_GAIN`.
pub const CID_GAIN: u32 = 0x0098_0913;
/// `V4L2_CID_POWER_LINE_FREQUENCY`.
pub const CID_POWER_LINE_FREQUENCY: u32 = 0x0098_0918;
/// `V4L2_CID_WHITE_BALANCE_TEMPERATURE`, kelvin.
pub const CID_WHITE_BALANCE_TEMPERATURE: u32 = 0x0098_091a;
/// `V4L2_CID_EXPOSURE_AUTO`: 1 = by hand, 3 = automatic time at a fixed aperture, 0 = automatic.
pub const CID_EXPOSURE_AUTO: u32 = 0x009a_0901;
/// `V4L2_CID_EXPOSURE_ABSOLUTE`, 100 us.
pub const CID_EXPOSURE_ABSOLUTE: u32 = 0x009a_0902;
/// `V4L2_CID_EXPOSURE_AUTO_PRIORITY`: 1 = exposure may lower the rate.
pub const CID_EXPOSURE_AUTO_PRIORITY: u32 = 0x009a_0903;
/// `V4L2_CID_FOCUS_ABSOLUTE`.
pub const CID_FOCUS_ABSOLUTE: u32 = 0x009a_090a;
/// `V4L2_CID_FOCUS_AUTO`.
pub const CID_FOCUS_AUTO: u32 = 0x009a_090c;

/// A field of a structure, for texts of recorded calls.
#[derive(Debug)]
pub enum Field<'a> {
    /// A number without sign.
    U32(&'a mut u32),
    /// A number.
    I32(&'a mut i32),
    /// A long number.
    I64(&'a mut i64),
    /// Four characters.
    FourCc(&'a mut u32),
    /// A text that ends at its first zero.
    Text(&'a mut [u8]),
}

/// Structures whose fields have names.
pub trait Fields {
    /// Shows every field that means something.
    fn visit(&mut self, see: &mut dyn FnMut(&'static str, Field<'_>));
}

macro_rules! structure {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty $(= $kind:ident)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl $name {
            /// All zero.
            pub const ZERO: Self = Self { $($field: <$type as Zero>::ZERO,)* };
        }

        impl Zero for $name {
            const ZERO: Self = Self::ZERO;
        }

        impl Fields for $name {
            fn visit(&mut self, see: &mut dyn FnMut(&'static str, Field<'_>)) {
                $($(see(stringify!($field), Field::$kind(&mut self.$field));)?)*
            }
        }
    };
}

trait Zero {
    const ZERO: Self;
}
impl Zero for u32 {
    const ZERO: Self = 0;
}
impl Zero for i32 {
    const ZERO: Self = 0;
}
impl Zero for i64 {
    const ZERO: Self = 0;
}
impl<const N: usize> Zero for [u8; N] {
    const ZERO: Self = [0; N];
}
impl<const N: usize> Zero for [u32; N] {
    const ZERO: Self = [0; N];
}

structure! {
    /// `struct v4l2_capability`.
    Capability {
        /// Name of the driver.
        driver: [u8; 16] = Text,
        /// Name of the device.
        card: [u8; 32] = Text,
        /// Where it is.
        bus_info: [u8; 32] = Text,
        /// Version of the kernel.
        version: u32 = U32,
        /// Abilities of the device as a whole.
        capabilities: u32 = U32,
        /// Abilities of this node.
        device_caps: u32 = U32,
        /// Zero.
        reserved: [u32; 3],
    }
}

structure! {
    /// `struct v4l2_fmtdesc`.
    FormatDescription {
        /// Which one, from 0.
        index: u32 = U32,
        /// [`CAPTURE`].
        kind: u32 = U32,
        /// Compressed, emulated.
        flags: u32 = U32,
        /// In words.
        description: [u8; 32] = Text,
        /// Four characters.
        pixelformat: u32 = FourCc,
        /// Unused.
        mbus_code: u32,
        /// Zero.
        reserved: [u32; 3],
    }
}

structure! {
    /// `struct v4l2_frmsizeenum`, the union as its largest member: for discrete sizes width and height are the first two.
    FrameSizes {
        /// Which one, from 0.
        index: u32 = U32,
        /// Of this format.
        pixel_format: u32 = FourCc,
        /// [`DISCRETE`], or a range.
        kind: u32 = U32,
        /// Width; of a range the smallest.
        width: u32 = U32,
        /// Height of a discrete size; of a range the largest width.
        height: u32 = U32,
        /// Step of the width.
        step_width: u32 = U32,
        /// The smallest height of a range.
        min_height: u32 = U32,
        /// The largest.
        max_height: u32 = U32,
        /// Step of the height.
        step_height: u32 = U32,
        /// Zero.
        reserved: [u32; 2],
    }
}

structure! {
    /// `struct v4l2_frmivalenum`, the union as its largest member.
    FrameIntervals {
        /// Which one, from 0.
        index: u32 = U32,
        /// Of this format,
        pixel_format: u32 = FourCc,
        /// this width
        width: u32 = U32,
        /// and this height.
        height: u32 = U32,
        /// [`DISCRETE`], or a range.
        kind: u32 = U32,
        /// Seconds between two pictures; of a range the shortest time: numerator
        numerator: u32 = U32,
        /// and denominator.
        denominator: u32 = U32,
        /// Longest time and step of a range.
        range: [u32; 4],
        /// Zero.
        reserved: [u32; 2],
    }
}

structure! {
    /// `struct v4l2_format` with `struct v4l2_pix_format` in its union.
    Format {
        /// [`CAPTURE`].
        kind: u32 = U32,
        /// The union is aligned to 8 bytes.
        pad: u32,
        /// Columns.
        width: u32 = U32,
        /// Rows.
        height: u32 = U32,
        /// Four characters.
        pixelformat: u32 = FourCc,
        /// [`FIELD_NONE`].
        field: u32 = U32,
        /// Bytes of a row.
        bytesperline: u32 = U32,
        /// Bytes of the largest picture.
        sizeimage: u32 = U32,
        /// Primaries.
        colorspace: u32 = U32,
        /// Unused.
        private: u32,
        /// Unused.
        flags: u32,
        /// Matrix.
        ycbcr_enc: u32 = U32,
        /// [`FULL_RANGE`], or by the rule for the format.
        quantization: u32 = U32,
        /// Curve.
        xfer_func: u32 = U32,
        /// Rest of the union.
        rest: [u8; 152],
    }
}

structure! {
    /// `struct v4l2_streamparm` with `struct v4l2_captureparm` in its union.
    StreamParameters {
        /// [`CAPTURE`].
        kind: u32 = U32,
        /// [`CAP_TIMEPERFRAME`].
        capability: u32 = U32,
        /// Unused.
        capturemode: u32,
        /// Seconds between two pictures: numerator
        numerator: u32 = U32,
        /// and denominator.
        denominator: u32 = U32,
        /// Unused.
        extendedmode: u32,
        /// Unused.
        readbuffers: u32,
        /// Zero.
        reserved: [u32; 4],
        /// Rest of the union.
        rest: [u8; 160],
    }
}

structure! {
    /// `struct v4l2_queryctrl`.
    ControlQuery {
        /// Which one.
        id: u32 = U32,
        /// Integer, boolean, menu.
        kind: u32 = U32,
        /// Its name.
        name: [u8; 32] = Text,
        /// The smallest value.
        minimum: i32 = I32,
        /// The largest value.
        maximum: i32 = I32,
        /// From one to the next.
        step: i32 = I32,
        /// What it is from the start.
        default_value: i32 = I32,
        /// [`CTRL_DISABLED`] and others.
        flags: u32 = U32,
        /// Zero.
        reserved: [u32; 2],
    }
}

structure! {
    /// `struct v4l2_control`.
    Control {
        /// Which one.
        id: u32 = U32,
        /// Its value.
        value: i32 = I32,
    }
}

structure! {
    /// `struct v4l2_requestbuffers`.
    BufferRequest {
        /// How many.
        count: u32 = U32,
        /// [`CAPTURE`].
        kind: u32 = U32,
        /// [`MMAP`].
        memory: u32 = U32,
        /// Abilities of the queue.
        capabilities: u32,
        /// Flags, one byte, and zeros.
        flags: u32,
    }
}

structure! {
    /// `struct v4l2_buffer`.
    Buffer {
        /// Which one, from 0.
        index: u32 = U32,
        /// [`CAPTURE`].
        kind: u32 = U32,
        /// Bytes in it.
        bytesused: u32 = U32,
        /// [`BUF_ERROR`], where the stamp comes from.
        flags: u32 = U32,
        /// [`FIELD_NONE`].
        field: u32 = U32,
        /// The time is aligned to 8 bytes.
        pad: u32,
        /// When it was taken: seconds
        seconds: i64 = I64,
        /// and microseconds.
        microseconds: i64 = I64,
        /// Unused.
        timecode: [u32; 4],
        /// Counts pictures, those included that never came.
        sequence: u32 = U32,
        /// [`MMAP`].
        memory: u32 = U32,
        /// Where it lies in the device's memory,
        offset: u32 = U32,
        /// as one of several members of a union of 8 bytes.
        offset_rest: u32,
        /// Its length in bytes.
        length: u32 = U32,
        /// Unused.
        reserved2: u32,
        /// Unused.
        request_fd: i32,
        /// To a multiple of 8 bytes.
        tail: u32,
    }
}

structure! {
    /// The kind of buffers that a stream is started or stopped for.
    Kind {
        /// [`CAPTURE`].
        kind: u32 = U32,
    }
}

/// A request to the kernel: its number and its structure.
pub trait Request: Sealed {
    /// The structure that goes in and comes back.
    type Argument: Fields + Copy + Send + 'static;
    /// The number of the request.
    const CODE: u32;
    /// Its name without `VIDIOC_`.
    const NAME: &'static str;
}

const WRITE: u32 = 1;
const READ: u32 = 2;
const BOTH: u32 = 3;

/// `_IOC` of `asm-generic/ioctl.h`: direction, size, `V`, number.
const fn code(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'V' as u32) << 8 | number
}

macro_rules! requests {
    ($($name:ident: $text:literal, $direction:ident, $number:literal, $argument:ident;)*) => {$(
        #[doc = concat!("`VIDIOC_", $text, "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Sealed for $name {}
        impl Request for $name {
            type Argument = $argument;
            const CODE: u32 = code($direction, $number, size_of::<$argument>());
            const NAME: &'static str = $text;
        }
    )*};
}

requests! {
    QueryCap: "QUERYCAP", READ, 0, Capability;
    EnumFmt: "ENUM_FMT", BOTH, 2, FormatDescription;
    GetFmt: "G_FMT", BOTH, 4, Format;
    SetFmt: "S_FMT", BOTH, 5, Format;
    ReqBufs: "REQBUFS", BOTH, 8, BufferRequest;
    QueryBuf: "QUERYBUF", BOTH, 9, Buffer;
    StreamOn: "STREAMON", WRITE, 18, Kind;
    StreamOff: "STREAMOFF", WRITE, 19, Kind;
    GetParm: "G_PARM", BOTH, 21, StreamParameters;
    SetParm: "S_PARM", BOTH, 22, StreamParameters;
    GetControl: "G_CTRL", BOTH, 27, Control;
    SetControl: "S_CTRL", BOTH, 28, Control;
    QueryControl: "QUERYCTRL", BOTH, 36, ControlQuery;
    EnumFrameSizes: "ENUM_FRAMESIZES", BOTH, 74, FrameSizes;
    EnumFrameIntervals: "ENUM_FRAMEINTERVALS", BOTH, 75, FrameIntervals;
}

/// Request number of `VIDIOC_QBUF`, which [`super::Calls::queue`] makes.
pub const QBUF: u32 = code(BOTH, 15, size_of::<Buffer>());
/// Request number of `VIDIOC_DQBUF`, which [`super::Calls::dequeue`] makes.
pub const DQBUF: u32 = code(BOTH, 17, size_of::<Buffer>());

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// Printed by a C program that includes linux/videodev2.h (6.1), x86-64; 64-bit ARM has the same layout and numbers.
    #[test]
    fn request_numbers_are_those_of_the_kernel() {
        for (name, is, should) in [
            (QueryCap::NAME, QueryCap::CODE, 0x8068_5600_u32),
            (EnumFmt::NAME, EnumFmt::CODE, 0xc040_5602),
            (GetFmt::NAME, GetFmt::CODE, 0xc0d0_5604),
            (SetFmt::NAME, SetFmt::CODE, 0xc0d0_5605),
            (ReqBufs::NAME, ReqBufs::CODE, 0xc014_5608),
            (QueryBuf::NAME, QueryBuf::CODE, 0xc058_5609),
            ("QBUF", QBUF, 0xc058_560f),
            ("DQBUF", DQBUF, 0xc058_5611),
            (StreamOn::NAME, StreamOn::CODE, 0x4004_5612),
            (StreamOff::NAME, StreamOff::CODE, 0x4004_5613),
            (GetParm::NAME, GetParm::CODE, 0xc0cc_5615),
            (SetParm::NAME, SetParm::CODE, 0xc0cc_5616),
            (GetControl::NAME, GetControl::CODE, 0xc008_561b),
            (SetControl::NAME, SetControl::CODE, 0xc008_561c),
            (QueryControl::NAME, QueryControl::CODE, 0xc044_5624),
            (EnumFrameSizes::NAME, EnumFrameSizes::CODE, 0xc02c_564a),
            (EnumFrameIntervals::NAME, EnumFrameIntervals::CODE, 0xc034_564b),
        ] {
            assert_eq!(is, should, "{name} {is:#x}");
        }
    }

    #[test]
    fn sizes_and_offsets_are_those_of_the_kernel() {
        for (name, is, should) in [
            ("capability", size_of::<Capability>(), 104),
            ("fmtdesc", size_of::<FormatDescription>(), 64),
            ("frmsizeenum", size_of::<FrameSizes>(), 44),
            ("frmivalenum", size_of::<FrameIntervals>(), 52),
            ("format", size_of::<Format>(), 208),
            ("streamparm", size_of::<StreamParameters>(), 204),
            ("queryctrl", size_of::<ControlQuery>(), 68),
            ("control", size_of::<Control>(), 8),
            ("requestbuffers", size_of::<BufferRequest>(), 20),
            ("buffer", size_of::<Buffer>(), 88),
            ("capability.card", offset_of!(Capability, card), 16),
            ("capability.version", offset_of!(Capability, version), 80),
            ("capability.device_caps", offset_of!(Capability, device_caps), 88),
            ("fmtdesc.description", offset_of!(FormatDescription, description), 12),
            ("fmtdesc.pixelformat", offset_of!(FormatDescription, pixelformat), 44),
            ("frmsizeenum.discrete", offset_of!(FrameSizes, width), 12),
            ("frmivalenum.discrete", offset_of!(FrameIntervals, numerator), 20),
            ("format.fmt", offset_of!(Format, width), 8),
            ("format.fmt.pix.sizeimage", offset_of!(Format, sizeimage), 8 + 20),
            ("format.fmt.pix.quantization", offset_of!(Format, quantization), 8 + 40),
            ("streamparm.parm", offset_of!(StreamParameters, capability), 4),
            ("queryctrl.minimum", offset_of!(ControlQuery, minimum), 40),
            ("queryctrl.flags", offset_of!(ControlQuery, flags), 56),
            ("requestbuffers.capabilities", offset_of!(BufferRequest, capabilities), 12),
            ("buffer.flags", offset_of!(Buffer, flags), 12),
            ("buffer.timestamp", offset_of!(Buffer, seconds), 24),
            ("buffer.timecode", offset_of!(Buffer, timecode), 40),
            ("buffer.sequence", offset_of!(Buffer, sequence), 56),
            ("buffer.memory", offset_of!(Buffer, memory), 60),
            ("buffer.m", offset_of!(Buffer, offset), 64),
            ("buffer.length", offset_of!(Buffer, length), 72),
        ] {
            assert_eq!(is, should, "{name}");
        }
        assert_eq!((align_of::<Buffer>(), align_of::<Capability>()), (8, 4));
        assert_eq!((MJPG, JPEG, YUYV), (0x4750_4a4d, 0x4745_504a, 0x5659_5559));
    }
}
