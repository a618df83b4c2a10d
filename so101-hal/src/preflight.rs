//! What is checked before the first frame: each item with its value, its limit and a judgement.
//!
//! Everything here only looks. The one exception is asked for by name: [`HoldTest::Energise`] switches the torque on
//! for 0.3 s to see the supply under load, where all servos are in position mode.
//!
//! A group of checks is made by one function ([`servos`], [`pose`], [`bus_soak`], [`cameras()`], [`host()`], [`port()`]); each
//! measures, then judges values by plain functions, which are public too. What does not pass says what to do about it.
//! [`Report`] prints the table and serialises; [`Report::stored`] is what goes into a dataset (same rig and seed, same
//! bytes), figures of the host go to the host's log.
//!
//! | id | looks at | pass | warn | fail |
//! |---|---|---|---|---|
//! | `port_exists` | the device of the port | it is there | | it is not |
//! | `port_permission` | who may open it | the user | | not the user: the udev rule and the group are named |
//! | `port_free` | other processes | none has it open | cannot be told | one has, its name is told |
//! | `port_adapter` | USB ids, serial number | known adapter, expected number | unknown adapter, no number | another number |
//! | `servos_answer` | pings of the six ids | all answer | | any silent: "the chain is dead after id k" |
//! | `servo_model` | register 3 | 777 | | another |
//! | `duplicate_ids` | 10 pings and 10 reads of each id | all whole | one damaged | two or more damaged, or two replies |
//! | `stray_ids` | pings of other ids | none answers | one answers | |
//! | `firmware_equal` | registers 0, 1 | equal | differ | |
//! | `baud_rate` | register 6 | 0 | a servo is silent at 1 Mbaud | else |
//! | `response_level` | register 8 | 1 | | 0: writes are not answered |
//! | `return_delay` | register 7 | that of the profile | longer | |
//! | `phase_bit_4` | register 18 | clear | bit 3 clear (speed 0 stands still) | set: positions beyond one turn |
//! | `operating_mode` | register 33 | 0 | | else |
//! | `voltage_idle` | register 62 | within registers 14, 15 | near them, or servos 0.5 V apart | outside |
//! | `voltage_variant` | registers 14, 15, 62 | one variant, on its supply | registers say nothing and the supply is not that expected | mixed, or on the other's supply |
//! | `voltage_hold` | register 62 for 0.3 s of holding | sag < 0.7 V | | >= 0.7 V, or below register 15 |
//! | `temperature` | register 63 | < 50 C | >= 50 C | >= 60 C |
//! | `alarms` | error byte, register 65 | 0 | | any bit |
//! | `calibration_equal` | registers 31, 9, 11 | the file's | limits differ | offsets differ |
//! | `calibration_newest` | files of this arm | none is newer | one is | |
//! | `gripper_limits` | registers 48, 28, 36 | the profile's or lower | 28 or 36 higher | 48 higher |
//! | `pid_profile` | registers 21, 23, 22 | the profile's | | others: the arm moves differently from before |
//! | `torque_state` | register 40 | all as expected | mixed | not as expected |
//! | `joint_range` | register 56 | inside range_min to range_max | less than 2 deg outside | more |
//! | `joint_wrap` | register 56 | more than 2 deg from 0 and 4096 | | nearer |
//! | `start_pose` | joints | within tolerance of the reference | | outside |
//! | `leader_pose` | joints of both arms | closer than the limit | | further |
//! | `bus_errors` | 200 telemetry reads | nothing lost or asked again | up to 1 % | more |
//! | `bus_p99` | their duration | < 10 ms | < 20 ms | more |
//! | `bus_gap` | time between two whole ones | < 33 ms | < 100 ms | more |
//! | `camera_path` | device path | under `/dev/v4l/by-id` or `by-path`, or no device | one that changes | |
//! | `camera_format` | pixel format | as configured | | another |
//! | `camera_size` | size | as configured | | another |
//! | `camera_rate` | 60 pictures | within 1 % | within 5 % | else, or no picture |
//! | `camera_jitter` | time between pictures, p99 off the period | < 1/4 period | < 1/2 period | more |
//! | `camera_drops` | sequence numbers | none missing | up to 5 % | more |
//! | `camera_controls` | exposure, gain, white balance, focus | locked at the stored values | not locked | did not take |
//! | `camera_luma` | mean of 0..255 | 40 to 215 | 15 to 240 | else |
//! | `camera_clipped` | share of 0 or 255 | < 5 % | < 20 % | more |
//! | `camera_focus` | variance of the Laplacian | >= 70 % of the reference | >= 40 % | less |
//! | `camera_framing` | shift against the reference | < 3 px | < 8 px | more, or another scene (NCC < 0.5) |
//! | `lux` | reading of the light meter | 25 to 420 lx | other | no number |
//! | `encoder_round_trip` | one second of video | every frame back at 38 dB | | else |
//! | `encoder_build` | build | with assembly | without | |
//! | `free_disk` | file system | session twice over | one episode | less |
//! | `write_speed` | a file written and synced | 4 x the session's rate | the rate | less |
//! | `dataset_features` | columns of the set that goes on | the session's | | others |
//! | `clock_synced` | kernel's clock state | synchronised | not | |
//! | `clock_monotonic` | readings of the clock | never back | out of step with the wall clock | back |
//! | `host_throttling` | firmware's flags | none | earlier | undervoltage or throttling now |
//! | `host_temperature` | thermal zone | < 75 C | < 83 C | more |
//!
//! ```
//! use std::sync::Arc;
//! use so101_hal::preflight::{self, Item, Report, ServoOptions, Verdict};
//! use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, JointId, VirtualClock, registers};
//! # fn main() -> so101_hal::Result<()> {
//! let clock = VirtualClock::new();
//! let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
//! servos.store_calibration(&Calibration::model())?;
//! servos.set_register(JointId::ElbowFlex, &registers::PRESENT_TEMPERATURE, 64)?;
//!
//! let found = preflight::servos(&mut servos.bus(), &Calibration::model(), &ServoOptions::default(), &clock)?;
//! let report = Report::from_iter(found.checks);
//! let heat = report.of(Item::Temperature).next().map(|c| (c.verdict, c.value.as_str()));
//! assert_eq!(heat, Some((Verdict::Fail, "servo 3 (elbow_flex): 64 C")));
//! # Ok(()) }
//! ```

pub mod arm;
pub mod bus;
pub mod cameras;
pub mod chain;
pub mod host;
mod item;
mod limits;
mod memory;
#[cfg(feature = "std")]
pub mod port;
pub mod power;
mod report;
mod servos;

pub use arm::{PoseOptions, leader_pose, pose};
pub use bus::{SoakOptions, bus_soak};
pub use cameras::cameras;
pub use host::host;
pub use item::{Group, Item, Origin};
pub use limits::Limits;
pub use memory::{ServoMemory, Survey, Surveyed};
#[cfg(feature = "std")]
pub use port::port;
pub use power::HoldTest;
pub use report::{Check, Report, StoredReport, Verdict};
pub use servos::{
    Expected, PHASE_ZERO_IS_FASTEST, ServoOptions, ServosFound, StrayScan, identity, servos, settings,
};

#[cfg(all(test, feature = "camera"))]
mod tests;
