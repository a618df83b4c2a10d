//! Which cause explains a stall: signs that are stronger than usual, weighed with the stages that grew.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::baseline::{Baseline, Second, Signs, Usual, median};
use super::{Attribution, StageGrowth, Stall, StallCause, StallOptions, missed_frames};
use crate::host::log::rounded;

/// Stages that are work for the processor and grow together when it is slow.
const COMPUTE: [&str; 3] = ["decode", "policy", "record"];

/// Stages on threads of their own: their time is none of the loop's.
const BACKGROUND: [&str; 1] = ["disk_commit"];

/// Where heat begins to act when the log does not say.
const USUAL_LIMIT_C: f64 = 85.0;

/// Tells one stall.
pub(super) fn explain(group: &[Second<'_>], base: &Baseline, options: &StallOptions) -> Stall {
    let slow: Vec<&Second<'_>> = group.iter().filter(|s| s.slow).collect();
    let stages = growths(&slow, base);
    let signs = Signs::mean(slow.iter().map(|s| &s.signs));
    let view = View { now: signs, usual: base.signs, stages: &stages, slow: &slow };
    let mut causes = view.causes();
    for cause in &mut causes {
        cause.confidence = (cause.confidence.min(0.95) * base.trust * 100.0).round() / 100.0;
    }
    causes.retain(|c| c.confidence >= options.least_confidence);
    // A sort that keeps the order of equals: the more general cause comes first in `View::causes`.
    causes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    if causes.is_empty() {
        causes.push(attribution(StallCause::Unknown, 0.0, Vec::new()));
    }
    let mut episodes: Vec<u64> = slow.iter().filter_map(|s| s.line.episode).collect();
    episodes.dedup();
    let span = |s: &Second<'_>| (s.line.t_s - s.line.span_s).max(0.0);
    Stall {
        session: group.first().map_or(1, |s| s.session.max(1)),
        from_s: group.first().map_or(0.0, span),
        to_s: group.last().map_or(0.0, |s| s.line.t_s),
        episodes,
        overruns: slow.iter().fold(0, |n, s| n.saturating_add(s.line.counter("overruns"))),
        missed_frames: slow.iter().fold(0, |n, s| n.saturating_add(missed_frames(s.line))),
        stages: stages.into_iter().filter(|g| gain_ms(g) > 0.05 * (g.healthy_p99_ms + 0.1)).collect(),
        causes,
    }
}

/// How the stages have grown, the largest gain first.
fn growths(slow: &[&Second<'_>], base: &Baseline) -> Vec<StageGrowth> {
    let mut times: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (name, t) in slow.iter().flat_map(|s| &s.line.stages) {
        let (p50, p99) = times.entry(name).or_default();
        p50.push(t.p50_ms);
        p99.push(t.p99_ms);
    }
    let mut growths: Vec<StageGrowth> = times
        .into_iter()
        .map(|(name, (p50, p99))| {
            let usual = base.stages.get(name).copied().unwrap_or(Usual::default());
            // Stalls are often single long periods: of the tails the mean counts, which a few of them move.
            let p99_ms = p99.iter().sum::<f64>() / p99.len().max(1) as f64;
            StageGrowth {
                stage: name.to_string(),
                healthy_p50_ms: usual.p50_ms,
                healthy_p99_ms: usual.p99_ms,
                p50_ms: rounded(median(p50)),
                p99_ms: rounded(p99_ms),
                share: None,
            }
        })
        .collect();
    let in_loop = |g: &StageGrowth| !BACKGROUND.contains(&g.stage.as_str());
    let whole = growths.iter().position(|g| g.stage == "total").map(|i| growths.remove(i));
    let of_stages: f64 = growths.iter().filter(|g| in_loop(g)).map(gain_ms).sum();
    // Time that no stage accounts for is nobody's, and what is less than a hundredth of a period is noise.
    let of_period = slow.iter().map(|s| s.line.period_ms).fold(0.0, f64::max) / 100.0;
    let all = of_stages.max(whole.as_ref().map_or(0.0, gain_ms) / 2.0).max(of_period);
    for growth in growths.iter_mut().filter(|g| in_loop(g)) {
        growth.share = Some(if all > 0.0 { rounded(gain_ms(growth) / all) } else { 0.0 });
    }
    let rank = |g: &StageGrowth| g.share.unwrap_or(-1.0);
    growths.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    growths
}

/// Half of it from the median, half from the tail.
fn gain_ms(g: &StageGrowth) -> f64 {
    ((g.p50_ms - g.healthy_p50_ms).max(0.0) + (g.p99_ms - g.healthy_p99_ms).max(0.0)) / 2.0
}

/// A stall beside the healthy seconds.
struct View<'a> {
    now: Signs,
    usual: Signs,
    stages: &'a [StageGrowth],
    slow: &'a [&'a Second<'a>],
}

impl View<'_> {
    fn causes(&self) -> Vec<Attribution> {
        let thermal = self.thermal();
        let power = self.power();
        let memory = self.memory();
        let clock = self.clock(thermal.confidence.max(power.confidence));
        let of_host = [&thermal, &power, &memory, &clock].map(|a| a.confidence);
        let host = of_host.into_iter().fold(0.0, f64::max);
        let load = self.load(host);
        let wide = host.max(load.confidence);
        // What slows everything also makes pictures late and queues long.
        let damp = 1.0 - 0.7 * wide;
        let mut single = [self.camera(), self.bus(), self.disk(), self.policy()];
        for cause in &mut single {
            cause.confidence *= damp;
        }
        [thermal, power, memory, clock, load].into_iter().chain(single).collect()
    }

    fn thermal(&self) -> Attribution {
        let (now, usual) = (&self.now, &self.usual);
        let limit_c = now.temperature_limit_c.unwrap_or(USUAL_LIMIT_C);
        let near = now.temperature_c.map_or(0.0, |c| ramp(c, limit_c - 10.0, limit_c - 2.0));
        let drop = self.clock_drop();
        let flags = rise(now.hot, usual.hot).max(near * rise(now.capped, usual.capped));
        let by_clock = 0.9 * near * ramp(drop, 0.05, 0.2) * self.compute_grew().unwrap_or(0.6).max(0.4);
        let mut evidence = Vec::new();
        if flags > 0.0 {
            evidence.push(format!(
                "the firmware throttled in {} of {} slow seconds ({} of the healthy ones)",
                self.count(|s| s.hot.zip(s.capped).map(|(hot, capped)| hot.max(capped))),
                self.slow.len(),
                percent(usual.hot.unwrap_or(0.0))
            ));
        }
        if let Some(c) = now.temperature_c.filter(|_| near > 0.0) {
            let healthy = usual.temperature_c.map_or_else(String::new, |u| format!(", healthy {u:.0}"));
            evidence.push(format!("processor at {c:.0} C{healthy}, limit {limit_c:.0}"));
        }
        evidence.extend(self.clock_evidence());
        attribution(StallCause::Thermal, flags.max(by_clock), evidence)
    }

    fn power(&self) -> Attribution {
        let low = rise(self.now.under_voltage, self.usual.under_voltage);
        let mut evidence = Vec::new();
        if low > 0.0 {
            evidence.push(format!(
                "the supply was too low in {} of {} slow seconds",
                self.count(|s| s.under_voltage),
                self.slow.len()
            ));
        }
        evidence.extend(self.clock_evidence());
        attribution(StallCause::Power, low, evidence)
    }

    /// A low clock counts when the processor had work to do, and neither heat nor supply explain it.
    fn clock(&self, explained: f64) -> Attribution {
        let limit_c = self.now.temperature_limit_c.unwrap_or(USUAL_LIMIT_C);
        let cool = 1.0 - self.now.temperature_c.map_or(0.0, |c| ramp(c, limit_c - 10.0, limit_c - 2.0));
        let score = ramp(self.clock_drop(), 0.08, 0.3) * cool * (1.0 - explained);
        let mut evidence: Vec<String> = self.clock_evidence().into_iter().collect();
        if let Some(c) = self.now.temperature_c {
            evidence.push(format!("no heat: {c:.0} C, limit {limit_c:.0}"));
        }
        let governor = self.slow.iter().find_map(|s| s.line.host.as_ref()?.governor.as_ref());
        evidence.extend(governor.map(|g| format!("governor {g}")));
        attribution(StallCause::Clock, score * self.compute_grew().unwrap_or(0.6), evidence)
    }

    fn memory(&self) -> Attribution {
        let (now, usual) = (&self.now, &self.usual);
        let swap = ramp(more(now.swap_pages_per_s, usual.swap_pages_per_s), 50.0, 1000.0);
        let pressure = ramp(more(now.memory_pressure, usual.memory_pressure), 2.0, 15.0);
        let faults = 0.6 * ramp(more(now.major_faults_per_s, usual.major_faults_per_s), 50.0, 1000.0);
        let scarce = now.memory_available.map_or(0.0, |left| ramp(1.0 - left, 0.85, 0.97));
        // Little memory alone slows nobody; with pages on their way it is the reason.
        let moving = swap.max(pressure).max(faults);
        let score = moving * (0.75 + 0.25 * scarce);
        let mut evidence = Vec::new();
        evidence.extend(compared(
            "pages from and to swap a second",
            now.swap_pages_per_s,
            usual.swap_pages_per_s,
            0,
        ));
        evidence.extend(compared(
            "% of the time tasks waited for memory",
            now.memory_pressure,
            usual.memory_pressure,
            1,
        ));
        evidence.extend(compared(
            "page faults from disk a second",
            now.major_faults_per_s,
            usual.major_faults_per_s,
            0,
        ));
        if let Some(left) = now.memory_available {
            evidence.push(format!("{} of the memory left", percent(left)));
        }
        attribution(StallCause::Memory, score, evidence)
    }

    fn load(&self, explained: f64) -> Attribution {
        let (now, usual) = (&self.now, &self.usual);
        let pressure = ramp(more(now.cpu_pressure, usual.cpu_pressure), 10.0, 40.0);
        let load = ramp(more(now.load_per_cpu, usual.load_per_cpu), 0.4, 1.2);
        let score = pressure.max(load) * self.compute_grew().unwrap_or(0.5) * (1.0 - explained);
        let mut evidence = Vec::new();
        evidence.extend(compared(
            "% of the time tasks waited for a processor",
            now.cpu_pressure,
            usual.cpu_pressure,
            1,
        ));
        evidence.extend(compared("load a processor", now.load_per_cpu, usual.load_per_cpu, 2));
        attribution(StallCause::Load, score, evidence)
    }

    fn camera(&self) -> Attribution {
        let lost = ramp(self.now.missed_frames - self.usual.missed_frames, 0.01, 0.15);
        let share = self.share(|stage| stage.starts_with("camera."));
        let score = (0.35 + 0.6 * lost) * ramp(share, 0.25, 0.6);
        let mut evidence = Vec::new();
        if lost > 0.0 {
            let mut by_camera: BTreeMap<&str, u64> = BTreeMap::new();
            for (name, n) in self.slow.iter().flat_map(|s| &s.line.counters) {
                if name.starts_with("stale.") || name.starts_with("dropped.") {
                    let sum = by_camera.entry(name).or_default();
                    *sum = sum.saturating_add(*n);
                }
            }
            for (name, n) in by_camera {
                let (what, camera) = name.split_once('.').unwrap_or((name, "?"));
                let what = if what == "stale" { "periods without a new picture" } else { "pictures lost" };
                evidence.push(format!("camera {camera}: {n} {what}"));
            }
        }
        evidence.extend(self.stage_evidence(|stage| stage.starts_with("camera.")));
        attribution(StallCause::Camera, score.max(0.7 * lost), evidence)
    }

    fn bus(&self) -> Attribution {
        let faults = ramp(self.now.bus_faults - self.usual.bus_faults, 0.005, 0.1);
        let is_bus = |stage: &str| ["observe_bus", "act", "teleop"].contains(&stage);
        let score = (0.35 + 0.6 * faults) * ramp(self.share(is_bus), 0.25, 0.6);
        let mut evidence = Vec::new();
        for (counter, what) in [
            ("bus_timeouts", "requests without a reply in time"),
            ("bus_damaged", "damaged replies"),
            ("bus_retries", "requests sent again"),
        ] {
            let n = self.slow.iter().fold(0_u64, |n, s| n.saturating_add(s.line.counter(counter)));
            if n > 0 {
                evidence.push(format!("{n} {what}"));
            }
        }
        evidence.extend(self.stage_evidence(is_bus));
        attribution(StallCause::Bus, score.max(0.4 * faults), evidence)
    }

    fn disk(&self) -> Attribution {
        let (now, usual) = (&self.now, &self.usual);
        let is_disk = |stage: &str| ["record", "encode_queue"].contains(&stage);
        let commit = self.stages.iter().find(|g| g.stage == "disk_commit").map_or(0.0, |g| {
            if g.healthy_p99_ms > 0.0 { ramp(g.p99_ms / g.healthy_p99_ms, 1.5, 4.0) } else { 0.0 }
        });
        let queue = ramp(more(now.queue_fill, usual.queue_fill), 0.3, 0.7);
        let io = ramp(more(now.io_pressure, usual.io_pressure), 5.0, 30.0);
        let signs = io.max(0.8 * commit).max(0.6 * queue);
        let score = (0.35 + 0.6 * signs) * ramp(self.share(is_disk), 0.25, 0.6);
        let mut evidence = Vec::new();
        evidence.extend(compared(
            "% of the time tasks waited for a disk",
            now.io_pressure,
            usual.io_pressure,
            1,
        ));
        evidence.extend(compared("MiB written but not on the disk", now.dirty_mib, usual.dirty_mib, 0));
        let fill = |f: Option<f64>| f.map(|f| f * 100.0);
        evidence.extend(compared(
            "% of the encoder's queue full",
            fill(now.queue_fill),
            fill(usual.queue_fill),
            0,
        ));
        evidence.extend(self.stage_evidence(|stage| is_disk(stage) || stage == "disk_commit"));
        attribution(StallCause::Disk, score.max(0.5 * io.min(commit.max(queue))), evidence)
    }

    fn policy(&self) -> Attribution {
        let is_policy = |stage: &str| stage == "policy";
        let score = 0.6 * ramp(self.share(is_policy), 0.5, 0.9);
        attribution(StallCause::Policy, score, self.stage_evidence(is_policy))
    }

    /// By which share the clock is below the healthy seconds'; where all seconds are alike, below its maximum.
    fn clock_drop(&self) -> f64 {
        let usual = self.usual.clock_mhz.filter(|u| self.now.clock_mhz.is_some_and(|n| n < 0.95 * u));
        let reference = usual.or(self.now.clock_max_mhz);
        let Some((now, reference)) = self.now.clock_mhz.zip(reference).filter(|(_, r)| *r > 0.0) else {
            return 0.0;
        };
        // A clock that was as low in the healthy seconds has not slowed these ones.
        let as_usual = self.usual.clock_mhz.is_some_and(|u| (now - u).abs() < 0.05 * u);
        if as_usual && self.compute_grew().is_none_or(|g| g < 0.5) { 0.0 } else { 1.0 - now / reference }
    }

    /// Share of the computing stages that take a fifth longer in most periods; `None` where there are none to see.
    fn compute_grew(&self) -> Option<f64> {
        let computing =
            self.stages.iter().filter(|g| COMPUTE.contains(&g.stage.as_str()) && g.healthy_p50_ms >= 0.05);
        let (grew, all) = computing.fold((0.0, 0.0), |(grew, all), g| {
            let more = g.p50_ms >= 1.2 * g.healthy_p50_ms;
            (grew + f64::from(u8::from(more)), all + 1.0)
        });
        (all > 0.0).then_some(grew / all)
    }

    fn share(&self, of: impl Fn(&str) -> bool) -> f64 {
        self.stages.iter().filter(|g| of(&g.stage)).filter_map(|g| g.share).sum()
    }

    fn count(&self, sign: fn(&Signs) -> Option<f64>) -> usize {
        self.slow.iter().filter(|s| sign(&s.signs).is_some_and(|x| x > 0.0)).count()
    }

    fn clock_evidence(&self) -> Option<String> {
        let (now, usual) = (self.now.clock_mhz?, self.usual.clock_mhz);
        if self.clock_drop() < 0.05 {
            return None;
        }
        let healthy = usual.map_or_else(String::new, |u| format!(", healthy {u:.0}"));
        let most = self.now.clock_max_mhz.map_or_else(String::new, |m| format!(", at most {m:.0}"));
        Some(format!("clock {now:.0} MHz{healthy}{most}"))
    }

    fn stage_evidence(&self, of: impl Fn(&str) -> bool) -> Vec<String> {
        self.stages
            .iter()
            .filter(|g| of(&g.stage) && gain_ms(g) > 0.1 * g.healthy_p50_ms.max(0.1))
            .map(|g| {
                format!(
                    "{} p50 {:.1} -> {:.1} ms, p99 {:.1} -> {:.1} ms",
                    g.stage, g.healthy_p50_ms, g.p50_ms, g.healthy_p99_ms, g.p99_ms
                )
            })
            .collect()
    }
}

fn attribution(cause: StallCause, confidence: f64, evidence: Vec<String>) -> Attribution {
    let confidence = if confidence.is_finite() { confidence.clamp(0.0, 1.0) } else { 0.0 };
    Attribution { cause, confidence, evidence, advice: cause.advice() }
}

/// 0 up to `low`, 1 from `high` on.
fn ramp(x: f64, low: f64, high: f64) -> f64 {
    ((x - low) / (high - low)).clamp(0.0, 1.0)
}

/// How much more it is than usual; what is not in the log is no more.
fn more(now: Option<f64>, usual: Option<f64>) -> f64 {
    now.map_or(0.0, |n| n - usual.unwrap_or(0.0))
}

/// [`more`] of two shares.
fn rise(now: Option<f64>, usual: Option<f64>) -> f64 {
    more(now, usual).clamp(0.0, 1.0)
}

/// A figure beside its healthy value, where it is the larger one.
fn compared(what: &str, now: Option<f64>, usual: Option<f64>, digits: usize) -> Option<String> {
    let n = now?;
    let usual = usual.unwrap_or(0.0);
    (n > 1.2 * usual && n > 0.05).then(|| format!("{n:.digits$} {what}, healthy {usual:.digits$}"))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
