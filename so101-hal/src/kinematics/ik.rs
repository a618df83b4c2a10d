//! Closed-form inverse kinematics.
//!
//! The three parallel axes (lift, elbow, wrist) move the hand in a vertical plane through the pan axis, the roll axis
//! lies in that plane (0.18 mm beside it), and the TCP is off the roll axis by a distance that roll alone decides. So:
//!
//! * **Position, pitch and roll**: roll gives the TCP's distance from the plane, and with it the two azimuths of the
//!   plane; pitch then gives the wrist, and two links to the wrist give the elbow up or down. Four branches.
//! * **Full pose**: the wrist follows from the pose alone. The azimuth follows from the wrist *or* from the approach,
//!   whichever determines it better; pitch and roll follow from the orientation in that plane. Two branches, elbow up
//!   and down, and four when the approach is vertical.
//!
//! # Where digits are lost, and what is done about it
//!
//! * Azimuth. An earlier version of this solver took it from the TCP's position, as
//!   `atan2(y, x) - asin(lateral / distance)`, and compared it with that of the approach. Where the TCP is right
//!   beside the pan axis, `distance = |lateral|`, the arc sine has a vertical tangent: 2e-6 m of rounding in the
//!   description became 5e-3 rad of azimuth, the comparison refused the exact solution, and 1 of 2000 random poses
//!   was lost (TCP 5.8 mm from the axis, pan 44, lift -97 deg). The full pose does not use the TCP's azimuth at
//!   all. The wrist gives it to `e / r` (error `e` of the wrist, `r` its distance in the plane), the approach to
//!   `e / h` (`h` the horizontal part of the approach, zero when it is vertical). An azimuth from the wrist leaves an
//!   orientation error of `e h / r`, one from the approach a position error of `e r / h`; taking the wrist's when
//!   `r > 0.1 m * h` keeps both below `10 e`. When both vanish, pan and roll are the same axis and any azimuth serves.
//! * Straight elbow. `acos` of nearly 1, or any other formula: the bend is known only to the root of the rounding
//!   error, 4e-8 rad. The hand does not move with that error, since the other joints are computed from the same bend;
//!   but where a limit then clamps a joint by 4e-8, it would. A clamped joint is therefore followed by aiming the
//!   rest of the arm at the wrist again, which leaves an error of second order.
//! * Limits. Angles at a limit come out within rounding of it, on either side. Up to [`LIMIT_TOLERANCE`] outside counts
//!   as inside, is clamped and reported.

use super::geometry::{
    FOREARM_ANGLE, FOREARM_LENGTH_M, FOREARM_M, LIMITS, PAN_X_M, ROLL_LATERAL_M, ROLL_PHASE_RAD,
    SHOULDER_R_M, SHOULDER_Z_M, UPPER_ANGLE, UPPER_LENGTH_M, UPPER_M, finite, worst_excess,
};
use super::pose::{Pose, dot};
use super::solution::{Elbow, Facing, IkSolution, Solutions, Unreachable};
use super::{Kinematics, bent, sub};
use crate::error::{Error, Result};
use crate::joint::JointId;
use crate::math::{atan2, sin_cos, sqrt, wrap};
use crate::units::Radians;

/// A joint may lie this far outside of its limits and still count as a solution: it is clamped, and the solution says
/// so and says what that costs.
pub const LIMIT_TOLERANCE: Radians = Radians(2e-4);

/// Lengths that miss by less than this are rounding errors.
const LENGTH_TOLERANCE_M: f64 = 1e-10;

/// A full pose may be this far from what five joints can do: the rounding of the official description.
const POSE_TOLERANCE_M: f64 = 1e-5;
const POSE_TOLERANCE: f64 = 3e-5;

/// A full pose that misses by less than this misses by rounding errors only.
const EXACT_M: f64 = 1e-10;
const EXACT: f64 = 1e-8;

/// A rotation matrix may be this far from orthonormal.
const ORTHONORMAL_TOLERANCE: f64 = 1e-6;

/// A horizontal part of the approach shorter than this has no direction.
const NO_DIRECTION: f64 = 1e-9;

impl Kinematics {
    /// All joint angles within the limits that bring the TCP to `position_m` (base frame) with the approach `pitch`
    /// below the horizontal and wrist_roll at `roll`. Needs no start; one to four solutions.
    ///
    /// A target exactly on the pan axis leaves the azimuth free when roll puts the TCP into the arm's plane; then one
    /// azimuth is chosen.
    ///
    /// # Errors
    /// [`Error::NonFinite`], and [`Error::Unreachable`] with the reason of the branch that came closest.
    pub fn ik(&self, position_m: [f64; 3], pitch: Radians, roll: Radians) -> Result<Solutions> {
        finite("a target position in metres", &position_m)?;
        finite("a target angle in radians", &[pitch.0, roll.0])?;
        let roll = Radians(wrap(roll.0));
        let by = LIMITS[4].excess(roll);
        if by > LIMIT_TOLERANCE {
            return Err(Unreachable::JointLimit { joint: JointId::WristRoll, by }.error(position_m));
        }
        let mut search = Search::new(*self, Goal::PitchRoll { position_m, pitch, roll });
        search.clamped = by.0;
        // Clamped first, so that the position is met with the roll that will be used.
        let q5 = LIMITS[4].clamp(roll).0;
        let (sf, cf) = sin_cos(ROLL_PHASE_RAD - q5);
        let hand = self.hand(sf, cf);
        let (st, ct) = sin_cos(pitch.0);
        let tool = bent([self.reach_m, hand.up_m], st, ct);
        let (x, y) = (position_m[0] - PAN_X_M, position_m[1]);
        for azimuth in azimuths(x, y, hand.lateral_m) {
            let azimuth = match azimuth {
                Ok(azimuth) => azimuth,
                Err(by_m) => {
                    search.miss(Unreachable::TooNear { by_m });
                    continue;
                }
            };
            let tcp = [azimuth.forward_m, position_m[2]];
            search.arm(&InPlane {
                azimuth: atan2(azimuth.sin, azimuth.cos),
                facing: azimuth.facing,
                wrist_m: sub(sub(tcp, [SHOULDER_R_M, SHOULDER_Z_M]), tool),
                pitch: pitch.0,
                roll: q5,
            });
        }
        search.finish()
    }

    /// All joint angles within the limits that bring the TCP into a pose, `base_from_tcp`, that five joints can reach.
    /// Needs no start; one to four solutions.
    ///
    /// Poses up to 1e-5 m and 3e-5 rad off are accepted, since other tools round the model's description; what is
    /// left is in [`IkSolution::position_error_m`] and [`IkSolution::rotation_error`].
    ///
    /// # Errors
    /// [`Error::NonFinite`], [`Error::NotARotation`], and [`Error::Unreachable`] with the reason of the branch that came
    /// closest.
    pub fn ik_pose(&self, target: &Pose) -> Result<Solutions> {
        finite("a target position in metres", &target.position_m)?;
        finite("an entry of a target rotation", target.rotation.as_flattened())?;
        let axes = [target.axis(0), target.axis(1), target.axis(2)];
        check_rotation(&axes)?;
        let mut search = Search::new(*self, Goal::Pose(*target));
        let wrist = self.wrist(target.position_m, &axes);
        let candidates = planes(wrist, axes[2]);
        let misses = candidates.map(|plane| self.off_plane(wrist, axes[2], plane));
        // Beside an exact plane, one that is merely within tolerance is not a solution but a neighbour of one.
        let (limit_m, limit) = if misses.iter().any(|&(by_m, by)| by_m <= EXACT_M && by <= EXACT) {
            (EXACT_M, EXACT)
        } else {
            (POSE_TOLERANCE_M, POSE_TOLERANCE)
        };
        for (plane, (by_m, by)) in candidates.into_iter().zip(misses) {
            if by_m <= limit_m && by <= limit {
                in_plane(&mut search, wrist, &axes, plane);
            } else {
                search.miss(Unreachable::OffPlane { by_m, by: Radians(by) });
            }
        }
        search.finish()
    }

    /// The point where roll axis and wrist axis meet, relative to the pan axis.
    fn wrist(&self, p: [f64; 3], [x, y, z]: &[[f64; 3]; 3]) -> [f64; 3] {
        let [gx, gy, _] = self.tcp.offset_m();
        let along = |i: usize| p[i] + gx * x[i] - gy * y[i] - self.reach_m * z[i];
        [along(0) - PAN_X_M, along(1), along(2)]
    }

    /// How far wrist and approach are from where the arm's plane has them, in metres and radians.
    fn off_plane(&self, wrist: [f64; 3], approach: [f64; 3], plane: [f64; 2]) -> (f64, f64) {
        let by = lateral(plane, approach).abs();
        ((lateral(plane, wrist) - ROLL_LATERAL_M).abs() + self.reach_m.abs() * by, by)
    }
}

/// Pitch and roll of an orientation for a given direction (cosine, sine) of the arm's plane.
fn in_plane(search: &mut Search, wrist: [f64; 3], axes: &[[f64; 3]; 3], plane: [f64; 2]) {
    // The pan joint first: what follows then fits the pan angle that will be used.
    let mut plane = plane;
    let mut azimuth = atan2(plane[1], plane[0]);
    let clamped = -LIMITS[0].clamp(Radians(-azimuth)).0;
    let by = (clamped - azimuth).abs();
    if by > LIMIT_TOLERANCE.0 {
        search.miss(Unreachable::JointLimit { joint: JointId::ShoulderPan, by: Radians(by) });
        return;
    }
    if by > 0.0 {
        let (s, c) = sin_cos(clamped);
        (azimuth, plane) = (clamped, [c, s]);
    }
    let [x, y, z] = *axes;
    let [px, py, pz] = search.goal.position_m();
    let tcp_forward_m = forward(plane, [px - PAN_X_M, py, pz]);
    search.clamped = by;
    search.arm(&InPlane {
        azimuth,
        facing: if tcp_forward_m >= 0.0 { Facing::Front } else { Facing::Back },
        wrist_m: [forward(plane, wrist) - SHOULDER_R_M, wrist[2] - SHOULDER_Z_M],
        pitch: atan2(-z[2], forward(plane, z)),
        roll: wrap(ROLL_PHASE_RAD - atan2(lateral(plane, x), lateral(plane, y))),
    });
}

fn lateral([c, s]: [f64; 2], v: [f64; 3]) -> f64 {
    c * v[1] - s * v[0]
}

fn forward([c, s]: [f64; 2], v: [f64; 3]) -> f64 {
    c * v[0] + s * v[1]
}

/// A direction of the arm's plane in which a point lies at a given lateral distance.
struct Azimuth {
    sin: f64,
    cos: f64,
    /// The point's distance along the plane, negative behind the pan axis.
    forward_m: f64,
    facing: Facing,
}

/// The two directions of the plane in which the horizontal point (x, y) lies `lateral` to the left; how much is
/// missing when it is closer to the pan axis than that.
fn azimuths(x: f64, y: f64, lateral: f64) -> impl Iterator<Item = Result<Azimuth, f64>> {
    let distance = sqrt(x * x + y * y);
    let spare = distance - lateral.abs();
    let forward = sqrt(spare.max(0.0) * (distance + lateral.abs()));
    let make = move |forward_m: f64, facing| Azimuth {
        sin: y * forward_m - x * lateral,
        cos: x * forward_m + y * lateral,
        forward_m,
        facing,
    };
    let missing = (spare < -LENGTH_TOLERANCE_M).then_some(Err(-spare));
    let front = missing.is_none().then(|| Ok(make(forward, Facing::Front)));
    let back = (missing.is_none() && forward > 0.0).then(|| Ok(make(-forward, Facing::Back)));
    missing.into_iter().chain(front).chain(back)
}

/// The two directions (cosine, sine) of the arm's plane for a wrist position and an approach.
fn planes(wrist: [f64; 3], approach: [f64; 3]) -> [[f64; 2]; 2] {
    let (x, y) = (wrist[0], wrist[1]);
    let distance = sqrt(x * x + y * y);
    let forward = sqrt((distance - ROLL_LATERAL_M.abs()).max(0.0) * (distance + ROLL_LATERAL_M.abs()));
    let level = sqrt(approach[0] * approach[0] + approach[1] * approach[1]);
    if forward <= 0.1 * level && level > NO_DIRECTION {
        let (c, s) = (approach[0] / level, approach[1] / level);
        return [[c, s], [-c, -s]];
    }
    [forward, -forward].map(|r| {
        let (c, s) = (x * r + y * ROLL_LATERAL_M, y * r - x * ROLL_LATERAL_M);
        let length = sqrt(c * c + s * s);
        if length > 0.0 { [c / length, s / length] } else { [1.0, 0.0] }
    })
}

/// A target in the plane of the arm.
struct InPlane {
    azimuth: f64,
    facing: Facing,
    /// From lift axis to wrist axis, (forward, up).
    wrist_m: [f64; 2],
    pitch: f64,
    roll: f64,
}

/// Lift, and lift + elbow, that put the wrist at a point: elbow up and elbow down, equal when the elbow is straight.
fn two_links(wrist: [f64; 2]) -> Result<[[f64; 2]; 2], Unreachable> {
    const SUM: f64 = UPPER_LENGTH_M + FOREARM_LENGTH_M;
    const DIFFERENCE: f64 = FOREARM_LENGTH_M - UPPER_LENGTH_M;
    let distance = sqrt(wrist[0] * wrist[0] + wrist[1] * wrist[1]);
    let (far, near) = (SUM - distance, distance - DIFFERENCE);
    if far < -LENGTH_TOLERANCE_M {
        return Err(Unreachable::TooFar { by_m: -far });
    }
    if near < -LENGTH_TOLERANCE_M {
        return Err(Unreachable::TooNear { by_m: -near });
    }
    // tan(bend / 2) = n / m, from the factors of the law of cosines: no cancellation in 1 - cos.
    let n = sqrt(far.max(0.0) * (SUM + distance));
    let m = sqrt(near.max(0.0) * (distance + DIFFERENCE));
    let scale = n * n + m * m;
    let (sin, cos) = (2.0 * n * m / scale, (m * m - n * n) / scale);
    let bend = 2.0 * atan2(n, m);
    let to_wrist = atan2(wrist[1], wrist[0]);
    let to_elbow = atan2(FOREARM_LENGTH_M * sin, UPPER_LENGTH_M + FOREARM_LENGTH_M * cos);
    // Directions count counter-clockwise, joints clockwise.
    let up = [UPPER_ANGLE - to_wrist - to_elbow, FOREARM_ANGLE - to_wrist - to_elbow + bend];
    let down = [UPPER_ANGLE - to_wrist + to_elbow, FOREARM_ANGLE - to_wrist + to_elbow - bend];
    Ok([up, down])
}

/// What was asked for.
#[derive(Clone, Copy)]
enum Goal {
    PitchRoll { position_m: [f64; 3], pitch: Radians, roll: Radians },
    Pose(Pose),
}

impl Goal {
    const fn position_m(&self) -> [f64; 3] {
        match self {
            Self::PitchRoll { position_m, .. } => *position_m,
            Self::Pose(pose) => pose.position_m,
        }
    }

    /// How far joint angles miss it.
    fn errors(&self, arm: &Kinematics, q: &[Radians; 5]) -> (f64, Radians) {
        let got = arm.fk(q);
        match self {
            Self::PitchRoll { position_m, pitch, roll } => {
                let position = Pose { position_m: *position_m, ..got };
                let pitch = wrap(Kinematics::pitch(q).0 - pitch.0).abs();
                (got.distance_m(&position), Radians(pitch.max(wrap(q[4].0 - roll.0).abs())))
            }
            Self::Pose(pose) => (got.distance_m(pose), got.angle_to(pose)),
        }
    }
}

/// Collects solutions, and the closest miss.
struct Search {
    arm: Kinematics,
    goal: Goal,
    found: Option<Solutions>,
    closest: Option<Unreachable>,
    /// What was clamped before the plane was looked at.
    clamped: f64,
}

impl Search {
    const fn new(arm: Kinematics, goal: Goal) -> Self {
        Self { arm, goal, found: None, closest: None, clamped: 0.0 }
    }

    fn miss(&mut self, why: Unreachable) {
        if self.closest.is_none_or(|best| why.rank() < best.rank()) {
            self.closest = Some(why);
        }
    }

    fn finish(self) -> Result<Solutions> {
        // Without a solution there was a miss; a target without either cannot happen, and would be off the plane.
        let why = self.closest.unwrap_or(Unreachable::OffPlane { by_m: 0.0, by: Radians(0.0) });
        self.found.ok_or_else(|| why.error(self.goal.position_m()))
    }

    /// Both elbows of a target in the plane.
    fn arm(&mut self, target: &InPlane) {
        let [up, down] = match two_links(target.wrist_m) {
            Ok(branches) => branches,
            Err(why) => return self.miss(why),
        };
        self.branch(target, Elbow::Up, up);
        if down != up {
            self.branch(target, Elbow::Down, down);
        }
    }

    fn branch(&mut self, target: &InPlane, elbow: Elbow, [lift, lift_elbow]: [f64; 2]) {
        let mut q = [
            wrap(-target.azimuth),
            wrap(lift),
            wrap(lift_elbow - lift),
            wrap(target.pitch - lift_elbow),
            target.roll,
        ];
        let (joint, by) = worst_excess(&q);
        if by > LIMIT_TOLERANCE.0 {
            return self.miss(Unreachable::JointLimit { joint, by: Radians(by) });
        }
        if by > 0.0 {
            settle(&mut q, target);
        }
        let q = q.map(Radians);
        let (position_error_m, rotation_error) = self.goal.errors(&self.arm, &q);
        let solution = IkSolution {
            q,
            facing: target.facing,
            elbow,
            clamped: Radians(by.max(self.clamped)),
            position_error_m,
            rotation_error,
        };
        match &mut self.found {
            Some(solutions) => solutions.push(solution),
            None => self.found = Some(Solutions::new(solution)),
        }
    }
}

/// Clamps joints that are a little outside, and lets the others of the plane make up for it: the pitch stays, and the
/// wrist moves by an amount of second order where the elbow is nearly straight (elsewhere nothing is gained or lost).
fn settle(q: &mut [f64; 5], target: &InPlane) {
    let clamp = |i: usize, v: f64| LIMITS[i].clamp(Radians(v)).0;
    let aim = |zero: f64, [r, z]: [f64; 2]| wrap(zero - atan2(z, r));
    let (lift, flex) = (clamp(1, q[1]), clamp(3, q[3]));
    let (lift_moved, flex_moved) = (lift != q[1], flex != q[3]);
    let mut lift_elbow = q[1] + q[2];
    q[1] = lift;
    if flex_moved {
        lift_elbow = wrap(target.pitch - flex);
        if !lift_moved {
            let (s, c) = sin_cos(lift_elbow);
            q[1] = clamp(1, aim(UPPER_ANGLE, sub(target.wrist_m, bent(FOREARM_M, s, c))));
        }
    } else if lift_moved {
        let (s, c) = sin_cos(lift);
        lift_elbow = aim(FOREARM_ANGLE, sub(target.wrist_m, bent(UPPER_M, s, c)));
    }
    q[2] = clamp(2, wrap(lift_elbow - q[1]));
    q[3] = clamp(3, wrap(target.pitch - q[1] - q[2]));
    q[0] = clamp(0, q[0]);
    q[4] = clamp(4, q[4]);
}

fn check_rotation(axes: &[[f64; 3]; 3]) -> Result<()> {
    let [x, y, z] = *axes;
    let [c0, c1, c2] = super::pose::cross(x, y);
    let handed = [c0 - z[0], c1 - z[1], c2 - z[2]].map(f64::abs);
    let lengths = [dot(x, x) - 1.0, dot(y, y) - 1.0, dot(x, y)].map(f64::abs);
    let deviation = handed.into_iter().chain(lengths).fold(0.0, f64::max);
    if deviation > ORTHONORMAL_TOLERANCE { Err(Error::NotARotation { deviation }) } else { Ok(()) }
}
