//! Drives the arm with the recorded actions.

use so101_dataset::sidecar::table_key;
use so101_dataset::{Dataset, EpisodeEntry, Recording};
use so101_hal::kinematics::{LIMITS, Limits};
use so101_hal::{Action, Clock as _, Degrees, JOINTS, JointId, JointVector, Radians};

use super::units::Recorded;
use crate::error::Result;
use crate::plan::{EpisodeSetup, Jitter, Plan};
use crate::record::attempt_seed;
use crate::record::episode::period;
use crate::record::rigs::Rig;

/// Excess over a joint's limit, in its unit, that is not worth a note: the step of an encoder.
const NOTEWORTHY: f64 = 0.1;

/// What was commanded and recorded, and where the arm was: degrees, gripper percent.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// Control periods a second.
    pub(super) fps: u32,
    /// Recorded actions.
    pub(super) commanded: Vec<JointVector<Degrees>>,
    /// Recorded states, as many.
    pub(super) recorded: Vec<JointVector<Degrees>>,
    /// Positions of the playing arm: one more, the last one a period after the last action.
    pub(super) simulated: Vec<JointVector<Degrees>>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Played {
    pub(super) trace: Trace,
    /// The judgement of a rig that knows.
    pub(super) success: Option<bool>,
    /// What was not as recorded.
    pub(super) notes: Vec<String>,
}

/// The object's place, and why it is there.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) setup: EpisodeSetup,
    /// Whether the episode is one of the plan, which the plan's predicate can judge.
    pub(super) planned: bool,
    pub(super) note: String,
}

/// Plays an episode from its first recorded state.
///
/// # Errors
/// Errors of the rig.
pub(super) fn play(
    rig: &mut dyn Rig,
    recorded: &Recorded,
    placed: Option<&Placed>,
    fps: u32,
) -> Result<Played> {
    let first = recorded.states.first().copied().unwrap_or_default();
    let (start, mut notes) = clamped_start(&first);
    notes.extend(beyond_limits(&recorded.actions));
    notes.extend(placed.map(|p| p.note.clone()));
    rig.start_at(&start, placed.map(|p| &p.setup))?;
    let clock = rig.clock();
    let began = clock.now();
    let mut simulated = Vec::with_capacity(recorded.actions.len() + 1);
    for (joints, i) in recorded.actions.iter().zip(1..) {
        simulated.push(rig.observe()?.joints);
        rig.act(&Action { joints: *joints })?;
        clock.sleep_until(began + period(i, fps));
    }
    simulated.push(rig.observe()?.joints);
    let success = match placed {
        Some(Placed { planned: true, .. }) => rig.success()?,
        _ => None,
    };
    let (commanded, recorded) = (recorded.actions.clone(), recorded.states.clone());
    Ok(Played { trace: Trace { fps, commanded, recorded, simulated }, success, notes })
}

/// The range of a joint of the model, in degrees or percent.
fn range(joint: JointId) -> [f64; 2] {
    let degrees = |l: &Limits| [l.lower, l.upper].map(|v: Radians| Degrees::from(v).0);
    LIMITS.get(joint.index()).map_or([0.0, 100.0], degrees)
}

fn unit(joint: JointId) -> &'static str {
    if joint == JointId::Gripper { "%" } else { "deg" }
}

/// The state within the model's limits, and a note for every joint that was not.
fn clamped_start(first: &JointVector<Degrees>) -> (JointVector<Degrees>, Vec<String>) {
    let mut row = first.to_row();
    let mut notes = Vec::new();
    for (value, joint) in row.iter_mut().zip(JOINTS) {
        let [low, high] = range(joint);
        let inside = value.clamp(low, high);
        if (*value - inside).abs() > NOTEWORTHY {
            let unit = unit(joint);
            notes.push(format!(
                "{joint} is recorded at {value:.1} {unit} in the first row, outside of the model's {low:.1} to \
                 {high:.1}: it starts at {inside:.1}"
            ));
        }
        *value = inside;
    }
    (JointVector::<Degrees>::from_row(row), notes)
}

/// A note for every joint that is sent where the model cannot go.
fn beyond_limits(actions: &[JointVector<Degrees>]) -> Vec<String> {
    let note = |joint: JointId| {
        let [low, high] = range(joint);
        let excess = actions.iter().map(|a| {
            let value = a.to_row().get(joint.index()).copied().unwrap_or_default();
            (low - value).max(value - high)
        });
        let beyond = excess.filter(|e| *e > NOTEWORTHY);
        let (count, most) = beyond.fold((0_usize, 0.0_f64), |(n, most), e| (n + 1, most.max(e)));
        (count > 0).then(|| {
            format!(
                "{joint} is commanded beyond the model's {low:.1} to {high:.1} {} in {count} of {} rows, by {most:.1} at \
                 most: the rig clamps it",
                unit(joint),
                actions.len()
            )
        })
    };
    JOINTS.into_iter().filter_map(note).collect()
}

/// The object where the episode had it, if it was recorded by this plan, else on the plan's first mark. Selects the
/// object in the plan.
///
/// # Errors
/// Errors of the dataset.
pub(super) fn place_object(plan: &mut Plan, set: &Dataset, episode: u64) -> Result<Placed> {
    if let Some(sidecar) = set.sidecar()? {
        let entry = sidecar.find(episode, &table_key(&set.rows(episode)?));
        if let Some((entry, seed)) = entry.and_then(|e| Some((e, e.seed?)))
            && entry.task == plan.task()
            && entry.object.as_ref().is_some_and(|name| plan.select_object(name).is_ok())
            && let Ok(index) = u32::try_from(entry.episode)
            && let Some(jitter) = recorded_jitter(sidecar.recording(), plan)
            && let Ok(setup) = plan.episode(attempt_seed(seed, attempt(entry)), index, jitter)
        {
            let note =
                format!("{} lies where the plan puts it for seed {seed}, episode {index}", setup.object.name);
            return Ok(Placed { setup, planned: true, note });
        }
    }
    let setup = plan.episode(0, 0, Jitter::Off)?;
    let note = format!(
        "the episode is not known to be the plan's: {} lies on the plan's first mark, perhaps not where it was",
        setup.object.name
    );
    Ok(Placed { setup, planned: false, note })
}

/// How the objects of this set were placed, if by this plan.
fn recorded_jitter(recording: &Recording, plan: &Plan) -> Option<Jitter> {
    let fixed = |key: &str| recording.session.fixed.get(key)?.as_str();
    let same_plan = fixed("plan") == Some(plan.fingerprint());
    let jitter = [Jitter::On, Jitter::Off].into_iter().find(|j| fixed("jitter") == Some(j.name()));
    jitter.filter(|_| same_plan)
}

/// Which attempt the episode is, from 0: the recorder notes later ones, whose object lies elsewhere.
fn attempt(entry: &EpisodeEntry) -> u32 {
    let note = entry.note.as_deref().and_then(|n| n.strip_prefix("attempt "));
    note.and_then(|n| n.parse::<u32>().ok()).map_or(0, |n| n.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_of_a_later_attempt_has_its_object_where_that_attempt_drew_it() {
        for (note, want) in [(None, 0), (Some("attempt 2"), 1), (Some("attempt 3"), 2), (Some("a remark"), 0)]
        {
            let line = serde_json::json!({
                "episode": 0, "key": "", "length": 1, "task": "", "lux": null, "object": null, "seed": 0,
                "success": true, "note": note, "record": "",
            });
            let entry: EpisodeEntry = serde_json::from_value(line).unwrap();
            assert_eq!(attempt(&entry), want, "{note:?}");
        }
    }

    #[test]
    fn a_start_outside_of_the_limits_is_clamped_with_a_note_a_joint() {
        let (inside, none) =
            clamped_start(&JointVector::<Degrees>::from_row([0.0, 99.9, 0.0, 0.0, -150.0, 0.0]));
        assert_eq!((inside.to_row(), none.len()), ([0.0, 99.9, 0.0, 0.0, -150.0, 0.0], 0));
        let (start, notes) =
            clamped_start(&JointVector::<Degrees>::from_row([0.0, -190.0, 97.0, 0.0, 0.0, 104.0]));
        let row = start.to_row();
        assert!((row[1] + 100.0).abs() < 0.01 && (row[2] - 96.83).abs() < 0.01 && row[5] == 100.0, "{row:?}");
        // 0.17 deg of the elbow are worth a note, too.
        let named =
            ["shoulder_lift is recorded at -190.0 deg", "elbow_flex", "gripper is recorded at 104.0 %"];
        assert_eq!(notes.len(), named.len(), "{notes:?}");
        assert!(notes.iter().zip(named).all(|(note, start)| note.starts_with(start)), "{notes:?}");
    }

    #[test]
    fn commands_beyond_the_limits_are_counted_with_the_worst() {
        let rows = [[0.0; 6], [0.0, 0.0, 100.0, 0.0, 0.0, 0.0], [0.0, 0.0, -99.0, 0.0, 0.0, 0.0]];
        let notes = beyond_limits(&rows.map(JointVector::<Degrees>::from_row));
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].contains("elbow_flex") && notes[0].contains("2 of 3 rows, by 3.2 at most"),
            "{notes:?}"
        );
    }
}
