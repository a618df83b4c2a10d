//! The differences of a replay, as text and as JSON.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use so101_hal::{Degrees, JOINTS, JointId, JointVector};

use super::run::Trace;
use super::units::Unit;
use crate::record::rigs::Scenery;

/// A first command further than this from the start, in the joint's unit: the joint has to catch up first.
const FAR: f64 = 5.0;

/// A joint that comes this close to its command has caught up.
const CAUGHT_UP: f64 = 2.0;

/// How far two curves of a joint are apart, in the joint's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Deviation {
    pub(super) rms: f64,
    /// The largest distance, and when it was in seconds.
    pub(super) max: f64,
    pub(super) max_at_s: f64,
}

/// One line of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JointReport {
    pub(super) joint: JointId,
    /// Action `i` less the position one period later, from the first row at which the joint has caught up.
    pub(super) commanded: Deviation,
    /// Rows before that: 0 where the first command is near the start, and where the joint never catches up.
    pub(super) rows_to_catch_up: usize,
    /// The same difference over all rows.
    pub(super) commanded_whole: Deviation,
    /// State `i` less the position at the same moment.
    pub(super) recorded: Deviation,
}

/// All that is told of a replay.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) path: PathBuf,
    pub(super) episode: u64,
    pub(super) task: String,
    pub(super) rig: String,
    pub(super) scene: Scenery,
    pub(super) unit: Unit,
    pub(super) joints: [JointReport; 6],
    pub(super) success: Option<bool>,
    pub(super) notes: Vec<String>,
    pub(super) trace: Trace,
    pub(super) png: PathBuf,
}

/// Both differences of every joint.
pub(super) fn compare(trace: &Trace) -> [JointReport; 6] {
    let after = trace.simulated.get(1..).unwrap_or(&[]);
    JOINTS.map(|joint| {
        let rows_to_catch_up = catch_up(trace, after, joint);
        JointReport {
            joint,
            commanded: deviation(&trace.commanded, after, joint, trace.fps, rows_to_catch_up),
            rows_to_catch_up,
            commanded_whole: deviation(&trace.commanded, after, joint, trace.fps, 0),
            recorded: deviation(&trace.recorded, &trace.simulated, joint, trace.fps, 0),
        }
    })
}

/// Rows that a joint needs to reach its command for the first time, when it starts far from it: no servo is there at
/// once, and what it does on the way says nothing about how it follows.
fn catch_up(trace: &Trace, after: &[JointVector<Degrees>], joint: JointId) -> usize {
    let apart =
        |(a, b): (&JointVector<Degrees>, &JointVector<Degrees>)| (value(a, joint) - value(b, joint)).abs();
    let starts_far =
        trace.commanded.first().zip(trace.simulated.first()).is_some_and(|ends| apart(ends) > FAR);
    let reached = || trace.commanded.iter().zip(after).position(|row| apart(row) <= CAUGHT_UP);
    if starts_far { reached().unwrap_or(0) } else { 0 }
}

/// The distance of two curves from row `from` on.
fn deviation(
    a: &[JointVector<Degrees>],
    b: &[JointVector<Degrees>],
    joint: JointId,
    fps: u32,
    from: usize,
) -> Deviation {
    let mut all = Deviation::default();
    let mut squares = 0.0;
    for (i, (a, b)) in a.iter().zip(b).enumerate().skip(from) {
        let apart = (value(a, joint) - value(b, joint)).abs();
        squares += apart * apart;
        if apart > all.max {
            (all.max, all.max_at_s) = (apart, i as f64 / f64::from(fps.max(1)));
        }
    }
    all.rms = (squares / a.len().min(b.len()).saturating_sub(from).max(1) as f64).sqrt();
    all
}

/// Degrees or percent of one joint.
pub(super) fn value(q: &JointVector<Degrees>, joint: JointId) -> f64 {
    q.body.get(joint.index()).map_or(q.gripper.0, |v| v.0)
}

/// Unit of a joint's figures.
pub(super) fn unit_name(joint: JointId) -> &'static str {
    if joint == JointId::Gripper { "%" } else { "deg" }
}

impl Report {
    fn seconds(&self) -> f64 {
        self.trace.commanded.len() as f64 / f64::from(self.trace.fps.max(1))
    }

    /// What the arm was among, in words.
    pub(super) fn surroundings(&self) -> &'static str {
        match self.scene {
            Scenery::Empty => "empty scene",
            Scenery::Task => "table and object",
        }
    }

    /// A note for every joint whose first command is far from where it starts: the arm has to catch up.
    fn late_starts(&self) -> Vec<String> {
        let ends = self.trace.commanded.first().zip(self.trace.simulated.first());
        let note = |j: &JointReport| {
            let apart = ends.map(|(a, b)| (value(a, j.joint) - value(b, j.joint)).abs())?;
            let (whole, unit) = (j.commanded_whole, unit_name(j.joint));
            if apart <= FAR {
                return None;
            }
            Some(if j.rows_to_catch_up == 0 && whole.max > CAUGHT_UP {
                format!(
                    "{} starts {apart:.1} {unit} from its first command and does not catch up with it",
                    j.joint
                )
            } else {
                format!(
                    "{} starts {apart:.1} {unit} from its first command and has caught up after {:.2} s, from where \
                     commanded - simulated counts; over all rows it is {:.2} {unit} RMS, {:.1} at most",
                    j.joint,
                    self.at_s(j.rows_to_catch_up),
                    whole.rms,
                    whole.max
                )
            })
        };
        self.joints.iter().filter_map(note).collect()
    }

    fn at_s(&self, row: usize) -> f64 {
        row as f64 / f64::from(self.trace.fps.max(1))
    }

    /// A heading and a table of the joints.
    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "{key:<12} {value}");
        };
        line("replay", &format!("{}, episode {}", self.path.display(), self.episode));
        let (rows, fps) = (self.trace.commanded.len(), self.trace.fps);
        line("episode", &format!("{rows} rows, {:.1} s at {fps} Hz: {}", self.seconds(), self.task));
        line("rig", &format!("{}, {}", self.rig, self.surroundings()));
        match &self.unit {
            Unit::Degrees(why) => line("unit", &format!("degrees ({why})")),
            Unit::Normalized { file, .. } => {
                let kind = if self.unit.is_assumed() { "assumed calibration" } else { "calibration" };
                line("unit", &format!("-100..100 in degrees by {kind} {}", file.display()));
            }
        }
        if let Some(success) = self.success {
            line("success", if success { "yes" } else { "no" });
        }
        self.notes.iter().chain(&self.late_starts()).for_each(|note| line("note", note));
        self.table(&mut out);
        let _ = writeln!(out, "\n{:<12} {}", "plot", self.png.display());
        out
    }

    fn table(&self, out: &mut String) {
        let _ = writeln!(out, "\n{:<17}  {:<28}  recorded - simulated", "", "commanded - simulated");
        let columns = "     RMS       max   at s     ";
        let _ = writeln!(out, "{:<17}  {columns}{}", "joint", columns.trim_end());
        for j in &self.joints {
            let name = format!("{} {}", j.joint, unit_name(j.joint));
            let [a, b] = [j.commanded, j.recorded]
                .map(|d| format!("{:>8.2}  {:>8.2}  {:>5.1}", d.rms, d.max, d.max_at_s));
            let _ = writeln!(out, "{name:<17}  {a}     {b}");
        }
    }

    /// The same as one object.
    pub(super) fn to_json(&self) -> Value {
        let figures = |d: Deviation| json!({"rms": d.rms, "max": d.max, "max_at_s": d.max_at_s});
        let joints: Vec<Value> = self
            .joints
            .iter()
            .map(|j| {
                json!({
                    "joint": j.joint.name(),
                    "unit": unit_name(j.joint),
                    "commanded_minus_simulated": figures(j.commanded),
                    "caught_up_after_s": self.at_s(j.rows_to_catch_up),
                    "commanded_minus_simulated_all_rows": figures(j.commanded_whole),
                    "recorded_minus_simulated": figures(j.recorded),
                })
            })
            .collect();
        json!({
            "path": self.path,
            "episode": self.episode,
            "task": self.task,
            "rows": self.trace.commanded.len(),
            "fps": self.trace.fps,
            "seconds": self.seconds(),
            "rig": self.rig,
            "scene": match self.scene { Scenery::Empty => "empty", Scenery::Task => "task" },
            "recorded_unit": match self.unit { Unit::Degrees(_) => "degrees", Unit::Normalized { .. } => "normalized" },
            "calibration": self.unit.file(),
            "calibration_assumed": self.unit.is_assumed(),
            "success": self.success,
            "joints": joints,
            "notes": self.notes.iter().chain(&self.late_starts()).collect::<Vec<_>>(),
            "png": self.png,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use so101_hal::Calibration;

    /// An arm that follows perfectly, one period late: a slow wave in every joint.
    fn perfect(rows: usize) -> Trace {
        let wave = |i: usize| {
            JointVector::<Degrees>::from_row(
                [0, 1, 2, 3, 4, 5].map(|j| 20.0 + 15.0 * (0.1 * i as f64 + f64::from(j)).sin()),
            )
        };
        let simulated: Vec<_> = (0..=rows).map(wave).collect();
        Trace { fps: 30, commanded: simulated[1..].to_vec(), recorded: simulated[..rows].to_vec(), simulated }
    }

    pub(in crate::replay) fn report(trace: Trace, unit: Unit) -> Report {
        Report {
            path: "outputs/set".into(),
            episode: 3,
            task: "wave".into(),
            rig: "emulated".into(),
            scene: Scenery::Empty,
            unit,
            joints: compare(&trace),
            success: None,
            notes: vec!["a note".into()],
            trace,
            png: "replay-set-episode-3.png".into(),
        }
    }

    pub(in crate::replay) fn wave() -> Report {
        report(perfect(90), Unit::Degrees("the set says so"))
    }

    #[test]
    fn an_action_is_compared_one_period_later_and_a_state_at_once() {
        for j in compare(&perfect(90)) {
            assert_eq!((j.commanded, j.recorded), (Deviation::default(), Deviation::default()), "{j:?}");
        }
    }

    #[test]
    fn ten_degrees_planted_on_one_recorded_joint_show_in_that_joint_only() {
        for joint in JOINTS {
            let mut trace = perfect(90);
            for q in &mut trace.recorded {
                let mut row = q.to_row();
                row[joint.index()] += 10.0;
                *q = JointVector::<Degrees>::from_row(row);
            }
            for j in compare(&trace) {
                assert_eq!(j.commanded, Deviation::default(), "{j:?}");
                let planted = if j.joint == joint { 10.0 } else { 0.0 };
                assert!((j.recorded.rms - planted).abs() < 1e-9, "{joint} planted, seen {j:?}");
                assert!((j.recorded.max - planted).abs() < 1e-9, "{joint} planted, seen {j:?}");
            }
        }
    }

    #[test]
    fn rms_and_maximum_are_those_of_the_definition() {
        let mut trace = perfect(4);
        for (q, apart) in trace.commanded.iter_mut().zip([1.0, -3.0, 0.0, 2.0]) {
            q.body[2].0 += apart;
        }
        let d = compare(&trace)[2].commanded;
        assert!((d.rms - 3.5_f64.sqrt()).abs() < 1e-12 && (d.max - 3.0).abs() < 1e-12, "{d:?}");
        assert!((d.max_at_s - 1.0 / 30.0).abs() < 1e-12);
    }

    #[test]
    fn catching_up_at_the_start_is_told_apart_from_not_following() {
        let mut trace = perfect(90);
        for (simulated, late) in trace.simulated.iter_mut().zip([40.0, 30.0, 20.0, 10.0]) {
            simulated.body[3].0 -= late;
        }
        let late = report(trace.clone(), Unit::Degrees("the set says so"));
        let wrist = &late.joints[3];
        assert!(wrist.commanded.rms < 1e-9 && wrist.commanded_whole.rms > 3.0, "{wrist:?}");
        // Positions 1 to 3 are 30, 20 and 10 degrees late: row 3 is the first that is not.
        assert_eq!(wrist.rows_to_catch_up, 3);
        let text = late.to_text();
        assert_eq!(text.matches("from its first command").count(), 1, "{text}");
        assert!(text.contains("note         wrist_flex starts") && text.contains("after 0.10 s"), "{text}");
        // What goes wrong later counts, whatever was before.
        trace.simulated[50].body[3].0 += 20.0;
        let again = compare(&trace)[3];
        assert!(again.rows_to_catch_up == 3 && (again.commanded.max - 20.0).abs() < 1e-9, "{again:?}");
        // An arm that never comes near is not excused.
        trace.simulated.iter_mut().for_each(|q| q.body[3].0 -= 40.0);
        let never = report(trace, Unit::Degrees("the set says so"));
        assert_eq!(never.joints[3].commanded, never.joints[3].commanded_whole);
        assert!(never.to_text().contains("does not catch up"), "{}", never.to_text());
    }

    #[test]
    fn an_assumed_calibration_marks_both_forms() {
        for (file, marked) in [("x.assumed_calibration.json", true), ("lab.json", false)] {
            let unit = Unit::Normalized { calibration: Box::new(Calibration::model()), file: file.into() };
            let report = report(perfect(9), unit);
            assert_eq!(report.to_text().contains("assumed calibration"), marked, "{}", report.to_text());
            assert_eq!(report.to_json()["calibration_assumed"], marked);
        }
    }
}
