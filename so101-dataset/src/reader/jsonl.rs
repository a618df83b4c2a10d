//! The metadata of v2.0 and v2.1: `tasks.jsonl`, `episodes.jsonl`, `episodes_stats.jsonl`, one JSON object a line.
//!
//! In these layouts an episode is a parquet file and an mp4 a camera, so that places follow from its number.

use std::path::Path;

use serde_json::{Map, Value};

use super::episodes::{EpisodeRow, MAX_TASKS, VideoSpan};
use super::files::read_capped;
use super::stats::Stats;
use crate::error::{Error, Result};
use crate::info::{Info, whole_number};

/// The task texts of v2.x.
pub(crate) const TASKS_JSONL: &str = "meta/tasks.jsonl";
/// The episodes of v2.x.
pub(crate) const EPISODES_JSONL: &str = "meta/episodes.jsonl";
/// The statistics of each episode of v2.1.
pub(crate) const EPISODES_STATS_JSONL: &str = "meta/episodes_stats.jsonl";

const MAX_BYTES: u64 = 1 << 30;
/// The statistics of one episode take some kilobytes.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The rows of `tasks.jsonl` in its order.
///
/// # Errors
/// [`Error::MissingFile`] while info.json counts tasks, and what is wrong with a line.
pub(crate) fn tasks(root: &Path, info: &Info) -> Result<Vec<(i64, String)>> {
    let path = root.join(TASKS_JSONL);
    if !path.exists() {
        return match info.total_tasks {
            0 => Ok(Vec::new()),
            _ => Err(Error::MissingFile { what: "the table of tasks".into(), path }),
        };
    }
    let mut rows = Vec::new();
    lines(&path, info.total_tasks, "total_tasks in info.json", |at, map| {
        let text = map.get("task").and_then(Value::as_str);
        let text = text.ok_or_else(|| Error::key(at.key("task"), "is missing or no text", &path))?;
        rows.push((i64::try_from(at.whole(map, "task_index", &path)?).unwrap_or(i64::MAX), text.to_owned()));
        Ok(())
    })?;
    // The file grows as tasks show up; readers look them up by number.
    rows.sort_by_key(|(index, _)| *index);
    Ok(rows)
}

/// The rows of `episodes.jsonl`, with the places that follow from their numbers.
///
/// # Errors
/// [`Error::MissingFile`] while info.json counts episodes, and what is wrong with a line.
pub(crate) fn episodes(root: &Path, info: &Info) -> Result<Vec<EpisodeRow>> {
    let path = root.join(EPISODES_JSONL);
    if !path.exists() {
        return match info.total_episodes {
            0 => Ok(Vec::new()),
            _ => Err(Error::MissingFile { what: "the table of episodes".into(), path }),
        };
    }
    let mut rows: Vec<EpisodeRow> = Vec::new();
    lines(&path, info.total_episodes, "total_episodes in info.json", |at, map| {
        let episode = at.whole(map, "episode_index", &path)?;
        let length = at.whole(map, "length", &path)?;
        let tasks = match map.get("tasks") {
            Some(Value::Array(list)) if list.len() <= MAX_TASKS => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(Value::String(text)) => vec![text.clone()],
            None | Some(Value::Null) => Vec::new(),
            _ => return Err(Error::key(at.key("tasks"), "is no list of texts", &path)),
        };
        let chunk = episode / info.chunks_size.max(1);
        let to_s = length as f64 / f64::from(info.fps.max(1));
        let span = |key: &str| VideoSpan { key: key.to_owned(), chunk, file: episode, from_s: 0.0, to_s };
        let videos = info.features.videos().map(|(key, _)| span(key)).collect();
        rows.push(EpisodeRow {
            episode,
            tasks,
            length,
            data_chunk: chunk,
            data_file: episode,
            from_index: 0,
            to_index: 0,
            videos,
        });
        Ok(())
    })?;
    rows.sort_by_key(|row| row.episode);
    let mut from = 0_u64;
    for row in &mut rows {
        (row.from_index, row.to_index) = (from, from.saturating_add(row.length));
        from = row.to_index;
    }
    Ok(rows)
}

/// The statistics of each episode of v2.1, in order; empty ones in v2.0, which has none.
///
/// # Errors
/// What is wrong with a line.
pub(crate) fn episode_stats(root: &Path, episodes: usize) -> Result<Vec<Stats>> {
    let path = root.join(EPISODES_STATS_JSONL);
    let mut all = vec![Stats::default(); episodes];
    if !path.exists() {
        return Ok(all);
    }
    lines(&path, episodes as u64, "the table of episodes", |at, map| {
        let episode = at.whole(map, "episode_index", &path)?;
        let Some(Value::Object(features)) = map.get("stats") else {
            return Err(Error::key(at.key("stats"), "is missing or no object", &path));
        };
        let stats = Stats::from_map(features, &at.key("stats"), &path)?;
        if let Some(slot) = usize::try_from(episode).ok().and_then(|i| all.get_mut(i)) {
            *slot = stats;
        }
        Ok(())
    })?;
    Ok(all)
}

/// The line that is being read, for messages.
#[derive(Clone, Copy)]
struct At(usize);

impl At {
    fn key(self, key: &str) -> String {
        format!("line {}: {key}", self.0)
    }

    fn whole(self, map: &Map<String, Value>, key: &str, path: &Path) -> Result<u64> {
        map.get(key)
            .and_then(whole_number)
            .ok_or_else(|| Error::key(self.key(key), "is missing or no whole number from 0 on", path))
    }
}

fn lines(
    path: &Path,
    expected: u64,
    against: &'static str,
    mut each: impl FnMut(At, &Map<String, Value>) -> Result<()>,
) -> Result<()> {
    let bytes = read_capped(path, "a table of JSON lines", MAX_BYTES)?;
    let mut found = 0_u64;
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // Parsed, a number takes some thirty bytes.
        if line.len() as u64 > MAX_LINE_BYTES {
            let (what, bytes) = ("a line of JSON", line.len() as u64);
            return Err(Error::TooLarge { what, bytes, limit: MAX_LINE_BYTES, path: path.into() });
        }
        found += 1;
        // Bounds the memory by what info.json says.
        if found > expected.saturating_mul(2) + 1000 {
            let what = "the number of lines".into();
            return Err(Error::Mismatch { what, found, against, expected, path: path.into() });
        }
        let at = At(number + 1);
        match serde_json::from_slice(line) {
            Ok(Value::Object(map)) => each(at, &map)?,
            Ok(_) => return Err(Error::key(at.key("(top)"), "is not an object", path)),
            Err(e) => return Err(Error::key(at.key("(top)"), format!("is no JSON: {e}"), path)),
        }
    }
    Ok(())
}
