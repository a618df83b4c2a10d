//! Goals and positions while they go, over themselves on a terminal.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use so101_hal::JOINTS;

use super::session::Seen;
use crate::cli::Verbosity;

/// From one picture to the next.
const EVERY: Duration = Duration::from_millis(200);

pub(super) struct LiveTable {
    live: bool,
    drawn: usize,
    last: Option<Duration>,
    actions: u32,
}

impl LiveTable {
    pub(super) fn new(verbosity: Verbosity) -> Self {
        Self { live: verbosity.bars(), drawn: 0, last: None, actions: 0 }
    }

    pub(super) fn show(&mut self, seen: &Seen) {
        self.actions += 1;
        let since = self.last.map(|last| seen.since_start.saturating_sub(last));
        if !self.live || since.is_some_and(|s| s < EVERY) {
            return;
        }
        let rate = since.map_or(0.0, |s| f64::from(self.actions) / s.as_secs_f64());
        (self.actions, self.last) = (0, Some(seen.since_start));
        let text = text(seen, rate);
        let mut err = std::io::stderr().lock();
        // A closed stderr is nobody's problem.
        if self.drawn > 0 {
            let _ = write!(err, "\x1b[{}A\x1b[J", self.drawn);
        }
        let _ = err.write_all(text.as_bytes());
        self.drawn = text.lines().count();
    }
}

pub(super) fn text(seen: &Seen, rate_hz: f64) -> String {
    let mut out = String::from("joint            goal       at   temp  current\n");
    let rows = seen.goal.to_row().into_iter().zip(seen.snapshot.joints.to_row()).zip(&seen.snapshot.states);
    for (joint, ((goal, at), state)) in JOINTS.into_iter().zip(rows) {
        let t = &state.telemetry;
        let alarms = if state.alarms.is_empty() { String::new() } else { format!("  {}", state.alarms) };
        let _ = writeln!(
            out,
            "{:<14} {goal:>6.1}   {at:>6.1}  {:>3} C  {:>4.0} mA{alarms}",
            joint.name(),
            t.temperature_c,
            t.current_ma(),
        );
    }
    let _ = writeln!(out, "{rate_hz:.0} Hz, {:?}", seen.snapshot.state);
    out
}
