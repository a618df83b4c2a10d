//! Kinematics in closed form, beside the plain chain of joint transforms that a URDF reader would run.
//!
//! Each function gets the same 1000 random in-limit joint vectors in turn; a figure is the time of one call.
#![allow(missing_docs, clippy::unwrap_used, reason = "bench")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use so101::hal::Radians;
use so101::hal::kinematics::{Kinematics, LIMITS, Pose, Tcp};

/// Linear congruential steps: seeded, and enough to spread the poses.
fn joint_vectors() -> Vec<[Radians; 5]> {
    let mut state = 1_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..1000).map(|_| LIMITS.map(|l| Radians(l.lower.0 + (l.upper.0 - l.lower.0) * unit()))).collect()
}

fn kinematics(criterion: &mut Criterion) {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let q = joint_vectors();
    let poses: Vec<Pose> = q.iter().map(|q| arm.fk(q)).collect();
    let targets: Vec<_> =
        q.iter().zip(&poses).map(|(q, p)| (p.position_m, Kinematics::pitch(q), q[4])).collect();
    let mut group = criterion.benchmark_group("kinematics");
    let mut next = (0..q.len()).cycle();
    let mut i = move || next.next().unwrap();
    group.bench_function("baseline: chain of joint transforms", |b| {
        b.iter(|| {
            let links = Kinematics::links(black_box(&q[i()]), Radians(0.0));
            links.gripper.compose(&arm.tcp().gripper_from_tcp())
        });
    });
    group.bench_function("fk", |b| b.iter(|| arm.fk(black_box(&q[i()]))));
    group.bench_function("jacobian", |b| b.iter(|| arm.jacobian(black_box(&q[i()]))));
    group.bench_function("ik from position, pitch and roll", |b| {
        b.iter(|| {
            let (position_m, pitch, roll) = black_box(targets[i()]);
            arm.ik(position_m, pitch, roll)
        });
    });
    group.bench_function("ik from a full pose", |b| b.iter(|| arm.ik_pose(black_box(&poses[i()]))));
    group.finish();
}

criterion_group!(benches, kinematics);
criterion_main!(benches);
