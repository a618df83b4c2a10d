//! An arm on emulated servos, and a bus that watches what is written and can show a position that is not there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use so101_hal::arm::{ArmOptions, MotionLimits};
use so101_hal::bus::{ServoBus, SyncReplies};
use so101_hal::port::EmergencyWriter;
use so101_hal::protocol::{Alarms, Block, ServoId, SyncRow};
use so101_hal::registers::{self, Register};
use so101_hal::{
    Arm, Armed, Calibration, Clock as _, EmulatedBus, EmulatedServos, EmulatorOptions, JOINTS, JointId,
    Relaxed, Result, VirtualClock,
};

pub(crate) struct Rig {
    pub(crate) clock: VirtualClock,
    pub(crate) servos: EmulatedServos,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = VirtualClock::new();
        let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
        servos.store_calibration(&Calibration::model()).unwrap();
        Self { clock, servos }
    }

    /// The defaults of the crate, limits included.
    pub(crate) fn options(&self) -> ArmOptions {
        ArmOptions::new(Arc::new(self.clock.clone()))
    }

    pub(crate) fn unlimited(&self) -> ArmOptions {
        self.options().with_limits(MotionLimits::unlimited())
    }

    pub(crate) fn relaxed(&self) -> Arm<Spy, Relaxed> {
        let found = Arm::connect(self.spy(), Calibration::model(), self.options()).unwrap();
        found.into_relaxed().unwrap()
    }

    pub(crate) fn armed(&self, options: ArmOptions) -> Arm<Spy, Armed> {
        Arm::connect(self.spy(), Calibration::model(), options).unwrap().into_armed().unwrap()
    }

    pub(crate) fn spy(&self) -> Spy {
        Spy { bus: self.servos.bus(), servos: self.servos.clone(), seen: Arc::default(), has_writer: true }
    }

    pub(crate) fn register(&self, register: &Register) -> [i32; 6] {
        JOINTS.map(|j| self.servos.register(j, register).unwrap())
    }

    pub(crate) fn torques(&self) -> [i32; 6] {
        self.register(&registers::TORQUE_ENABLE)
    }

    pub(crate) fn pass_ms(&self, ms: u64) {
        self.clock.sleep_until(self.clock.now() + Duration::from_millis(ms));
    }
}

/// What the spy has seen, and what it is to do.
#[derive(Default)]
pub(crate) struct Seen {
    /// Servo (254 = all), first register and bytes of every write, one entry a row.
    pub(crate) writes: Vec<(u8, u8, Vec<u8>)>,
    /// The next telemetry reads show these joints elsewhere, each once.
    pub(crate) ghosts: Vec<(JointId, f64)>,
    /// Called once, right after the next write of goals.
    pub(crate) after_goals: Option<Box<dyn FnOnce() + Send>>,
}

pub(crate) struct Spy {
    bus: EmulatedBus,
    servos: EmulatedServos,
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) has_writer: bool,
}

impl Spy {
    fn note(&self, id: u8, address: u8, data: &[u8]) {
        self.seen.lock().unwrap().writes.push((id, address, data.to_vec()));
    }
}

impl ServoBus for Spy {
    fn ping(&mut self, id: ServoId) -> Result<Alarms> {
        self.bus.ping(id)
    }
    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
        self.bus.read(id, address, out)
    }
    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.note(id.get(), address, data);
        self.bus.write(id, address, data)
    }
    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.note(id.get(), address, data);
        self.bus.reg_write(id, address, data)
    }
    fn action(&mut self) -> Result<()> {
        self.bus.action()
    }
    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
        let ghost = match block == registers::TELEMETRY {
            true => self.seen.lock().unwrap().ghosts.pop(),
            false => None,
        };
        let Some((joint, ticks)) = ghost else { return self.bus.sync_read(block, ids, replies) };
        let truth = self.servos.true_ticks()[joint.index()];
        self.servos.set_ticks(joint, ticks);
        let outcome = self.bus.sync_read(block, ids, replies);
        self.servos.set_ticks(joint, truth);
        outcome
    }
    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
        rows.iter().for_each(|row| self.note(row.id.get(), address, row.data));
        let outcome = self.bus.sync_write(address, rows);
        if address == registers::GOAL_POSITION.address {
            let then = self.seen.lock().unwrap().after_goals.take();
            then.into_iter().for_each(|f| f());
        }
        outcome
    }
    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
        self.note(254, address, data);
        self.bus.broadcast_write(address, data)
    }
    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        if self.has_writer { self.bus.emergency_writer() } else { None }
    }
    fn reopen(&mut self) -> Result<()> {
        self.bus.reopen()
    }
}
