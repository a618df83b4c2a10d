//! The cameras: what they are, what they deliver and what they see.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use crate::camera::framing::{FramingShift, Reference};
use crate::camera::quality::{self, Pace};
use crate::camera::{Automatic, Camera, ControlReport, DeviceInfo};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};
use crate::units::Lux;

use super::item::Item;
use super::limits::Limits;
use super::report::{Check, Verdict};

/// Pictures that the rate is measured on.
pub const RATE_FRAMES: u32 = 60;

/// What is known of a camera. What was not measured or given is `None` and skipped.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CameraFacts {
    /// Its name.
    pub name: String,
    /// The device that it was opened by; `None` for one without.
    pub path: Option<String>,
    /// Pixel format that came, and the one that was configured.
    pub format: Option<(String, String)>,
    /// Size that came (`None` = no picture), and the one that was configured.
    pub size: Option<(Option<FrameSize>, FrameSize)>,
    /// What was measured, and the rate that was configured.
    pub timing: Option<(Pace, u32)>,
    /// The controls as they were read back; `None` for a camera without any.
    pub controls: Option<Vec<ControlReport>>,
    /// Mean luma, 0 to 255.
    pub mean_luma: Option<f64>,
    /// Share of pixels at either end of the range.
    pub clipped_share: Option<f64>,
    /// Variance of the Laplacian, and that of the reference picture.
    pub focus: Option<(f64, Option<f64>)>,
    /// Against the stored reference picture.
    pub framing: Option<FramingShift>,
}

impl CameraFacts {
    /// A camera of which nothing is known yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Notes what the device says of itself: path, format and controls.
    pub fn note_device(&mut self, device: &DeviceInfo) {
        self.path.clone_from(&device.path);
        let any = device.format_wanted.is_empty();
        let wanted = if any { &device.format } else { &device.format_wanted };
        self.format = Some((device.format.clone(), wanted.clone()));
        // A drawn camera has neither device nor controls.
        let any = device.path.is_some() || !device.controls.is_empty();
        self.controls = any.then(|| device.controls.clone());
    }

    /// Takes [`RATE_FRAMES`] pictures at `fps` and notes their size and timing; the last picture comes back.
    ///
    /// A camera that gives no picture, or stops, is a part of what is known.
    pub fn measure(
        &mut self,
        camera: &mut (impl Camera + ?Sized),
        clock: &dyn Clock,
        fps: u32,
    ) -> Option<Frame> {
        let wanted = camera.spec().size;
        let period = Duration::from_secs(1) / fps.max(1);
        let mut stamps = Vec::with_capacity(RATE_FRAMES as usize);
        let mut last = None;
        let start = clock.now();
        for k in 0..RATE_FRAMES {
            clock.sleep_until(start + period * k);
            let frame = match camera.capture() {
                Ok(frame) => frame,
                // It delivers, but not what it said: there is nothing else to measure.
                Err(Error::CameraSize { got, .. }) => {
                    self.size = Some((Some(got), wanted));
                    return None;
                }
                // One that fails half way is judged by what came before.
                Err(_) => break,
            };
            stamps.push((frame.sequence, frame.captured));
            last = Some(frame);
        }
        self.size = Some((last.as_ref().map(Frame::size), wanted));
        self.timing = Some((Pace::of(&stamps), fps));
        last
    }

    /// Measures a picture, and compares it with the stored reference where there is one.
    ///
    /// # Errors
    /// [`Error::CameraSize`] for a reference of another size.
    pub fn see(&mut self, frame: &Frame, reference: Option<&Reference>) -> Result<()> {
        self.mean_luma = Some(quality::mean_luma(frame));
        self.clipped_share = Some(quality::clipped_share(frame).share());
        self.focus = Some((quality::focus_measure(frame), reference.map(Reference::focus)));
        self.framing = reference.map(|r| r.shift_of(frame)).transpose()?;
        Ok(())
    }
}

/// Judges a camera.
#[must_use]
pub fn cameras(facts: &CameraFacts, limits: &Limits) -> Vec<Check> {
    let unknown = |item: Item, why: &str| Check::skipped(item, why);
    let no_picture = matches!(facts.size, Some((None, _)));
    let not_seen = if no_picture { "no picture" } else { "not measured" };
    let mut checks = alloc::vec![
        path(facts.path.as_deref()),
        facts.format.as_ref().map_or_else(|| unknown(Item::CameraFormat, "no format given"), format_of),
        facts.size.as_ref().map_or_else(|| unknown(Item::CameraSize, "not measured"), size),
    ];
    match &facts.timing {
        Some((timing, fps)) => checks.extend(timing_of(timing, *fps, limits)),
        None => checks.extend(
            [Item::CameraRate, Item::CameraJitter, Item::CameraDrops].map(|i| unknown(i, "not measured")),
        ),
    }
    checks.extend([
        facts
            .controls
            .as_deref()
            .map_or_else(|| unknown(Item::CameraControls, "this camera has none"), controls),
        facts.mean_luma.map_or_else(|| unknown(Item::CameraLuma, not_seen), |v| luma(v, limits)),
        facts.clipped_share.map_or_else(|| unknown(Item::CameraClipped, not_seen), |v| clipped(v, limits)),
        facts.focus.map_or_else(|| unknown(Item::CameraFocus, not_seen), |(f, r)| focus(f, r, limits)),
        facts
            .framing
            .as_ref()
            .map_or_else(|| unknown(Item::CameraFraming, "no reference picture"), |f| framing(f, limits)),
    ]);
    checks.into_iter().map(|c| c.of(facts.name.clone())).collect()
}

fn path(path: Option<&str>) -> Check {
    let item = Item::CameraPath;
    match path {
        None => Check::skipped(item, "no device"),
        Some(p) => {
            let stays = p.contains("/by-id/") || p.contains("/by-path/") || !p.starts_with("/dev/video");
            Check::new(item, Verdict::warn_unless(stays)).value(p).advice(
                "numbers of video devices change when another camera is plugged in: use the path under \
                 /dev/v4l/by-id, or by-path for two cameras of one make (find_cameras lists them)",
            )
        }
    }
}

fn format_of((got, wanted): &(String, String)) -> Check {
    Check::new(Item::CameraFormat, Verdict::fail_unless(got == wanted))
        .value(got.clone())
        .limit(wanted.clone())
        .advice("the camera does not deliver what the configuration says: choose a format that find_cameras lists")
}

fn size((got, wanted): &(Option<FrameSize>, FrameSize)) -> Check {
    Check::new(Item::CameraSize, Verdict::fail_unless(*got == Some(*wanted)))
        .value(got.map_or_else(|| "no picture".to_string(), |s| s.to_string()))
        .limit(wanted.to_string())
        .advice(match got {
            None => "no picture came: check the camera's plug, and that no other program has it open",
            Some(_) => {
                "set the camera to this size, or the configuration to the camera's (find_cameras lists both)"
            }
        })
}

fn timing_of(timing: &Pace, fps: u32, limits: &Limits) -> [Check; 3] {
    let nominal = f64::from(fps);
    let off = (timing.fps / nominal - 1.0).abs();
    let [warn, fail] = limits.rate_share;
    let rate = Check::new(Item::CameraRate, Verdict::below(off, warn + 1e-9, fail + 1e-9))
        .value(format!("{:.2} Hz over {} frames", timing.fps, timing.frames))
        .limit(format!("{fps} Hz, {:.0} % off at most", 100.0 * warn))
        .advice(
            "in dim light automatic exposure lowers the rate: lock the exposure; two cameras on one USB hub share its \
             bandwidth: use MJPG and separate ports",
        );
    let period_s = 1.0 / nominal;
    let jitter = timing.jitter.as_secs_f64();
    let [warn, fail] = limits.jitter_share.map(|s| s * period_s);
    let spread = Check::new(Item::CameraJitter, Verdict::below(jitter, warn, fail))
        .value(format!("{:.1} ms", 1e3 * jitter))
        .limit(format!("below {:.1} ms, {:.1} ms fails", 1e3 * warn, 1e3 * fail))
        .advice("pictures come unevenly: another program loads the computer or the USB bus (diagnose_stall)");
    let all = timing.frames as f64 + timing.dropped as f64;
    let share = timing.dropped as f64 / all.max(1.0);
    let verdict = match timing.dropped {
        0 => Verdict::Pass,
        _ if share <= limits.drop_share => Verdict::Warn,
        _ => Verdict::Fail,
    };
    let drops = Check::new(Item::CameraDrops, verdict)
        .value(format!("{} of {all:.0}", timing.dropped))
        .advice("pictures are lost on the way: use MJPG, another USB port, a shorter cable, or a lower rate");
    [rate, spread, drops]
}

/// Mains frequency alone may stay automatic: it changes nothing in a lit room once exposure is locked.
const MAY_BE_AUTOMATIC: &str = "power_line";

fn controls(controls: &[ControlReport]) -> Check {
    let item = Item::CameraControls;
    let texts = |of: &dyn Fn(&&ControlReport) -> bool| -> Vec<String> {
        controls.iter().filter(of).map(ToString::to_string).collect()
    };
    let refused = texts(&|c| !c.took());
    let loose = texts(&|c| c.automatic == Automatic::On && c.name != MAY_BE_AUTOMATIC);
    let held = texts(&|c| c.wanted.is_some() && c.took());
    if !refused.is_empty() {
        return Check::new(item, Verdict::Fail).value(refused.join(", ")).advice(
            "the camera did not take it: take a value in the camera's range (find_cameras lists them), and end other \
             programs that set it",
        );
    }
    if !loose.is_empty() || held.is_empty() {
        let value = if loose.is_empty() { "none is locked".to_string() } else { loose.join(", ") };
        return Check::new(item, Verdict::Warn).value(value).advice(
            "pictures of one scene change by themselves: lock exposure, gain, white balance and focus in the camera's \
             configuration",
        );
    }
    Check::new(item, Verdict::Pass).value(held.join(", "))
}

fn luma(mean: f64, limits: &Limits) -> Check {
    let verdict = if limits.luma.contains(&mean) {
        Verdict::Pass
    } else if limits.luma_usable.contains(&mean) {
        Verdict::Warn
    } else {
        Verdict::Fail
    };
    let advice = if mean < *limits.luma.start() {
        "too dark: take the lens cap off, switch the light on, or lock a longer exposure"
    } else {
        "too bright: lock a shorter exposure, turn the camera away from the window"
    };
    Check::new(Item::CameraLuma, verdict).value(format!("{mean:.0}")).advice(advice)
}

fn clipped(share: f64, limits: &Limits) -> Check {
    let [warn, fail] = limits.clipped_share;
    Check::new(Item::CameraClipped, Verdict::below(share, warn, fail))
        .value(format!("{:.1} %", 100.0 * share))
        .advice("details are lost at the ends of the range: change exposure or gain, keep lamps out of the picture")
}

fn focus(measure: f64, reference: Option<f64>, limits: &Limits) -> Check {
    let advice = "the picture is blurred: wipe the lens, turn its ring until the measure is highest, lock the autofocus";
    match reference {
        Some(reference) if reference > 0.0 => {
            let share = measure / reference;
            let [warn, fail] = limits.focus_share;
            let verdict = match share {
                s if s >= warn => Verdict::Pass,
                s if s >= fail => Verdict::Warn,
                _ => Verdict::Fail,
            };
            Check::new(Item::CameraFocus, verdict)
                .value(format!("{measure:.0}, {:.0} % of the reference", 100.0 * share))
                .advice(advice)
        }
        _ => Check::new(Item::CameraFocus, Verdict::warn_unless(measure >= limits.focus_least))
            .value(format!("{measure:.0}"))
            .limit(format!("{:.0} at least (no reference)", limits.focus_least))
            .advice(advice),
    }
}

fn framing(f: &FramingShift, limits: &Limits) -> Check {
    let shift = f.distance_px();
    let [warn, fail] = limits.framing_px;
    let alike = f.ncc >= limits.framing_ncc;
    let verdict = match (alike, f.is_certain()) {
        (false, _) => Verdict::Fail,
        (true, false) => Verdict::Warn,
        (true, true) => Verdict::below(shift, warn, fail),
    };
    let value = format!("{:+.1}, {:+.1} px, correlation {:.2}", f.dx_px, f.dy_px, f.ncc);
    let advice = if alike && !f.is_certain() {
        "the picture has too little in it to tell where it lies: store a reference with the table in view"
    } else if !alike {
        "this is not the scene of the reference picture: are two cameras exchanged, or the light or table another?"
    } else {
        "the camera was moved: turn it back until the shift is gone, or store a new reference for a new dataset"
    };
    Check::new(Item::CameraFraming, verdict).value(value).advice(advice)
}

/// Judges a reading of the light meter at the table.
#[must_use]
pub fn lux(reading: Option<Lux>, limits: &Limits) -> Check {
    let item = Item::Lux;
    let Some(reading) = reading else {
        return Check::skipped(item, "no reading given");
    };
    let verdict = if limits.lux.contains(&reading) {
        Verdict::Pass
    } else if reading.is_finite() && reading.get() >= 0.0 {
        Verdict::Warn
    } else {
        Verdict::Fail
    };
    let (from, to) = (limits.lux.start().get(), limits.lux.end().get());
    Check::new(item, verdict)
        .value(format!("{reading}"))
        .limit(format!("{from} to {to} lx"))
        .advice("outside of the light that was measured in the lab: draw the curtains or switch a lamp on, or read again")
}
