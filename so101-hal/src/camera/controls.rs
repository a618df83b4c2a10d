//! Settings of a camera that change the picture, and what the camera made of them.

use alloc::string::String;
use core::fmt;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One setting: left to the camera, or held at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The camera's automatic decides, picture by picture.
    Auto,
    /// Held at this value, in the unit of the control.
    Locked(i64),
}

impl Setting {
    /// The value to hold, if it is one.
    #[must_use]
    pub const fn locked(self) -> Option<i64> {
        match self {
            Self::Auto => None,
            Self::Locked(value) => Some(value),
        }
    }
}

/// The settings of a camera. What is `None` is left as it was found.
///
/// In a file each is a number or `"auto"`:
///
/// ```
/// use so101_hal::camera::{Controls, Setting};
/// let controls: Controls =
///     serde_json::from_str(r#"{"exposure_us": 15600, "gain": 20, "white_balance_k": "auto", "power_line_hz": 50}"#)?;
/// assert_eq!(controls.exposure_us, Some(Setting::Locked(15_600)));
/// assert_eq!(controls.white_balance_k, Some(Setting::Auto));
/// assert_eq!(controls.focus, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Controls {
    /// Exposure time in microseconds; Linux sets it in steps of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure_us: Option<Setting>,
    /// Gain, in the camera's own steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Setting>,
    /// Colour temperature of white, in kelvin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub white_balance_k: Option<Setting>,
    /// Frequency of the mains whose lamps flicker: 50 or 60 Hz, 0 = no filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_line_hz: Option<Setting>,
    /// Focus, in the camera's own steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<Setting>,
}

/// Whether a control's automatic is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Automatic {
    /// The camera changes the value by itself.
    On,
    /// The value is held.
    Off,
    /// This control has no automatic.
    None,
}

/// The values that a control takes, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ControlRange {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
    /// From one to the next.
    pub step: i64,
}

/// What was wanted of a control, and what the camera says it is: read back, never assumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ControlReport {
    /// `exposure`, `gain`, `white_balance`, `power_line` or `focus`.
    pub name: &'static str,
    /// Unit of the values: `us`, `K`, `Hz`, or empty for the camera's own steps.
    pub unit: &'static str,
    /// The value to hold; `None` = nothing, or automatic.
    pub wanted: Option<i64>,
    /// The value that the camera reports; `None` = it has no such control, or does not tell.
    pub got: Option<i64>,
    /// Its automatic, as the camera reports it.
    pub automatic: Automatic,
    /// Which values it takes.
    pub range: Option<ControlRange>,
    /// What the system said where setting or reading failed.
    pub fault: Option<String>,
}

impl ControlReport {
    /// Whether the control is as it was wanted: nothing was wanted, or the value is the wanted one with the automatic
    /// off.
    #[must_use]
    pub fn took(&self) -> bool {
        self.wanted.is_none() || (self.got == self.wanted && self.automatic != Automatic::On)
    }

    /// The value that counts: `None` too where the automatic goes on changing it.
    #[must_use]
    pub fn held(&self) -> Option<i64> {
        if self.automatic == Automatic::On { None } else { self.got }
    }
}

impl fmt::Display for ControlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name)?;
        match self.got {
            Some(got) => write!(f, "{got}{}{}", if self.unit.is_empty() { "" } else { " " }, self.unit)?,
            None => f.write_str("not told")?,
        }
        if self.automatic == Automatic::On {
            f.write_str(" (automatic)")?;
        }
        if let (Some(wanted), false) = (self.wanted, self.took()) {
            write!(f, ", wanted {wanted}")?;
            if let Some(range) = self.range {
                write!(f, " of {} to {}", range.min, range.max)?;
            }
        }
        if let Some(fault) = &self.fault {
            write!(f, " [{fault}]")?;
        }
        Ok(())
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Locked(value) => serializer.serialize_i64(*value),
        }
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = Setting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or \"auto\"")
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<Setting, E> {
                Ok(Setting::Locked(v))
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<Setting, E> {
                i64::try_from(v)
                    .map(Setting::Locked)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(v), &self))
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Setting, E> {
                if v == "auto" { Ok(Setting::Auto) } else { Err(E::invalid_value(Unexpected::Str(v), &self)) }
            }
        }
        deserializer.deserialize_any(Value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(wanted: Option<i64>, got: Option<i64>, automatic: Automatic) -> ControlReport {
        let range = Some(ControlRange { min: 100, max: 10_000, step: 100 });
        ControlReport { name: "exposure", unit: "us", wanted, got, automatic, range, fault: None }
    }

    #[test]
    fn a_control_took_only_with_its_value_and_its_automatic_off() {
        for (wanted, got, automatic, took) in [
            (None, None, Automatic::None, true),
            (None, Some(500), Automatic::On, true),
            (Some(500), Some(500), Automatic::Off, true),
            (Some(500), Some(500), Automatic::None, true),
            (Some(500), Some(500), Automatic::On, false),
            (Some(500), Some(400), Automatic::Off, false),
            (Some(500), None, Automatic::None, false),
        ] {
            assert_eq!(report(wanted, got, automatic).took(), took, "{wanted:?} {got:?} {automatic:?}");
        }
    }

    #[test]
    fn a_report_in_words_names_both_values_and_the_range_where_they_differ() {
        let text = std::format!("{}", report(Some(20_000), Some(10_000), Automatic::Off));
        assert_eq!(text, "exposure 10000 us, wanted 20000 of 100 to 10000");
        assert_eq!(std::format!("{}", report(Some(500), Some(500), Automatic::Off)), "exposure 500 us");
    }

    #[test]
    fn settings_are_numbers_or_the_word_auto() {
        let text = r#"{"gain":-3,"focus":"auto"}"#;
        let controls: Controls = serde_json::from_str(text).unwrap();
        assert_eq!((controls.gain, controls.focus), (Some(Setting::Locked(-3)), Some(Setting::Auto)));
        assert_eq!(serde_json::to_string(&controls).unwrap(), text);
        for bad in [r#"{"gain":"automatic"}"#, r#"{"gain":1.5}"#, r#"{"brightness":3}"#] {
            assert!(serde_json::from_str::<Controls>(bad).is_err(), "{bad}");
        }
    }
}
