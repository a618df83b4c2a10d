//! A loop on emulated servos in simulated time: healthy at first, then replies get lost.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::bus::{ServoBus as _, SyncReplies};
use so101_hal::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use so101_hal::host::{LoopLog, LoopLogOptions, Stage, WhenFull};
use so101_hal::protocol::SyncRow;
use so101_hal::{Clock as _, ServoId, Timestamp, VirtualClock, registers};

use crate::error::Result;

/// A third of the period of 30 Hz, as a control loop on the bus has.
const PERIOD: Duration = Duration::from_millis(10);

const HEALTHY_CYCLES: u32 = 2000;
const LOSSY_CYCLES: u32 = 800;

/// The log of 28 seconds; the bus is lossy in the last eight.
pub(super) fn log() -> Result<Vec<u8>> {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let mut bus = servos.bus();
    let mut replies = SyncReplies::new();
    let mut options = LoopLogOptions::default();
    options.period = PERIOD;
    // Simulated seconds have no host, and pass faster than lines are written.
    options.probe = None;
    options.when_full = WhenFull::Wait;
    let mut log = LoopLog::start(Vec::new(), options)?;
    for cycle in 0..HEALTHY_CYCLES + LOSSY_CYCLES {
        if cycle == HEALTHY_CYCLES {
            servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[3]).with_probability(0.3));
        }
        let start = clock.now();
        bus.sync_read(registers::TELEMETRY, &ServoId::ARM, &mut replies)?;
        let observed = clock.now();
        log.stage(Stage::ObserveBus, observed.since(start));
        let goals = ServoId::ARM.map(|id| (id, 2048_u16.to_le_bytes()));
        let rows: Vec<SyncRow<'_>> = goals.iter().map(|(id, goal)| SyncRow { id: *id, data: goal }).collect();
        bus.sync_write(registers::GOAL_POSITION.address, &rows)?;
        log.stage(Stage::Act, clock.now().since(observed));
        log.bus(bus.stats());
        let work = clock.now().since(start);
        log.end_cycle(clock.now(), work);
        clock.sleep_until(Timestamp::from_start(start.since_start() + PERIOD.max(work)));
    }
    Ok(log.finish()?)
}
