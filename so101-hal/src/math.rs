//! Elementary functions: the standard library's with `std`, `libm`'s without.

#[cfg(feature = "std")]
mod imp {
    #[inline]
    pub(crate) fn sin_cos(x: f64) -> (f64, f64) {
        x.sin_cos()
    }
    #[inline]
    pub(crate) fn atan2(y: f64, x: f64) -> f64 {
        y.atan2(x)
    }
    #[inline]
    pub(crate) fn sqrt(x: f64) -> f64 {
        x.sqrt()
    }
    #[inline]
    pub(crate) fn round(x: f64) -> f64 {
        x.round()
    }
}

#[cfg(not(feature = "std"))]
mod imp {
    pub(crate) fn sin_cos(x: f64) -> (f64, f64) {
        libm::sincos(x)
    }
    pub(crate) fn atan2(y: f64, x: f64) -> f64 {
        libm::atan2(y, x)
    }
    pub(crate) fn sqrt(x: f64) -> f64 {
        libm::sqrt(x)
    }
    pub(crate) fn round(x: f64) -> f64 {
        libm::round(x)
    }
}

pub(crate) use imp::{atan2, round, sin_cos, sqrt};

/// The same angle in -pi..=pi.
#[inline]
pub(crate) fn wrap(angle: f64) -> f64 {
    const TAU: f64 = core::f64::consts::TAU;
    if angle.abs() <= core::f64::consts::PI { angle } else { angle - TAU * round(angle / TAU) }
}
