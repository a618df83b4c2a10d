//! What can go wrong in an example program, and the exit code that it means.

use std::path::PathBuf;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything an example program may fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line asks for something that makes no sense.
    #[error("{0}")]
    Usage(String),

    /// Pre-flight found something that forbids to start.
    #[error("pre-flight refused: {0}")]
    Refused(String),

    /// The user pressed Ctrl-C (or the process got SIGTERM).
    #[error("interrupted: the running episode was dropped, {saved} episodes are saved")]
    Interrupted {
        /// Episodes that are durable.
        saved: u64,
    },

    /// A plan file does not say what a plan has to say.
    #[error("plan {origin}: {what}")]
    Plan {
        /// File name, or `built-in`.
        origin: String,
        /// What is wrong with it.
        what: String,
    },

    /// The arm cannot carry out a motion of the plan.
    #[error(
        "the arm cannot go to x {x_mm:.0} y {y_mm:.0} z {z_mm:.0} mm for {what}: move the plan's positions or home"
    )]
    Unreachable {
        /// What it was to do there.
        what: &'static str,
        /// Forward of the base.
        x_mm: f64,
        /// To its left.
        y_mm: f64,
        /// Above the table.
        z_mm: f64,
        /// Which joint or length forbids it.
        #[source]
        source: so101_hal::Error,
    },

    /// The robot, its bus or a camera.
    #[error(transparent)]
    Hal(#[from] so101_hal::Error),

    /// The dataset.
    #[error(transparent)]
    Dataset(#[from] so101_dataset::Error),

    /// The simulation.
    #[cfg(feature = "sim")]
    #[error(transparent)]
    Sim(#[from] so101_sim::Error),

    /// An episode sink's error.
    #[error("dataset")]
    Sink(#[source] so101_hal::BoxError),

    /// Reading or writing a file that is no part of a dataset.
    #[error("{what} {}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },

    /// A calibration file cannot be used.
    #[error("calibration {}", path.display())]
    Calibration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: so101_hal::BoxError,
    },

    /// A recorded episode cannot be played.
    #[error("episode {episode} cannot be replayed: {what}: {}", path.display())]
    Replay {
        /// Its number.
        episode: u64,
        /// Why.
        what: String,
        /// The dataset.
        path: PathBuf,
    },

    /// A picture file could not be written.
    #[error("picture {}", path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: image::ImageError,
    },
}

/// Exit codes that every example keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Ok = 0,
    /// The work failed, or a check found a violation.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Pre-flight refused to start.
    Refused = 3,
    /// Ctrl-C or SIGTERM.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Error {
    /// The exit code that this error means.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Plan { .. } | Self::Unreachable { .. } | Self::Calibration { .. } => {
                Exit::Usage
            }
            Self::Dataset(
                so101_dataset::Error::SpecMismatch { .. }
                | so101_dataset::Error::AlreadyExists { .. }
                | so101_dataset::Error::NotADataset { .. },
            ) => Exit::Usage,
            Self::Hal(
                so101_hal::Error::CalibrationNotFound { .. }
                | so101_hal::Error::CalibrationFile { .. }
                | so101_hal::Error::NoHome
                | so101_hal::Error::PortNotFound { .. },
            ) => Exit::Usage,
            Self::Refused(_)
            | Self::Dataset(so101_dataset::Error::Locked { .. })
            | Self::Hal(
                so101_hal::Error::PortDenied { .. }
                | so101_hal::Error::PortPermission { .. }
                | so101_hal::Error::PortHeld { .. }
                | so101_hal::Error::PortBusy { .. },
            ) => Exit::Refused,
            Self::Interrupted { .. } => Exit::Interrupted,
            _ => Exit::Failed,
        }
    }

    /// An episode sink's error by its own type, where that is known.
    #[must_use]
    pub fn sink(error: so101_hal::BoxError) -> Self {
        match error.downcast::<so101_dataset::Error>() {
            Ok(e) => Self::Dataset(*e),
            Err(e) => Self::Sink(e),
        }
    }

    /// This error and everything below it, on one line.
    #[must_use]
    pub fn one_line(&self) -> String {
        let mut text = self.to_string();
        let mut below = std::error::Error::source(self);
        while let Some(e) = below {
            let more = e.to_string();
            // A wrapper that quotes its source would say it twice.
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            below = e.source();
        }
        text.replace('\n', "; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_chain_is_one_line() {
        let io = std::io::Error::other("disk\non fire");
        let e = Error::Io { what: "write", path: "a/b.png".into(), source: io };
        assert_eq!(e.one_line(), "write a/b.png: disk; on fire");
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        let code = |e: Error| e.exit() as u8;
        assert_eq!(code(Error::Usage(String::new())), 2);
        assert_eq!(code(Error::Refused(String::new())), 3);
        assert_eq!(code(Error::Interrupted { saved: 0 }), 130);
        assert_eq!(code(Error::Sink("x".into())), 1);
    }
}
