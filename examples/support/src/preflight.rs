//! What is checked before the first frame: printed as a table, stored with the dataset.
//!
//! The items and their limits are [`so101_hal::preflight`]'s; here are those that need a dataset or an encoder
//! ([`recorder`]), the groups of a whole rig in one call ([`rig`]), and the example program ([`program`]).

mod eyes;
pub mod program;
pub mod recorder;
pub mod rig;
#[cfg(test)]
mod tests;

use std::time::Duration;

use so101_hal::camera::quality::Pace;
use so101_hal::preflight::cameras::{CameraFacts, lux};
use so101_hal::preflight::{Item, Limits};
use so101_hal::{Clock, Frame, Lux, Observation, Robot};

pub use recorder::{bytes_per_frame, dataset_features, encoder, encoder_build, free_disk, write_speed};
pub use so101_hal::preflight::{Check, Origin, Report, Verdict};

use crate::error::{Error, Result};

/// All checks of a session.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    report: Report,
}

impl Preflight {
    /// Adds checks.
    pub fn extend(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.report.extend(checks);
    }

    /// All of them.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        self.report.checks()
    }

    /// The report of the hardware layer.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        self.report.table()
    }

    /// What is stored with the dataset: facts of the host without their values, since same seed means same bytes.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!(self.report.stored())
    }

    /// Everything, figures of the host too: for somebody who reads it here and now.
    #[must_use]
    pub fn full_json(&self) -> serde_json::Value {
        serde_json::json!(self.report)
    }

    /// The host's facts, for the host's log.
    #[must_use]
    pub fn host_json(&self) -> serde_json::Value {
        serde_json::json!(self.report.of_host().collect::<Vec<_>>())
    }

    /// Nothing failed.
    ///
    /// # Errors
    /// [`Error::Refused`] naming every failed check and what to do about it.
    pub fn require(&self) -> Result<()> {
        let failed: Vec<String> = self.report.failed().map(ToString::to_string).collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::Refused(failed.join("; "))) }
    }
}

/// Looks through the cameras of an emulated or simulated robot: one picture each, of the declared size, and the next
/// one a period later. Real cameras are looked at by [`rig::check`].
///
/// # Errors
/// When the robot cannot be observed at all.
pub fn cameras(robot: &mut dyn Robot, clock: &dyn Clock, fps: u32) -> Result<(Vec<Check>, Vec<Frame>)> {
    let period = Duration::from_secs(1) / fps.max(1);
    let first = robot.observe()?;
    clock.sleep_until(first.at + period);
    let second = robot.observe()?;
    let mut checks = Vec::new();
    let mut frames = Vec::new();
    let find = |seen: &Observation, name: &str| {
        seen.frames.iter().find(|f| &*f.camera == name).map(|f| f.frame.clone())
    };
    for spec in &robot.description().cameras {
        let (before, after) = (find(&first, &spec.name), find(&second, &spec.name));
        let mut facts = CameraFacts::new(&spec.name);
        facts.size = Some((after.as_ref().map(Frame::size), spec.size));
        if let (Some(before), Some(after)) = (&before, &after) {
            let stamps = [(before.sequence, before.captured), (after.sequence, after.captured)];
            facts.timing = Some((Pace::of(&stamps), fps));
        }
        // A drawn camera has no device, no controls and no reference: these items are not told one by one.
        let judged = so101_hal::preflight::cameras(&facts, &Limits::default());
        checks.extend(judged.into_iter().filter(|c| c.verdict != Verdict::Skip));
        frames.extend(after);
    }
    Ok((checks, frames))
}

/// The reading of the light meter, or that there is none.
#[must_use]
pub fn light(reading: Option<Lux>) -> Check {
    lux(reading, &Limits::default())
}

/// Whether a check is about a part of the computer or the recording program rather than the arm.
#[must_use]
pub fn is_about_the_arm(item: Item) -> bool {
    use so101_hal::preflight::Group::{Bus, Pose, Servos};
    matches!(item.group(), Servos | Pose | Bus)
}
