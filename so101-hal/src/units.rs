//! Units as types. Inside the suite lengths are metres, angles radians, times [`core::time::Duration`];
//! every other unit lives in one of these newtypes or in the suffix of a name (`_deg`, `_mm`, `_hz`).

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $suffix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub f64);

        impl $name {
            /// The bare number, in this unit.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }

            /// `false` for NaN and the infinities.
            #[must_use]
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match f.precision() {
                    Some(p) => write!(f, "{:.*}{}", p, self.0, $suffix),
                    None => write!(f, "{}{}", self.0, $suffix),
                }
            }
        }
    };
}

unit!(
    /// An angle in radians.
    Radians,
    " rad"
);
unit!(
    /// An angle in degrees. For a LeRobot joint value this is the servo's angle from the middle of the
    /// calibrated range, `(ticks - mid) * 360 / 4095`, which is not the angle of the model's joint unless the
    /// calibration says so.
    Degrees,
    " deg"
);
unit!(
    /// LeRobot's `RANGE_M100_100`: -100 at one end of the calibrated range, 100 at the other.
    Normalized,
    ""
);
unit!(
    /// LeRobot's `RANGE_0_100`: the gripper, 0 closed (pads touch) to 100 open.
    Percent,
    " %"
);
unit!(
    /// Illuminance in lux.
    Lux,
    " lx"
);

impl From<Degrees> for Radians {
    fn from(v: Degrees) -> Self {
        Self(v.0.to_radians())
    }
}

impl From<Radians> for Degrees {
    fn from(v: Radians) -> Self {
        Self(v.0.to_degrees())
    }
}

/// A servo position in encoder steps, 4096 a turn.
///
/// Signed and wider than the register, since a value computed from degrees may lie outside of 0..=4095 before the
/// servo's own limits clamp it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticks(pub i32);

impl Ticks {
    /// The bare number of steps.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl core::fmt::Display for Ticks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ticks", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_unit_prints_with_its_suffix_and_precision() {
        assert_eq!(format!("{:.1}", Degrees(12.34)), "12.3 deg");
        assert_eq!(format!("{}", Ticks(-4)), "-4 ticks");
    }

    #[test]
    fn degrees_and_radians_convert_both_ways() {
        assert_eq!(Degrees::from(Radians::from(Degrees(90.0))), Degrees(90.0));
    }
}
