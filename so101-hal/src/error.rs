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

    /// A register holds a value that has no meaning.
    #[error("register {register} holds {value}, which means nothing known")]
    RegisterMeaning {
        /// LeRobot's name of the register.
        register: &'static str,
        /// The value.
        value: i32,
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

    /// Some servos are energised though the driver has not done it.
    #[error(
        "the torque of servos {ids:?} was switched on by somebody else: end that program, then relax the arm"
    )]
    TorqueFoundOn {
        /// Their ids.
        ids: alloc::vec::Vec<u8>,
    },

    /// A register does not hold what was written to it.
    #[error(
        "register {register} of servo {id} is not {wanted} after {tries} tries, it reads {}; check its cable and power",
        .got.map_or_else(|| "nothing".into(), |v| alloc::format!("{v}"))
    )]
    RegisterNotSet {
        /// The servo.
        id: u8,
        /// LeRobot's name of the register.
        register: &'static str,
        /// What was written.
        wanted: i32,
        /// What was read; `None` = nothing came.
        got: Option<i32>,
        /// How often it was tried.
        tries: u8,
    },

    /// A joint is so far outside of its range that energising it would make it jump.
    #[error(
        "servo {id} ({joint}) is at {position} ticks, calibrated from {min} to {max}: move the joint into its range by \
         hand, or calibrate the arm again"
    )]
    OutsideRange {
        /// The joint.
        joint: crate::joint::JointId,
        /// The servo's id.
        id: u8,
        /// Where it is.
        position: i32,
        /// `range_min`.
        min: i32,
        /// `range_max`.
        max: i32,
    },

    /// The emergency stop is latched.
    #[error("the emergency stop is latched: look at the arm, relax it, release the stop, and start again")]
    EmergencyStopped,

    /// The port has no second handle for the emergency stop's frame.
    #[error(
        "this port cannot be shared, so the emergency stop goes out with the arm's next call; cut the power if that \
         is too late"
    )]
    EmergencyStopDeferred,

    /// A goal is too old to be followed.
    #[error("the goal is {} ms old, goals live {} ms: send goals when they are made", .age.as_millis(), .ttl.as_millis())]
    GoalExpired {
        /// Its age.
        age: core::time::Duration,
        /// How long goals live.
        ttl: core::time::Duration,
    },

    /// A goal's moment is still to come.
    #[error(
        "the goal was issued {} ms from now: take its time from the clock in the arm's options", .ahead.as_millis()
    )]
    GoalFromFuture {
        /// How far.
        ahead: core::time::Duration,
    },

    /// A joint is silent, so that nobody knows where the arm is.
    #[error("{joint} has been silent for {} ms: no goal is sent until it answers", .silent.as_millis())]
    ArmDegraded {
        /// The joint.
        joint: crate::joint::JointId,
        /// For how long.
        silent: core::time::Duration,
    },

    /// A joint was silent for so long that only the operator makes the arm move again.
    #[error(
        "the arm was lost, {joint} being silent for {} ms: it holds; look at it, check cable and power, then resume",
        .silent.as_millis()
    )]
    ArmHeld {
        /// The joint.
        joint: crate::joint::JointId,
        /// Age of what is known of it.
        silent: core::time::Duration,
    },

    /// Another arm is where the lost one was.
    #[error(
        "this is another arm: the {what} of servo {id} ({joint}) was {before} and is {now}; plug the right one in"
    )]
    OtherArm {
        /// The joint.
        joint: crate::joint::JointId,
        /// The servo's id.
        id: u8,
        /// What differs.
        what: &'static str,
        /// What it was.
        before: i32,
        /// What it is.
        now: i32,
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

    /// The user may not open the serial port, and this is the way out.
    #[error("no permission for the serial port; {fix}: {path}")]
    PortDenied {
        /// What to do.
        fix: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// Other programs hold the serial port, and these are they.
    #[error("{holders} holds the serial port; end it: {path}")]
    PortHeld {
        /// Their names and process ids.
        holders: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// USB devices cannot be listed or watched.
    #[cfg(feature = "usb")]
    #[error("cannot {doing} libusb; check that this user may read /dev/bus/usb")]
    Usb {
        /// What was being done.
        doing: &'static str,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// A request that this bus does not have.
    #[error("this bus to the servos does not know {what}: use a bus on a port")]
    NotSupported {
        /// The request.
        what: &'static str,
    },

    /// A line that the emulator does not understand.
    #[error("emulator: {problem}: {line}")]
    EmulatorCommand {
        /// The line.
        line: alloc::string::String,
        /// What is wrong with it.
        problem: alloc::string::String,
    },

    /// A pseudo-terminal that cannot be made.
    #[error("cannot {doing} the emulated port: {path}")]
    Pty {
        /// What was being done.
        doing: &'static str,
        /// Its path.
        path: alloc::string::String,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// A port that cannot be opened again.
    #[error("this port to the servos cannot be opened again: connect anew")]
    NotReopenable,

    /// Another adapter is where the lost one was.
    #[error(
        "the USB adapter with serial number {serial} is not plugged in: plug it in again, last seen at {path}"
    )]
    AdapterGone {
        /// The serial number of the adapter that was open.
        serial: alloc::string::String,
        /// The path it was opened by.
        path: alloc::string::String,
    },

    /// A line of a recorded session that is none.
    #[error("line {line} of the recorded session is not `SECONDS tx|rx|clear|silence|now [HEX]`: {text}")]
    ReplayLine {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: alloc::string::String,
    },

    /// The replay of a session was asked for something else than was recorded.
    #[error("the replay diverges from the recorded session at line {line}: recorded {recorded}, now {now}")]
    ReplayDiverged {
        /// Number of the line, from 1; one behind the last when the recording has ended.
        line: usize,
        /// What was recorded.
        recorded: alloc::string::String,
        /// What was asked for.
        now: alloc::string::String,
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

    /// There is no camera of this name.
    #[error(
        "no such camera; plug it in, and look for it under /dev/v4l/by-id (find_cameras lists them): {path}"
    )]
    CameraNotFound {
        /// Its path.
        path: alloc::string::String,
    },

    /// The user may not open the camera.
    #[error("no permission for the camera; {fix}: {path}")]
    CameraDenied {
        /// What to do.
        fix: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// Another program holds the camera.
    #[error("{holders} holds the camera; end it: {path}")]
    CameraHeld {
        /// Names and process ids, or `another program` where they cannot be seen.
        holders: alloc::string::String,
        /// The camera's path.
        path: alloc::string::String,
    },

    /// The USB bus has no room for the camera's pictures beside those of others.
    #[error(
        "the USB bus has no bandwidth left for this camera; use MJPG, a smaller size, or a port on another hub: {path}"
    )]
    CameraBandwidth {
        /// Its path.
        path: alloc::string::String,
    },

    /// The camera was unplugged.
    #[error("camera {camera} is gone: plug it in and open it again, last seen at {path}")]
    CameraGone {
        /// Name of the camera.
        camera: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// A device that gives no pictures, such as the metadata node of a camera.
    #[error(
        "this device gives no pictures ({what}); a camera has several nodes, take another (find_cameras lists them): {path}"
    )]
    CameraNode {
        /// What it is or lacks.
        what: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// A camera has no such pixel format, or not at this size.
    #[error("camera {camera} does not offer {wanted}; it offers {offered} (find_cameras lists all): {path}")]
    CameraFormat {
        /// Name of the camera.
        camera: alloc::string::String,
        /// Format and size that were asked for.
        wanted: alloc::string::String,
        /// What it has instead.
        offered: alloc::string::String,
        /// Its path.
        path: alloc::string::String,
    },

    /// No picture came.
    #[error(
        "no picture of camera {camera} within {waited_ms} ms: check its plug and cable, and that the USB bus is not \
         shared with another camera"
    )]
    CameraSilent {
        /// Name of the camera.
        camera: alloc::string::String,
        /// How long was waited.
        waited_ms: u64,
    },

    /// The newest picture of a camera is too old to stand for this moment.
    #[error(
        "the newest picture of camera {camera} is {age_ms} ms old, allowed are {max_age_ms} ms: the camera hangs, or \
         the computer is overloaded"
    )]
    CameraStale {
        /// Name of the camera.
        camera: alloc::string::String,
        /// Age of its newest picture.
        age_ms: u64,
        /// What is allowed.
        max_age_ms: u64,
    },

    /// The thread of a camera has ended before, for a reason that was told already.
    #[error("camera {camera} has stopped, open it again: {why}")]
    CameraStopped {
        /// Name of the camera.
        camera: alloc::string::String,
        /// The reason.
        why: alloc::string::String,
    },

    /// A picture came damaged.
    #[error("picture {sequence} of camera {camera} is damaged: {what}")]
    PictureDamaged {
        /// Name of the camera.
        camera: alloc::string::String,
        /// Its sequence number.
        sequence: u64,
        /// What is wrong with it.
        what: alloc::string::String,
    },

    /// The pictures of a file or folder are all shown.
    #[error("camera {camera} has shown all of its {shown} pictures: {path}")]
    PicturesEnded {
        /// Name of the camera.
        camera: alloc::string::String,
        /// How many there were.
        shown: u64,
        /// The file or folder.
        path: alloc::string::String,
    },

    /// A file or folder of pictures cannot be used.
    #[error("cannot use these pictures: {what}: {path}")]
    PictureFile {
        /// What is wrong.
        what: alloc::string::String,
        /// The file or folder.
        path: alloc::string::String,
    },

    /// The camera does not work.
    #[error("cannot {doing} the camera: {path}")]
    CameraIo {
        /// What was being done.
        doing: &'static str,
        /// The camera's path.
        path: alloc::string::String,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// The description of a camera makes no sense.
    #[error("camera configuration: {what}")]
    CameraConfig {
        /// What is wrong, and what to do.
        what: alloc::string::String,
    },

    /// A reference picture for the framing cannot be used.
    #[error("reference picture: {what}: {path}")]
    FramingReference {
        /// What is wrong, and what to do.
        what: alloc::string::String,
        /// The file.
        path: alloc::string::String,
    },

    /// A line of recorded replies of a camera is none.
    #[error(
        "line {line} of the recorded camera is not `CALL [FIELD=VALUE..] -> FIELD=VALUE..|ERRNO`: {text}"
    )]
    CameraReplayLine {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: alloc::string::String,
    },

    /// A control loop was asked for a rate that a bus does not have.
    #[error("a control loop at {bus_hz} Hz: choose {min} to {max} Hz")]
    LoopRate {
        /// What was asked for.
        bus_hz: f64,
        /// The lowest rate.
        min: f64,
        /// The highest rate.
        max: f64,
    },

    /// The thread of a control loop panicked; the arm was relaxed or kept as its options say.
    #[error("the control loop panicked, which is a defect of this program: {what}")]
    LoopPanicked {
        /// The message of the panic.
        what: alloc::string::String,
    },

    /// A control loop has ended before, for a reason that was told already.
    #[error("the control loop has ended: connect to the arm again")]
    LoopEnded,

    /// The thread of a control loop cannot be started.
    #[error("cannot start the thread of the control loop")]
    LoopThread {
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// The log of a loop does not work.
    #[cfg(feature = "std")]
    #[error("cannot {doing} the loop log; check the disk that it is on")]
    LoopLog {
        /// What was being done.
        doing: &'static str,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// A calibration file cannot be read or written.
    #[error("cannot {doing} the calibration: {path}")]
    CalibrationFile {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: alloc::string::String,
        /// Why it did not work.
        #[source]
        source: BoxError,
    },

    /// A calibration file is there already.
    #[error(
        "there is another calibration already, which would be lost: move it away, or ask to overwrite it: {path}"
    )]
    CalibrationExists {
        /// The file.
        path: alloc::string::String,
    },

    /// A calibration file in a format that says nothing to today's software.
    #[error(
        "this calibration is of a LeRobot before May 2025, whose numbers mean something else: calibrate again: {path}"
    )]
    OldCalibrationFile {
        /// The file.
        path: alloc::string::String,
    },

    /// There is no calibration of this arm.
    #[error("no calibration of the {role} {id:?}: calibrate it, or check its name; looked for {tried}")]
    CalibrationNotFound {
        /// The arm's name.
        id: alloc::string::String,
        /// `follower` or `leader`.
        role: &'static str,
        /// All files that would have been taken.
        tried: alloc::string::String,
    },

    /// The name of an arm that cannot be the name of a file.
    #[error("{name:?} is no name for an arm: it becomes the name of a file, without / and \\")]
    ArmName {
        /// The name.
        name: alloc::string::String,
    },

    /// No environment variable says where calibrations are.
    #[error("where calibrations are is not known: set HF_LEROBOT_CALIBRATION, or HOME")]
    NoHome,

    /// A procedure that needs a limp arm found torque.
    #[error("the torque of servos {ids:?} is on: hold the arm, switch the torque off, then start again")]
    Energised {
        /// Their ids.
        ids: alloc::vec::Vec<u8>,
    },

    /// A servo does not keep what was written.
    #[error(
        "servo {id} does not keep {value} in {register}, it holds {held}: check its power, then try again"
    )]
    RegisterNotTaken {
        /// The servo.
        id: u8,
        /// LeRobot's name of the register.
        register: &'static str,
        /// What was written.
        value: i32,
        /// What it holds.
        held: i32,
    },

    /// The sweeps of a calibration cannot be used.
    #[error("the sweep cannot be used: {}", crate::error::list(faults))]
    Sweep {
        /// Every joint whose sweep cannot be used.
        faults: alloc::vec::Vec<crate::calibration::SweepFault>,
    },

    /// A step of the calibration was left out.
    #[error("the calibration lacks {missing}: take it first")]
    CalibrationStep {
        /// What is missing.
        missing: &'static str,
    },

    /// After a homing offset was written, a servo does not show what it should.
    #[error(
        "servo {id} ({joint}) shows {shown} after its homing offset was written, expected {expected}: keep the arm still, \
         then calibrate again"
    )]
    ShownPosition {
        /// The joint.
        joint: crate::joint::JointId,
        /// The servo.
        id: u8,
        /// What was computed, ticks.
        expected: i32,
        /// What it shows, ticks.
        shown: i32,
    },

    /// A teleoperator's pose is too far from the follower's to couple them.
    #[error(
        "the arms are too far apart to couple them: {}; bring the leader into the follower's pose",
        crate::error::list(gaps)
    )]
    PoseGap {
        /// Every joint that is too far away.
        gaps: alloc::vec::Vec<crate::teleop::JointGap>,
    },

    /// A teleoperator was asked for an action before it knew the follower's pose.
    #[error("{name} is not coupled to a follower yet: engage it with the follower's pose first")]
    NotEngaged {
        /// The teleoperator.
        name: alloc::string::String,
    },

    /// Joints of the leader have not answered for too long.
    #[error(
        "servos {ids:?} of the leader have not answered for {age_ms} ms, the limit is {limit_ms} ms: check its power and \
         cables"
    )]
    LeaderStale {
        /// Ids of the servos.
        ids: alloc::vec::Vec<u8>,
        /// Age of the oldest position.
        age_ms: u64,
        /// What is allowed.
        limit_ms: u64,
    },

    /// A small step of the hand would turn a joint a lot.
    #[error(
        "this step of the hand would turn a joint by {turn:.0}: the arm is at a singular place, move a joint first"
    )]
    HandStep {
        /// How far.
        turn: crate::units::Degrees,
    },

    /// A script for the arm that cannot be played.
    #[error("waypoint {index} of the script {what}")]
    Waypoint {
        /// Its place, from 0.
        index: usize,
        /// What is wrong.
        what: &'static str,
    },

    /// A script file cannot be read.
    #[error("cannot read the script: {path}")]
    Script {
        /// The file.
        path: alloc::string::String,
        /// Why it did not work.
        #[source]
        source: BoxError,
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

/// Items of a list in one line.
fn list<T: core::fmt::Display>(items: &[T]) -> alloc::string::String {
    let items: alloc::vec::Vec<_> = items.iter().map(alloc::string::ToString::to_string).collect();
    items.join("; ")
}
