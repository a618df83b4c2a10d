//! The test hook that kills the process inside of a commit.
//!
//! `SO101_CRASH_AT=commit:K:STEP` aborts the process when its K-th commit (from 1) has done STEP, one of
//! [`Step::NAMES`]. `SO101_SWAP=journal` makes commits take the route of file systems that cannot swap folders.
//! Both exist for the tests of crash safety, are read once, and cost a comparison otherwise.

use std::sync::OnceLock;

/// The steps of a commit at which a crash is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next generation holds links to everything that stays.
    Links,
    /// It holds the new files too.
    Files,
    /// They are durable.
    Fsync,
    /// All is ready for the swap.
    ExchangeBefore,
    /// The journal is durable; from here on the commit counts. Journal route only.
    Journal,
    /// The old generation has given up the name, the new one has not taken it. Journal route only.
    JournalBetween,
    /// Swapped and durable.
    ExchangeAfter,
    /// The previous generation is removed, its mark is not.
    Cleanup,
}

impl Step {
    /// Each step with its name in the hook.
    pub(crate) const NAMES: [(Self, &'static str); 8] = [
        (Self::Links, "links"),
        (Self::Files, "files"),
        (Self::Fsync, "fsync"),
        (Self::ExchangeBefore, "exchange-before"),
        (Self::Journal, "journal"),
        (Self::JournalBetween, "journal-between"),
        (Self::ExchangeAfter, "exchange-after"),
        (Self::Cleanup, "cleanup"),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(s, _)| *s == self).map_or("", |(_, n)| n)
    }
}

/// Aborts the process when the hook asks for it here.
pub(super) fn point(commit: u64, step: Step) {
    static AT: OnceLock<Option<(u64, String)>> = OnceLock::new();
    let at = AT.get_or_init(|| parse(&std::env::var("SO101_CRASH_AT").ok()?));
    if at.as_ref().is_some_and(|(k, name)| *k == commit && name == step.name()) {
        std::process::abort();
    }
}

/// Whether the hook forces the journal.
pub(super) fn journal_forced() -> bool {
    static FORCED: OnceLock<bool> = OnceLock::new();
    *FORCED.get_or_init(|| std::env::var("SO101_SWAP").is_ok_and(|v| v == "journal"))
}

fn parse(text: &str) -> Option<(u64, String)> {
    let (commit, step) = text.strip_prefix("commit:")?.split_once(':')?;
    Some((commit.parse().ok()?, step.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_reads_a_commit_and_a_step_and_ignores_anything_else() {
        assert_eq!(parse("commit:2:exchange-before"), Some((2, "exchange-before".to_owned())));
        for other in ["", "commit", "commit:x:links", "frame:2:3"] {
            assert_eq!(parse(other), None, "{other:?}");
        }
        assert!(Step::NAMES.iter().all(|(s, n)| s.name() == *n));
    }
}
