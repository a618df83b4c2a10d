//! The items that are looked at, each with a stable id.

use serde::{Serialize, Serializer};

/// Whether a value is a fact of the rig or of the machine that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Same rig and seed, same value: stored with the dataset.
    Rig,
    /// Differs from machine to machine and day to day: stored with the host's log only.
    Host,
}

/// What a group of items looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The serial port and its adapter.
    Port,
    /// The servos' registers.
    Servos,
    /// Where the joints are.
    Pose,
    /// The traffic on the bus.
    Bus,
    /// The cameras and their light.
    Cameras,
    /// Encoder, disk and dataset: looked at by the recording program.
    Recorder,
    /// The computer.
    Host,
}

macro_rules! items {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $group:ident, $origin:ident, $title:literal, $limit:literal;)*) => {
        /// One item of the pre-flight; see the table of [the module](super).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Item {
            $($(#[$doc])* $name,)*
        }

        impl Item {
            /// Every item, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its id, which does not change between versions.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id),* }
            }

            /// What it looks at.
            #[must_use]
            pub const fn group(self) -> Group {
                match self { $(Self::$name => Group::$group),* }
            }

            /// Whether its value may be stored with a dataset.
            #[must_use]
            pub const fn origin(self) -> Origin {
                match self { $(Self::$name => Origin::$origin),* }
            }

            /// Its name for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }

            /// What is asked for, unless a check says it more exactly.
            #[must_use]
            pub const fn limit(self) -> &'static str {
                match self { $(Self::$name => $limit),* }
            }
        }
    };
}

items! {
    /// The port is there.
    PortExists = "port_exists", Port, Host, "port", "there";
    /// The user may open it.
    PortPermission = "port_permission", Port, Host, "permission for the port", "readable and writable";
    /// No other process has it open.
    PortFree = "port_free", Port, Host, "port is free", "held by no other process";
    /// USB ids of a known adapter, and its serial number where one is expected.
    PortAdapter = "port_adapter", Port, Host, "USB adapter", "a known servo adapter, the expected serial number";

    /// All six ids answer.
    ServosAnswer = "servos_answer", Servos, Rig, "six servos answer", "ids as calibrated";
    /// Every model number is the STS3215's.
    ServoModel = "servo_model", Servos, Rig, "model", "777 (STS3215)";
    /// No two servos share an id.
    DuplicateIds = "duplicate_ids", Servos, Rig, "one servo an id", "every single reply whole";
    /// No other servo is on the bus.
    StrayIds = "stray_ids", Servos, Rig, "other ids on the bus", "none";
    /// All servos have the same firmware.
    FirmwareEqual = "firmware_equal", Servos, Rig, "firmware", "equal in all servos";
    /// All servos talk at 1 Mbaud.
    BaudRate = "baud_rate", Servos, Rig, "baud rate", "code 0 (1 Mbaud)";
    /// All servos answer writes.
    ResponseLevel = "response_level", Servos, Rig, "response level", "1";
    /// The servos answer at once.
    ReturnDelay = "return_delay", Servos, Rig, "return delay", "0 (factory: 250 = 500 us)";
    /// Positions stay within one turn.
    PhaseBit4 = "phase_bit_4", Servos, Rig, "phase bit 4", "clear";
    /// All servos are in position mode.
    OperatingMode = "operating_mode", Servos, Rig, "operating mode", "0 (position)";
    /// The supply at rest.
    VoltageIdle = "voltage_idle", Servos, Rig, "supply voltage at rest", "within the servo's limits";
    /// The servos fit the supply.
    VoltageVariant = "voltage_variant", Servos, Rig, "7.4 V or 12 V servos", "one variant, that of the supply";
    /// The supply while the arm holds itself.
    VoltageHold = "voltage_hold", Servos, Rig, "voltage sag under hold", "below 0.7 V";
    /// The servos are cool.
    Temperature = "temperature", Servos, Rig, "servo temperature", "below 50 C, 60 C fails";
    /// No servo raises an alarm.
    Alarms = "alarms", Servos, Rig, "alarms", "none";
    /// The EEPROM holds the calibration of the file.
    CalibrationEqual = "calibration_equal", Servos, Rig, "calibration in the servos", "equal to the file";
    /// No newer calibration file of this arm exists.
    CalibrationNewest = "calibration_newest", Servos, Host, "calibration file", "the newest of this arm";
    /// The gripper's limits protect it.
    GripperLimits = "gripper_limits", Servos, Rig, "gripper limits", "torque 500, current 250, overload 25 at most";
    /// The position loop is the one of the episodes before.
    PidProfile = "pid_profile", Servos, Rig, "P, I, D", "those of the profile";
    /// Torque is as expected, and the same in all servos.
    TorqueState = "torque_state", Servos, Rig, "torque", "the same in all servos";

    /// Every joint is inside its calibrated range.
    JointRange = "joint_range", Pose, Rig, "joints in their ranges", "inside, 2 deg beyond at most";
    /// No joint is near the wrap of its encoder.
    JointWrap = "joint_wrap", Pose, Rig, "distance from the encoder's wrap", "more than 2 deg";
    /// The arm starts where it started before.
    StartPose = "start_pose", Pose, Rig, "start pose", "within tolerance of the reference";
    /// The leader stands where the follower does.
    LeaderPose = "leader_pose", Pose, Rig, "leader against follower", "within the coupling limit";

    /// Share of telemetry that was lost or read twice.
    BusErrors = "bus_errors", Bus, Rig, "bus errors", "none, 1 % fails";
    /// Time of a telemetry read.
    BusP99 = "bus_p99", Bus, Rig, "bus read, p99", "below 10 ms, 20 ms fails";
    /// The longest time without a whole telemetry read.
    BusGap = "bus_gap", Bus, Rig, "longest gap on the bus", "below 33 ms, 100 ms fails";

    /// The camera is named by a path that stays.
    CameraPath = "camera_path", Cameras, Host, "camera path", "a path by id";
    /// The pixel format.
    CameraFormat = "camera_format", Cameras, Rig, "pixel format", "as configured";
    /// The picture's size.
    CameraSize = "camera_size", Cameras, Rig, "picture size", "as configured";
    /// Measured rate over 60 pictures.
    CameraRate = "camera_rate", Cameras, Rig, "frame rate", "as configured, 1 % off at most";
    /// Spread of the time between two pictures.
    CameraJitter = "camera_jitter", Cameras, Rig, "frame jitter", "below a quarter period, half a period fails";
    /// Missing sequence numbers.
    CameraDrops = "camera_drops", Cameras, Rig, "frames lost", "none, 5 % fails";
    /// Exposure, gain, white balance and focus are locked to the stored values.
    CameraControls = "camera_controls", Cameras, Rig, "camera controls", "locked at the stored values";
    /// Mean brightness.
    CameraLuma = "camera_luma", Cameras, Rig, "mean luma", "40 to 215, outside 15 to 240 fails";
    /// Share of pixels at either end.
    CameraClipped = "camera_clipped", Cameras, Rig, "clipped pixels", "below 5 %, 20 % fails";
    /// Variance of the Laplacian.
    CameraFocus = "camera_focus", Cameras, Rig, "focus", "70 % of the reference, 40 % fails";
    /// The picture lies where the reference does.
    CameraFraming = "camera_framing", Cameras, Rig, "framing", "within 3 px of the reference, 8 px fails";
    /// Illuminance at the table.
    Lux = "lux", Cameras, Rig, "illuminance", "25 to 420 lx";

    /// A second of video survives the encoder.
    EncoderRoundTrip = "encoder_round_trip", Recorder, Rig, "encoder", "every frame back at 38.0 dB";
    /// The encoder has its assembly.
    EncoderBuild = "encoder_build", Recorder, Host, "encoder build", "with assembly";
    /// Room for the session twice over.
    FreeDisk = "free_disk", Recorder, Host, "free disk", "the session twice over, one episode at least";
    /// The disk takes what the cameras give.
    WriteSpeed = "write_speed", Recorder, Host, "write speed", "four times the session's rate, the rate fails";
    /// The dataset's columns are the session's.
    DatasetFeatures = "dataset_features", Recorder, Rig, "dataset features", "equal to the session's";

    /// The clock follows a time server.
    ClockSynced = "clock_synced", Host, Host, "clock is synchronised", "yes";
    /// The monotonic clock does not go back.
    ClockMonotonic = "clock_monotonic", Host, Host, "clock is monotonic", "never back, in step with the wall clock";
    /// No undervoltage, no throttling.
    HostThrottling = "host_throttling", Host, Host, "throttling and undervoltage", "none, now or since the start";
    /// The computer is cool.
    HostTemperature = "host_temperature", Host, Host, "temperature of the computer", "below 75 C, 83 C fails";
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::format;

    #[test]
    fn every_item_has_an_id_of_its_own_and_stands_in_the_modules_table() {
        let docs = include_str!("../preflight.rs");
        let ids: BTreeSet<_> = Item::ALL.iter().map(|i| i.id()).collect();
        assert_eq!(ids.len(), Item::ALL.len());
        for item in Item::ALL {
            assert!(docs.contains(&format!("//! | `{}` |", item.id())), "{} is not in the table", item.id());
        }
    }
}
