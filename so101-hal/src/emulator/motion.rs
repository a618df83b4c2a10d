//! How a servo moves: a proportional position loop with limits on velocity and acceleration.

/// Step of the integration.
pub(super) const STEP_S: f64 = 0.001;

/// Desired velocity per tick of error, 1/s: the servo lags a moving goal by 40 ms.
const GAIN_PER_S: f64 = 25.0;
/// The fastest a servo turns, ticks a second (about 50 rpm).
const MAX_VELOCITY: f64 = 3400.0;
/// Acceleration where register 41 sets none, ticks a second squared.
const MAX_ACCELERATION: f64 = 25_000.0;
/// Load in 0.1 % per tick of error.
const LOAD_PER_TICK: f64 = 6.0;
/// Closer and slower than this, the servo stands.
const STANDING_TICKS: f64 = 0.05;
const STANDING_TICKS_S: f64 = 5.0;

/// What the registers ask of the position loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Goal less present position, ticks.
    pub(super) error: f64,
    /// Register 46, ticks a second; 0 = the most.
    pub(super) velocity_limit: f64,
    /// Register 41, ticks a second squared; 0 = the most.
    pub(super) acceleration_limit: f64,
}

impl Drive {
    /// The velocity one step later.
    pub(super) fn next_velocity(&self, velocity: f64) -> f64 {
        let most = |limit: f64, top: f64| if limit == 0.0 || limit > top { top } else { limit };
        let v_max = most(self.velocity_limit, MAX_VELOCITY);
        let a_max = if self.acceleration_limit == 0.0 { MAX_ACCELERATION } else { self.acceleration_limit };
        let wanted = (self.error * GAIN_PER_S).clamp(-v_max, v_max);
        let change = a_max * STEP_S;
        let next = velocity + (wanted - velocity).clamp(-change, change);
        // The distance that braking takes must not be more than is left, or the servo would overshoot.
        let speed = magnitude(next);
        let left = magnitude(self.error) - speed * STEP_S;
        if next * self.error > 0.0 && speed * speed > 2.0 * a_max * left {
            velocity - velocity.clamp(-change, change)
        } else {
            next
        }
    }

    /// Whether the servo has arrived.
    pub(super) fn stands(&self, velocity: f64) -> bool {
        within(self.error, STANDING_TICKS) && within(velocity, STANDING_TICKS_S)
    }

    /// Load in 0.1 %: what the error demands and what pulls from outside, up to the torque limit.
    pub(super) fn load_permille(&self, external: f64, limit: f64) -> f64 {
        (self.error * LOAD_PER_TICK + external).clamp(-limit, limit)
    }
}

fn magnitude(value: f64) -> f64 {
    if value < 0.0 { -value } else { value }
}

fn within(value: f64, bound: f64) -> bool {
    -bound < value && value < bound
}

/// To the nearest whole number, halves away from zero; saturates.
pub(super) fn whole(value: f64) -> i32 {
    if value < 0.0 { (value - 0.5) as i32 } else { (value + 0.5) as i32 }
}
