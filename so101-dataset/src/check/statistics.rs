//! stats.json and the statistics of the episodes, against the rows and pictures.

mod truth;

use std::path::PathBuf;

use truth::{Truth, near};

use super::report::{Findings, Place, Severity};
use super::rows::{AllValues, FeatureValues, has_statistics};
use super::videos::{CameraMeans, PictureMeans, Sums};
use super::{Subject, rules};
use crate::features::{DType, Feature};
use crate::reader::episodes::EPISODES_DIR;
use crate::reader::{FeatureStats, STATISTICS, STATS_PATH, Stats};

/// The statistics that every version of LeRobot writes.
const REQUIRED: [&str; 5] = ["min", "max", "mean", "std", "count"];
const QUANTILES: [(&str, f64); 5] = [("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99)];
/// Colour conversion and lossy coding move the mean of a picture by this at most, in [0, 1].
const PICTURE_WARNING: f64 = 0.02;
const PICTURE_ERROR: f64 = 0.05;
/// Wrong values that one finding lists.
const LISTED: usize = 3;

/// Checks the statistics of all features.
pub(super) fn check_statistics(
    subject: &Subject<'_>,
    values: &AllValues,
    cameras: &CameraMeans,
    findings: &mut Findings,
) {
    let (stats_path, episodes_path) = (subject.root.join(STATS_PATH), subject.root.join(EPISODES_DIR));
    let global = match Stats::load(subject.root) {
        Ok(stats) => stats,
        Err(e) => {
            findings.unreadable(rules::STATS_UNREADABLE, Place::file(&stats_path), &e);
            return;
        }
    };
    let Some(global) = global else {
        findings.error(rules::STATS_MISSING, Place::file(&stats_path), "stats.json does not exist");
        return;
    };
    let Some(episodes) = &subject.episodes else { return };
    let episode_stats = match episodes.stats(&subject.info.features) {
        Ok(stats) => stats,
        Err(e) => {
            findings.unreadable(rules::STATS_UNREADABLE, Place::file(&episodes_path), &e);
            return;
        }
    };
    let whole = episodes.rows.len();
    let mut no_quantiles = Vec::new();
    for (name, feature) in subject.info.features.iter().filter(|(_, f)| has_statistics(f)) {
        let mut one = OneFeature {
            name,
            feature,
            global: global.get(name),
            episodes: episode_stats.iter().map(|s| s.get(name)).collect(),
            stats_path: stats_path.clone(),
            episodes_path: episodes_path.clone(),
            findings: &mut *findings,
        };
        one.check_presence();
        if one.has_no_quantiles() {
            no_quantiles.push(name);
        }
        match values.get(name) {
            Some(values) => one.check_numbers(values, whole),
            // No row of it could be read, which is reported already.
            None if feature.dtype.is_numeric() => {}
            None => one.check_pictures(cameras.get(name), whole),
        }
    }
    if !no_quantiles.is_empty() {
        let message = format!("no quantiles, as in sets converted from v2.1, of {}", no_quantiles.join(", "));
        findings.info(rules::STATS_MISSING, Place::file(&stats_path), message);
    }
}

/// The statistics of one feature.
struct OneFeature<'a> {
    name: &'a str,
    feature: &'a Feature,
    global: Option<&'a FeatureStats>,
    episodes: Vec<Option<&'a FeatureStats>>,
    stats_path: PathBuf,
    episodes_path: PathBuf,
    findings: &'a mut Findings,
}

impl OneFeature<'_> {
    fn check_presence(&mut self) {
        let name = self.name;
        let lacks = |stats: Option<&FeatureStats>, what: &str| stats.is_none_or(|s| s.get(what).is_none());
        let absent: Vec<_> = REQUIRED.into_iter().filter(|s| lacks(self.global, s)).collect();
        if !absent.is_empty() {
            let message = format!("{name} has no {}", absent.join(", "));
            self.findings.error(rules::STATS_MISSING, Place::file(&self.stats_path), message);
        }
        let bare = self.episodes.iter().filter(|s| REQUIRED.iter().any(|r| lacks(**s, r))).count();
        if bare > 0 {
            let message = format!("{name} lacks statistics in {bare} episodes");
            self.findings.error(rules::STATS_MISSING, Place::file(&self.episodes_path), message);
        }
    }

    fn has_no_quantiles(&self) -> bool {
        self.global.is_some_and(|s| QUANTILES.iter().any(|(q, _)| s.get(q).is_none()))
    }

    fn check_numbers(&mut self, values: &FeatureValues, episodes: usize) {
        if values.episodes.iter().any(|(_, v)| v.iter().any(|x| !x.is_finite())) {
            return; // Reported already, and no statistic of it means anything.
        }
        for (number, own) in &values.episodes {
            if let Some(stats) = self.episodes.get(*number).copied().flatten() {
                let path = self.episodes_path.clone();
                let place = Place::episode(&path, *number as u64);
                self.compare(place, stats, values, &[own], |_, _, _| Severity::Error);
            }
        }
        // Some rows could not be read: what is over all of them cannot be judged.
        if let Some(stats) = self.global.filter(|_| values.episodes.len() == episodes) {
            let path = self.stats_path.clone();
            let all: Vec<&Vec<f64>> = values.episodes.iter().map(|(_, v)| v).collect();
            let episodes = self.episodes.clone();
            let severity = move |q: &str, dimension: usize, found: f64| {
                if is_over_episodes(&episodes, q, dimension, found) {
                    Severity::Warning
                } else {
                    Severity::Error
                }
            };
            self.compare(Place::file(&path), stats, values, &all, severity);
        }
    }

    /// Compares one set of statistics with the rows of `parts`; `quantile` judges a quantile that is not theirs.
    fn compare(
        &mut self,
        place: Place<'_>,
        stats: &FeatureStats,
        values: &FeatureValues,
        parts: &[&Vec<f64>],
        quantile: impl Fn(&str, usize, f64) -> Severity,
    ) {
        let width = values.dimensions;
        if !self.check_widths(place, stats, width) {
            return;
        }
        let (mut wrong, mut quantiles) = (Vec::new(), Vec::new());
        let numbers: usize = parts.iter().map(|p| p.len()).sum();
        let rows = numbers / (width * values.repeats).max(1);
        if let Some(count) = stats.get("count").and_then(|c| c.first()).filter(|c| **c != rows as f64) {
            wrong.push(format!("count is {count}, there are {rows} rows"));
        }
        for dimension in 0..width {
            let truth = Truth::of(parts, dimension, width);
            let number = |statistic: &str| stats.get(statistic).and_then(|v| v.get(dimension).copied());
            for (statistic, want, tolerance) in truth.moments() {
                if let Some(found) = number(statistic).filter(|f| !near(*f, want, tolerance)) {
                    wrong
                        .push(format!("{statistic} of dimension {dimension} is {found}, of the rows {want}"));
                }
            }
            for (q, fraction) in QUANTILES {
                if let Some(found) = number(q).filter(|f| !truth.is_quantile(*f, fraction)) {
                    let want = truth.quantile(fraction);
                    let message = format!("{q} of dimension {dimension} is {found}, of the rows {want}");
                    quantiles.push((quantile(q, dimension, found), message));
                }
            }
        }
        self.report_quantiles(place, &quantiles);
        self.report_values(place, wrong);
    }

    /// Whether every statistic has one number a dimension.
    fn check_widths(&mut self, place: Place<'_>, stats: &FeatureStats, width: usize) -> bool {
        let mut wrong = Vec::new();
        for statistic in STATISTICS {
            let Some(numbers) = stats.get(statistic) else { continue };
            self.findings.figures().statistics += 1;
            let expected = if statistic == "count" { 1 } else { width };
            if numbers.len() != expected {
                wrong.push(format!("{statistic} has {} numbers, expected {expected}", numbers.len()));
            }
        }
        if !wrong.is_empty() {
            self.findings.error(rules::STATS_SHAPE, place, format!("{}: {}", self.name, wrong.join(", ")));
        }
        wrong.is_empty()
    }

    fn report_values(&mut self, place: Place<'_>, mut wrong: Vec<String>) {
        if wrong.is_empty() {
            return;
        }
        let unlisted = wrong.len().saturating_sub(LISTED);
        wrong.truncate(LISTED);
        let more = if unlisted > 0 { format!(" and {unlisted} more") } else { String::new() };
        self.findings.error(rules::STATS_VALUES, place, format!("{}: {}{more}", self.name, wrong.join(", ")));
    }

    /// One finding a severity: a set of LeRobot's has a wrong quantile for nearly every dimension.
    fn report_quantiles(&mut self, place: Place<'_>, wrong: &[(Severity, String)]) {
        for severity in [Severity::Error, Severity::Warning] {
            let mut messages = wrong.iter().filter(|(s, _)| *s == severity).map(|(_, m)| m);
            let Some(first) = messages.next() else { continue };
            let why = match severity {
                Severity::Warning => ", combined from the episodes' quantiles as LeRobot does it",
                _ => "",
            };
            let message = format!("{}: {first} ({} quantiles{why})", self.name, 1 + messages.count());
            self.findings.add(rules::STATS_QUANTILES, severity, place, message);
        }
    }

    fn check_pictures(&mut self, means: Option<&PictureMeans>, episodes: usize) {
        let channels = self.feature.picture_channels().unwrap_or(3);
        let global_path = self.stats_path.clone();
        let episodes_path = self.episodes_path.clone();
        if let Some(stats) = self.global {
            let mean = means.filter(|m| m.episodes.len() == episodes).map(PictureMeans::whole);
            self.check_picture_stats(Place::file(&global_path), stats, channels, mean);
        }
        for number in 0..self.episodes.len() {
            if let Some(stats) = self.episodes.get(number).copied().flatten() {
                let mean = means.and_then(|m| m.episodes.get(&number)).map(Sums::mean);
                self.check_picture_stats(
                    Place::episode(&episodes_path, number as u64),
                    stats,
                    channels,
                    mean,
                );
            }
        }
    }

    fn check_picture_stats(
        &mut self,
        place: Place<'_>,
        stats: &FeatureStats,
        channels: usize,
        mean: Option<[f64; 3]>,
    ) {
        if self.feature.dtype == DType::Image && mean.is_none() && self.feature.picture_size().is_none() {
            return;
        }
        let get = |s: &str| stats.get(s).unwrap_or_default();
        let (low, found, high) = (get("min"), get("mean"), get("max"));
        self.findings.figures().statistics += 3;
        let ordered = |(m, (a, b)): (&f64, (&f64, &f64))| {
            a - 1e-6 <= *m && *m <= b + 1e-6 && *a > -1e-6 && *b < 1.0 + 1e-6
        };
        let depth = self.feature.video_info().is_some_and(is_depth);
        if found.len() != channels || low.len() != channels || high.len() != channels {
            let message = format!("{}: mean has {} numbers for {channels} channels", self.name, found.len());
            self.findings.error(rules::STATS_SHAPE, place, message);
        } else if !depth && !found.iter().zip(low.iter().zip(high)).all(ordered) {
            let message = format!(
                "{}: min {low:?}, mean {found:?}, max {high:?} are not in order within 0 to 1",
                self.name
            );
            self.findings.error(rules::STATS_VALUES, place, message);
        }
        let Some(mean) = mean.filter(|_| found.len() == 3) else { return };
        let off = found.iter().zip(mean).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if off > PICTURE_WARNING {
            let severity = if off > PICTURE_ERROR { Severity::Error } else { Severity::Warning };
            let message = format!("{}: mean {found:.4?}, of the decoded pictures {mean:.4?}", self.name);
            self.findings.add(rules::STATS_PICTURES, severity, place, message);
        }
    }
}

fn is_depth(info: &serde_json::Map<String, serde_json::Value>) -> bool {
    ["is_depth_map", "video.is_depth_map"].iter().any(|k| info.get(*k).is_some_and(|v| v == true))
}

/// Whether a global quantile is the average, minimum or maximum of the episodes' quantiles, which is what versions of
/// LeRobot write in its place.
fn is_over_episodes(episodes: &[Option<&FeatureStats>], q: &str, dimension: usize, found: f64) -> bool {
    let (mut sum, mut rows, mut low, mut high) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
    for stats in episodes.iter().flatten() {
        let value = stats.get(q).and_then(|v| v.get(dimension).copied());
        let count = stats.get("count").and_then(|v| v.first().copied());
        let (Some(value), Some(count)) = (value, count) else { return false };
        sum += value * count;
        rows += count;
        low = low.min(value);
        high = high.max(value);
    }
    [sum / rows, low, high].iter().any(|v| near(found, *v, 1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_combined_over_episodes_are_recognised() {
        let stats = |q: f64, count: f64| {
            let mut s = FeatureStats::default();
            s.put("q50", vec![q]);
            s.put("count", vec![count]);
            s
        };
        let (a, b) = (stats(1.0, 10.0), stats(4.0, 20.0));
        let episodes = [Some(&a), Some(&b)];
        for (found, recognised) in [(3.0, true), (1.0, true), (4.0, true), (2.5, false)] {
            assert_eq!(is_over_episodes(&episodes, "q50", 0, found), recognised, "{found}");
        }
    }
}
