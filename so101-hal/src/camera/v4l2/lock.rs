//! Locks the controls of a camera, and reads every one of them back.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::super::controls::{Automatic, ControlRange, ControlReport, Controls, Setting};
use super::abi::{
    CID_AUTO_WHITE_BALANCE, CID_AUTOGAIN, CID_EXPOSURE_ABSOLUTE, CID_EXPOSURE_AUTO,
    CID_EXPOSURE_AUTO_PRIORITY, CID_FOCUS_ABSOLUTE, CID_FOCUS_AUTO, CID_GAIN, CID_POWER_LINE_FREQUENCY,
    CID_WHITE_BALANCE_TEMPERATURE, CTRL_DISABLED, Control, ControlQuery, GetControl, QueryControl,
    SetControl,
};
use super::calls::{Calls, Errno};

/// `V4L2_CID_POWER_LINE_FREQUENCY_AUTO`.
const POWER_LINE_AUTO: i32 = 3;

/// How the device's numbers and ours belong together.
#[derive(Clone, Copy)]
enum Scale {
    /// One of the device is so many of ours.
    Times(i64),
    /// A menu: off, 50 Hz, 60 Hz, automatic.
    PowerLine,
}

struct Entry {
    name: &'static str,
    unit: &'static str,
    wanted: fn(&Controls) -> Option<Setting>,
    id: u32,
    scale: Scale,
    automatic: Option<Switch>,
    /// Set to 0 with the lock; not every camera has it.
    clear: Option<u32>,
}

/// The control that switches the automatic of another.
struct Switch {
    id: u32,
    by_hand: i32,
    /// The first that the camera takes.
    on: &'static [i32],
}

const BOOLEAN: [i32; 1] = [1];

/// The automatic is switched before the value: a value that the automatic owns is refused, or taken and forgotten.
const ENTRIES: [Entry; 5] = [
    Entry {
        name: "exposure",
        unit: "us",
        wanted: |c| c.exposure_us,
        id: CID_EXPOSURE_ABSOLUTE,
        scale: Scale::Times(100),
        automatic: Some(Switch { id: CID_EXPOSURE_AUTO, by_hand: 1, on: &[3, 0] }),
        clear: Some(CID_EXPOSURE_AUTO_PRIORITY),
    },
    Entry {
        name: "gain",
        unit: "",
        wanted: |c| c.gain,
        id: CID_GAIN,
        scale: Scale::Times(1),
        automatic: Some(Switch { id: CID_AUTOGAIN, by_hand: 0, on: &BOOLEAN }),
        clear: None,
    },
    Entry {
        name: "white_balance",
        unit: "K",
        wanted: |c| c.white_balance_k,
        id: CID_WHITE_BALANCE_TEMPERATURE,
        scale: Scale::Times(1),
        automatic: Some(Switch { id: CID_AUTO_WHITE_BALANCE, by_hand: 0, on: &BOOLEAN }),
        clear: None,
    },
    Entry {
        name: "power_line",
        unit: "Hz",
        wanted: |c| c.power_line_hz,
        id: CID_POWER_LINE_FREQUENCY,
        scale: Scale::PowerLine,
        automatic: None,
        clear: None,
    },
    Entry {
        name: "focus",
        unit: "",
        wanted: |c| c.focus,
        id: CID_FOCUS_ABSOLUTE,
        scale: Scale::Times(1),
        automatic: Some(Switch { id: CID_FOCUS_AUTO, by_hand: 0, on: &BOOLEAN }),
        clear: None,
    },
];

/// Sets what is wanted, then reads all back. The only error is a camera that is gone; all others are in the reports.
pub(super) fn lock<C: Calls>(calls: &mut C, controls: &Controls) -> Result<Vec<ControlReport>, Errno> {
    let mut reports = Vec::new();
    for entry in &ENTRIES {
        let fault = match (entry.wanted)(controls) {
            Some(setting) => gone(set(calls, entry, setting))?.err(),
            None => None,
        };
        reports.extend(report(calls, entry, controls, fault)?);
    }
    Ok(reports)
}

/// Reads all controls back.
pub(super) fn read<C: Calls>(calls: &mut C, controls: &Controls) -> Result<Vec<ControlReport>, Errno> {
    let mut reports = Vec::new();
    for entry in &ENTRIES {
        reports.extend(report(calls, entry, controls, None)?);
    }
    Ok(reports)
}

/// What failed: while doing what.
struct Fault {
    doing: String,
    errno: Errno,
}

/// Sorts out the one error that ends everything; others become words.
fn gone(result: Result<(), Fault>) -> Result<Result<(), String>, Errno> {
    match result {
        Err(Fault { errno: Errno::NODEV, .. }) => Err(Errno::NODEV),
        Err(Fault { doing, errno }) => Ok(Err(format!("{doing}: {errno}"))),
        Ok(()) => Ok(Ok(())),
    }
}

fn set<C: Calls>(calls: &mut C, entry: &Entry, setting: Setting) -> Result<(), Fault> {
    let fault = |doing: &str| {
        let doing = doing.to_string();
        move |errno| Fault { doing, errno }
    };
    match setting {
        Setting::Locked(value) => {
            let value = entry.scale.to_device(value).ok_or_else(|| Fault {
                doing: format!("{value} {} is no value of this control", entry.unit),
                errno: Errno::RANGE,
            })?;
            if let Some(switch) = &entry.automatic {
                // Not every camera has an automatic for each control.
                if query(calls, switch.id).map_err(fault("ask for the automatic"))?.is_some() {
                    write(calls, switch.id, switch.by_hand).map_err(fault("switch the automatic off"))?;
                }
            }
            if let Some(id) = entry.clear {
                // A camera without it does not do what it forbids.
                if write(calls, id, 0) == Err(Errno::NODEV) {
                    return Err(fault("set")(Errno::NODEV));
                }
            }
            write(calls, entry.id, value).map_err(fault("set"))
        }
        Setting::Auto => match (&entry.automatic, entry.scale) {
            (Some(switch), _) => {
                let mut result = Err(Errno::INVAL);
                for &on in switch.on {
                    result = write(calls, switch.id, on);
                    if result != Err(Errno::INVAL) && result != Err(Errno::RANGE) {
                        break;
                    }
                }
                result.map_err(fault("switch the automatic on"))
            }
            (None, Scale::PowerLine) => write(calls, entry.id, POWER_LINE_AUTO).map_err(fault("set")),
            (None, Scale::Times(_)) => Ok(()),
        },
    }
}

/// How a control is now; `None` where the camera does not have it and nobody asked for it.
fn report<C: Calls>(
    calls: &mut C,
    entry: &Entry,
    controls: &Controls,
    fault: Option<String>,
) -> Result<Option<ControlReport>, Errno> {
    let setting = (entry.wanted)(controls);
    let locked = setting.and_then(Setting::locked);
    // What the control can be set to at best: exposure has steps of 100 us.
    let wanted = locked.map(|v| entry.scale.to_device(v).and_then(|d| entry.scale.ours(d)).unwrap_or(v));
    let mut report = ControlReport {
        name: entry.name,
        unit: entry.unit,
        wanted,
        got: None,
        automatic: Automatic::None,
        range: None,
        fault,
    };
    let query_value = match query(calls, entry.id) {
        Ok(Some(found)) => found,
        Ok(None) if setting.is_none() => return Ok(None),
        Ok(None) => {
            report.fault = Some("the camera has no such control".to_string());
            return Ok(Some(report));
        }
        Err(errno) => {
            told::<ControlQuery>(Err(errno), "ask", &mut report.fault)?;
            return Ok(Some(report));
        }
    };
    report.range = entry.scale.range(&query_value);
    if let Some(value) = told(read_one(calls, entry.id), "read", &mut report.fault)? {
        report.got = entry.scale.ours(value);
        if matches!(entry.scale, Scale::PowerLine) && value == POWER_LINE_AUTO {
            report.automatic = Automatic::On;
        }
    }
    if let Some(switch) = &entry.automatic
        && told(query(calls, switch.id), "ask for the automatic", &mut report.fault)?.flatten().is_some()
        && let Some(value) = told(read_one(calls, switch.id), "read the automatic", &mut report.fault)?
    {
        report.automatic = if value == switch.by_hand { Automatic::Off } else { Automatic::On };
    }
    Ok(Some(report))
}

/// What the camera said; `None` where it failed, which is told unless something is told already. A camera that is gone is
/// the one error.
fn told<T>(result: Result<T, Errno>, doing: &str, fault: &mut Option<String>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NODEV) => Err(Errno::NODEV),
        Err(errno) => {
            *fault = Some(fault.take().unwrap_or_else(|| format!("{doing}: {errno}")));
            Ok(None)
        }
    }
}

/// Asks for a control; `None` where the camera does not have it, or has switched it off for good.
fn query<C: Calls>(calls: &mut C, id: u32) -> Result<Option<ControlQuery>, Errno> {
    let mut query = ControlQuery { id, ..ControlQuery::ZERO };
    match calls.ioctl::<QueryControl>(&mut query) {
        Ok(()) if query.flags & CTRL_DISABLED == 0 => Ok(Some(query)),
        Ok(()) | Err(Errno::INVAL | Errno::NOTTY | Errno::IO) => Ok(None),
        Err(other) => Err(other),
    }
}

fn write<C: Calls>(calls: &mut C, id: u32, value: i32) -> Result<(), Errno> {
    calls.ioctl::<SetControl>(&mut Control { id, value })
}

fn read_one<C: Calls>(calls: &mut C, id: u32) -> Result<i32, Errno> {
    let mut control = Control { id, value: 0 };
    calls.ioctl::<GetControl>(&mut control)?;
    Ok(control.value)
}

impl Scale {
    /// Our value as the device's: the nearest one.
    fn to_device(self, value: i64) -> Option<i32> {
        match self {
            Self::Times(times) => i32::try_from(value.saturating_add(times / 2).div_euclid(times)).ok(),
            Self::PowerLine => match value {
                0 => Some(0),
                50 => Some(1),
                60 => Some(2),
                _ => None,
            },
        }
    }

    fn ours(self, value: i32) -> Option<i64> {
        match self {
            Self::Times(times) => Some(i64::from(value) * times),
            Self::PowerLine => match value {
                0 => Some(0),
                1 => Some(50),
                2 => Some(60),
                _ => None,
            },
        }
    }

    fn range(self, query: &ControlQuery) -> Option<ControlRange> {
        match self {
            Self::Times(times) => Some(ControlRange {
                min: i64::from(query.minimum) * times,
                max: i64::from(query.maximum) * times,
                step: i64::from(query.step) * times,
            }),
            Self::PowerLine => None,
        }
    }
}
