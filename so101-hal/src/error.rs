//! What can go wrong in this crate.

use alloc::boxed::Box;

use crate::frame::FrameSize;
use crate::kinematics::Unreachable;

/// An error of somebody else's type.
pub type BoxError = Box<dyn core::error::Error + Send + Sync>;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong in this crate: what, where, and the offending values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that has to be finite is not.
    #[error("{what} is {value}, which is not a finite number")]
    NonFinite {
        /// What it was meant to be.
        what: &'static str,
        /// The value.
        value: f64,
    },

    /// A calibrated range is empty or the wrong way round.
    #[error("servo {id} is calibrated from {min} to {max} ticks, an empty range: calibrate the arm again")]
    CalibrationRange {
        /// Id of the servo.
        id: u8,
        /// `range_min`.
        min: i32,
        /// `range_max`.
        max: i32,
    },

    /// A calibration's drive mode is neither 0 nor 1.
    #[error("servo {id} is calibrated with drive_mode {drive_mode}, expected 0 or 1")]
    DriveMode {
        /// Id of the servo.
        id: u8,
        /// The unknown mode.
        drive_mode: u8,
    },

    /// A position is beyond what a whole number of encoder steps can hold.
    #[error("the goal of servo {id} is {steps} ticks, which no servo can hold")]
    TicksOverflow {
        /// Id of the servo.
        id: u8,
        /// The position in encoder steps.
        steps: f64,
    },

    /// A number does not fit its sign-magnitude register.
    #[error("{value} does not fit a register whose magnitude ends at {max}")]
    Magnitude {
        /// The number.
        value: i32,
        /// The largest magnitude.
        max: u16,
    },

    /// A number that must not be negative is.
    #[error("{what} is {value}, expected zero or more")]
    Negative {
        /// What it was meant to be.
        what: &'static str,
        /// The value.
        value: f64,
    },

    /// No joint angles within the limits reach a target.
    #[error("no joint angles reach {position_m:.4?} m: {why}")]
    Unreachable {
        /// The target's position in the base frame, x, y, z.
        position_m: [f64; 3],
        /// What the closest branch lacks.
        why: Unreachable,
    },

    /// A matrix that has to be a rotation is not.
    #[error(
        "a target rotation is {deviation:.1e} away from an orthonormal right-handed matrix: normalise it"
    )]
    NotARotation {
        /// The largest deviation of an entry.
        deviation: f64,
    },

    /// A number is not the id of one servo.
    #[error("{id} is not the id of a servo, expected 0 to 253")]
    ServoId {
        /// The number.
        id: u8,
    },

    /// A packet does not fit its buffer or the protocol.
    #[error("a servo packet of {needed} bytes does not fit into {room}: send less at once")]
    PacketLength {
        /// Bytes of the packet.
        needed: usize,
        /// Bytes that there is room for.
        room: usize,
    },

    /// The rows of a sync write differ in length.
    #[error("the sync write's row for servo {id} has {got} bytes, the first row has {expected}")]
    SyncRows {
        /// Servo of the odd row.
        id: u8,
        /// Bytes of the first row.
        expected: usize,
        /// Bytes of the odd row.
        got: usize,
    },

    /// The servos of a sync read are none, too many, or not all different.
    #[error("a sync read asks 1 to {max} different servos, not {ids:?}")]
    SyncIds {
        /// The ids given.
        ids: alloc::vec::Vec<u8>,
        /// The most that one read takes.
        max: usize,
    },

    /// A read of no or too many bytes.
    #[error("a read takes 1 to {max} bytes of a servo, not {len}")]
    BlockLength {
        /// Bytes asked for.
        len: usize,
        /// The most.
        max: usize,
    },

    /// A value does not fit its register.
    #[error("{value} does not fit register {register}, which holds {min} to {max}")]
    RegisterValue {
        /// LeRobot's name of the register.
        register: &'static str,
        /// The value.
        value: i32,
        /// The smallest that fits.
        min: i32,
        /// The largest that fits.
        max: i32,
    },

    /// Fewer bytes than a register has.
    #[error("register {register} has {needed} bytes, got {got}")]
    RegisterBytes {
        /// LeRobot's name of the register.
        register: &'static str,
        /// Bytes of the register.
        needed: usize,
        /// Bytes given.
        got: usize,
    },

    /// A servo gave no usable reply.
    #[error("no usable reply of servo {id} to a {what}: {fault}; check its cable, power and id")]
    NoReply {
        /// The request.
        what: &'static str,
        /// The servo.
        id: u8,
        /// What is wrong with the reply.
        fault: crate::bus::ReplyFault,
    },

    /// Some servos of the arm do not answer at all.
    #[error("servos {ids:?} do not answer a ping; check power and the cable in front of the first of them")]
    ServosSilent {
        /// Their ids.
        ids: alloc::vec::Vec<u8>,
    },

    /// A servo of another model.
    #[error("servo {id} ({joint}) has model number {model}, expected {expected} (STS3215)")]
    ServoModel {
        /// The joint that it should drive.
        joint: crate::joint::JointId,
        /// Its id.
        id: u8,
        /// What it says.
        model: u16,
        /// What every STS3215 says.
        expected: u16,
    },

    /// A servo's homing offset is not the calibration's, so that its positions mean something else.
    #[error(
        "servo {id} ({joint}) has homing offset {servo}, the calibration has {calibration}: load the calibration of \
         this arm, or write it to the servos"
    )]
    HomingOffset {
        /// The joint.
        joint: crate::joint::JointId,
        /// The servo's id.
        id: u8,
        /// What the servo has.
        servo: i32,
        /// What the calibration has.
        calibration: i32,
    },

    /// Torque did not switch as it should.
    #[error(
        "the torque of servos {ids:?} is not {wanted} after {tries} tries; cut the power if they must be limp"
    )]
    Torque {
        /// Their ids.
        ids: alloc::vec::Vec<u8>,
        /// `on` or `off`.
        wanted: &'static str,
        /// How often it was tried.
        tries: u8,
    },

    /// There is no serial port of this name.
    #[error("no such serial port; plug the adapter in, and look for it under /dev/serial/by-id: {path}")]
    PortNotFound {
        /// Its path.
        path: alloc::string::String,
    },

    /// The user may not open the serial port.
    #[error(
        "no permission for the serial port; add the user to the group dialout (sudo usermod -aG dialout $USER, then \
         log in again) or install a udev rule with MODE=\"0666\": {path}"
    )]
    PortPermission {
        /// Its path.
        path: alloc::string::String,
    },

    /// Another program holds the serial port.
    #[error("another program holds the serial port; close it: {path}")]
    PortBusy {
        /// Its path.
        path: alloc::string::String,
    },

    /// The serial port does not work.
    #[error("cannot {doing} the serial port; check that the adapter is still plugged in: {path}")]
    PortIo {
        /// What was being done.
        doing: &'static str,
        /// The port's path.
        path: alloc::string::String,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// A picture's bytes do not fit its size.
    #[error("a {size} RGB picture has {expected} bytes, got {got}")]
    FrameLength {
        /// The declared size.
        size: FrameSize,
        /// Bytes that this size needs.
        expected: usize,
        /// Bytes given.
        got: usize,
    },

    /// A camera delivered another size than it declared.
    #[error(
        "camera {camera} delivered {got}, expected {expected}: set its resolution or the rig's description"
    )]
    CameraSize {
        /// Name of the camera.
        camera: alloc::string::String,
        /// Declared size.
        expected: FrameSize,
        /// Delivered size.
        got: FrameSize,
    },

    /// An error of a robot or camera that lives outside of this crate.
    #[error("{what}")]
    External {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: BoxError,
    },
}
