//! The sweep while it goes: lowest, present and highest position of each joint.

use std::fmt::Write as _;
use std::io::Write as _;

use so101_hal::JOINTS;
use so101_hal::calibration::{JointSweep, model_range, shaft_degrees};

use crate::cli::Verbosity;

/// Samples from one picture to the next: ten a second.
const EVERY: u32 = 5;

/// Drawn over itself on a terminal, once at the end elsewhere.
pub(super) struct LiveTable {
    chatty: bool,
    live: bool,
    samples: u32,
    drawn: usize,
}

impl LiveTable {
    pub(super) fn new(verbosity: Verbosity) -> Self {
        Self { chatty: verbosity.chatty(), live: verbosity.bars(), samples: 0, drawn: 0 }
    }

    pub(super) fn show(&mut self, sweeps: &[JointSweep; 6]) {
        if self.live && self.samples.is_multiple_of(EVERY) {
            self.draw(sweeps);
        }
        self.samples += 1;
    }

    pub(super) fn last(&mut self, sweeps: &[JointSweep; 6]) {
        if self.chatty {
            self.draw(sweeps);
        }
    }

    fn draw(&mut self, sweeps: &[JointSweep; 6]) {
        let text = text(sweeps);
        let mut err = std::io::stderr().lock();
        // A closed stderr is nobody's problem.
        if self.live && self.drawn > 0 {
            let _ = write!(err, "\x1b[{}A\x1b[J", self.drawn);
        }
        let _ = err.write_all(text.as_bytes());
        self.drawn = text.lines().count();
    }
}

/// Positions in encoder steps that do not wrap, and how much of the model's range that is.
pub(super) fn text(sweeps: &[JointSweep; 6]) -> String {
    let mut out = String::from("joint            min    now    max    swept  of model\n");
    for (joint, s) in JOINTS.into_iter().zip(sweeps) {
        let swept = shaft_degrees(s.swept());
        let share = 100.0 * swept.0 / model_range(joint).0;
        let trouble = match (s.missed(), s.jumps()) {
            (0, 0) => "",
            (0, _) => "  too fast",
            _ => "  no answer",
        };
        let _ = writeln!(
            out,
            "{:<14} {:>5}  {:>5}  {:>5}  {:>3.0} deg  {share:>5.0} %{trouble}",
            joint.name(),
            s.min().0,
            s.now().0,
            s.max().0,
            swept.0,
        );
    }
    out
}
