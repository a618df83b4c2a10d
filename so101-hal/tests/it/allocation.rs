//! The control cycle allocates nothing.
#![allow(unsafe_code, reason = "an allocator that counts is the only way to see allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use so101_hal::{
    Calibration, Clock as _, EmulatedServos, EmulatorOptions, FollowerArm, Timestamp, VirtualClock,
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
    let mut arm = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap();
    let mut cycle = |i: u64| {
        let joints = arm.read_joints().unwrap();
        arm.send(&joints).unwrap();
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
