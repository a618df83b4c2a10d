//! A diagnosis as text.

use core::fmt;
use std::string::ToString as _;
use std::vec::Vec;

use super::{Diagnosis, Stall, StallCause};

/// Stages that are told of a stall.
const MAX_STAGES: usize = 3;

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            None if self.seconds == 0 => writeln!(f, "the log has no seconds of a loop")?,
            None => writeln!(f, "no stall in {} seconds", self.seconds)?,
            Some(cause) => {
                let slow = self.seconds - self.healthy_seconds;
                writeln!(f, "cause: {cause} ({slow} of {} seconds were slow)", self.seconds)?;
            }
        }
        for (i, stall) in self.stalls.iter().enumerate() {
            writeln!(f)?;
            write_stall(f, i + 1, stall)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

fn write_stall(f: &mut fmt::Formatter<'_>, number: usize, stall: &Stall) -> fmt::Result {
    write!(f, "stall {number}: {:.1} to {:.1} s", stall.from_s, stall.to_s)?;
    if stall.session > 1 {
        write!(f, " of session {}", stall.session)?;
    }
    match stall.episodes.as_slice() {
        [] => {}
        [one] => write!(f, ", episode {one}")?,
        several => {
            let names: Vec<_> = several.iter().map(u64::to_string).collect();
            write!(f, ", episodes {}", names.join(" "))?;
        }
    }
    write!(f, ", {} overruns", stall.overruns)?;
    if stall.missed_frames > 0 {
        write!(f, ", {} pictures stale or lost", stall.missed_frames)?;
    }
    writeln!(f)?;
    for growth in stall.stages.iter().take(MAX_STAGES) {
        write!(
            f,
            "  stage {}: p50 {:.1} -> {:.1} ms, p99 {:.1} -> {:.1} ms",
            growth.stage, growth.healthy_p50_ms, growth.p50_ms, growth.healthy_p99_ms, growth.p99_ms
        )?;
        match growth.share {
            Some(share) => writeln!(f, ", {:.0} % of what the loop gained", share * 100.0)?,
            None => writeln!(f, ", on a thread of its own")?,
        }
    }
    for cause in &stall.causes {
        if cause.cause == StallCause::Unknown {
            writeln!(f, "  cause not in the log")?;
        } else {
            writeln!(f, "  cause {}, confidence {:.0} %", cause.cause, cause.confidence * 100.0)?;
        }
        for evidence in &cause.evidence {
            writeln!(f, "    {evidence}")?;
        }
        writeln!(f, "    to do: {}", cause.advice)?;
    }
    Ok(())
}
