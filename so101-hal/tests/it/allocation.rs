//! The control cycle allocates nothing.
#![allow(unsafe_code, reason = "an allocator that counts is the only way to see allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use so101_hal::bus::{ServoBus as _, SyncReplies};
use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::protocol::SyncRow;
use so101_hal::registers::{GOAL_POSITION, PRESENT_POSITION, TELEMETRY};
use so101_hal::{
    Arm, ArmOptions, Calibration, Clock as _, EmulatedServos, EmulatorOptions, ServoId, Timestamp,
    VirtualClock,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a `Cell` of this thread only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn reading_and_sending_allocate_nothing() {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let options = ArmOptions::new(Arc::new(clock.clone()));
    let mut arm = Arm::connect(servos.bus(), Calibration::model(), options).unwrap().into_armed().unwrap();
    let mut cycle = |i: u64| {
        let joints = arm.read_joints().unwrap();
        arm.send(&joints, clock.now()).unwrap();
        clock.sleep_until(Timestamp::from_start(Duration::from_millis(33 * i)));
    };
    cycle(1);
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter does not count");
    for i in 2..100 {
        cycle(i);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn sync_reads_and_writes_on_a_bad_line_with_their_retries_and_barriers_allocate_nothing() {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let rows = ServoId::ARM.map(|id| SyncRow { id, data: &[0, 8] });
    for fault in [Fault::Drop, Fault::BadChecksum, Fault::Truncate, Fault::Duplicate, Fault::Echo] {
        servos.inject(FaultRule::always(fault).with_probability(0.1));
    }
    servos.inject(FaultRule::always(Fault::Late(Duration::from_millis(25))).with_probability(0.05));
    let mut bus = servos.bus();
    let mut replies = SyncReplies::new();
    let mut cycle = |i: u64| {
        bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        bus.sync_write(GOAL_POSITION.address, &rows).unwrap();
        // A reading that does not come is an error, which takes no allocation either.
        let _ = bus.read_register(ServoId::ARM[2], &PRESENT_POSITION);
        let _ = bus.ping(ServoId::ARM[3]);
        clock.sleep_until(Timestamp::from_start(Duration::from_millis(200 * i)));
        bus.stats()
    };
    // What the emulated line keeps grows at first.
    (1..100).for_each(|i| {
        cycle(i);
    });
    let before = ALLOCATIONS.get();
    let stats = (100..400).map(&mut cycle).last().unwrap();
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert!(stats.retries > 100 && stats.barriers > 100 && stats.echoes > 50, "{stats:?}");
}
