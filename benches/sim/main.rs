//! What simulation costs: CPU time of physics and of pictures, worker threads of the software renderer included.
//! Exits 1 when a limit is missed.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::exit, reason = "a bench, not a library")]

use std::sync::Arc;
use std::time::Duration;

use so101_hal::{Action, Clock as _, Degrees, JointVector, Robot as _, Timestamp, VirtualClock};
use so101_sim::{Placement, Scene, SimRobot, Start};

const FPS: u32 = 30;
const FRAMES: u32 = 90;

fn main() {
    let both = Scene::push_table();
    let mut main = both.clone();
    main.cameras.truncate(1);
    let physics = period(&both.clone().without_cameras());
    let mut missed = false;
    let mut row = |what: &str, cost: Duration, limit_ms: f64| {
        let value_ms = cost.as_secs_f64() * 1e3;
        let ok = value_ms <= limit_ms;
        missed |= !ok;
        println!(
            "{} {what}: {value_ms:.2} ms CPU (limit <= {limit_ms:.2})",
            if ok { "ok  " } else { "MISS" }
        );
    };
    row("physics of one control period at 30 Hz", physics, 2.0);
    row("a 640x480 picture", period(&main).saturating_sub(physics), 25.0);
    row("a 640x480 and a 320x240 picture", period(&both).saturating_sub(physics), 45.0);
    if missed {
        std::process::exit(1);
    }
}

/// CPU time of one control period with a moving arm over the object, mean.
fn period(scene: &Scene) -> Duration {
    let clock = VirtualClock::new();
    let mut robot = SimRobot::new(scene, FPS, Arc::new(clock.clone())).unwrap();
    let object = Some(Placement { x_m: 0.25, ..Placement::default() });
    robot.reset(&Start { joints: joints(0), object }, None).unwrap();
    robot.observe().unwrap();
    let began = process_cpu();
    for k in 1..=FRAMES {
        robot.act(&Action { joints: joints(k) }).unwrap();
        clock.sleep_until(Timestamp::from_start(Duration::from_secs(1) * k / FPS));
        robot.observe().unwrap();
    }
    (process_cpu() - began) / FRAMES
}

fn joints(k: u32) -> JointVector<Degrees> {
    let swing = (0.05 * f64::from(k)).sin();
    JointVector::<Degrees>::from_row([25.0 * swing, -40.0, 55.0, 50.0 + 10.0 * swing, 30.0 * swing, 30.0])
}

fn process_cpu() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), t.tv_nsec.unsigned_abs() as u32)
}
