//! The seconds of a log with their rates, and what is usual in the healthy ones.

use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::{LoopLine, StallOptions, missed_frames};
use crate::host::{HostSample, Pressure};

/// Fewer healthy seconds are no baseline.
const MIN_HEALTHY: usize = 3;

/// One second with what only the difference to the second before tells.
#[derive(Clone, Debug)]
pub(super) struct Second<'l> {
    pub(super) session: usize,
    pub(super) line: &'l LoopLine,
    pub(super) slow: bool,
    pub(super) signs: Signs,
}

/// Signs of trouble in one second, or their mean over several. `None` = not in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    pub(super) temperature_c: Option<f64>,
    pub(super) temperature_limit_c: Option<f64>,
    pub(super) clock_mhz: Option<f64>,
    pub(super) clock_max_mhz: Option<f64>,
    /// Share of seconds in which heat slowed the processor, by the firmware's flags.
    pub(super) hot: Option<f64>,
    /// Share of seconds in which the firmware capped the clock.
    pub(super) capped: Option<f64>,
    pub(super) under_voltage: Option<f64>,
    pub(super) load_per_cpu: Option<f64>,
    pub(super) memory_available: Option<f64>,
    pub(super) swap_pages_per_s: Option<f64>,
    pub(super) major_faults_per_s: Option<f64>,
    pub(super) dirty_mib: Option<f64>,
    /// Percent of the second in which tasks waited.
    pub(super) cpu_pressure: Option<f64>,
    pub(super) memory_pressure: Option<f64>,
    pub(super) io_pressure: Option<f64>,
    pub(super) queue_fill: Option<f64>,
    /// A cycle.
    pub(super) bus_faults: f64,
    pub(super) missed_frames: f64,
}

impl Signs {
    fn of(line: &LoopLine, before: Option<&LoopLine>) -> Self {
        let cycles = f64::from(line.cycles.max(1));
        let bus = ["bus_retries", "bus_timeouts", "bus_damaged"].map(|c| line.counter(c) as f64);
        let mut signs = Self {
            bus_faults: bus.iter().sum::<f64>() / cycles,
            missed_frames: missed_frames(line) as f64 / cycles,
            queue_fill: line
                .queue
                .filter(|q| q.capacity > 0)
                .map(|q| f64::from(q.max) / f64::from(q.capacity)),
            ..Self::default()
        };
        if let Some(host) = &line.host {
            signs.host(host, before.and_then(|b| b.host.as_ref()), line.span_s);
        }
        signs
    }

    fn host(&mut self, host: &HostSample, before: Option<&HostSample>, span_s: f64) {
        let flag = |set: bool| f64::from(u8::from(set));
        self.temperature_c = host.temperature_c;
        self.temperature_limit_c = host.temperature_limit_c;
        self.clock_mhz = host.clock_mhz;
        self.clock_max_mhz = host.clock_max_mhz;
        self.hot = host.throttled.map(|t| flag(t.hot()));
        self.capped = host.throttled.map(|t| flag(t.capped()));
        self.under_voltage = host.under_voltage().map(flag);
        self.load_per_cpu = host.load_1min.zip(host.cpus).map(|(load, n)| load / f64::from(n.max(1)));
        self.memory_available = host
            .memory_available_mib
            .zip(host.memory_total_mib)
            .filter(|(_, all)| *all > 0.0)
            .map(|(left, all)| left / all);
        self.dirty_mib = host.dirty_mib;
        let rate = |now: Option<u64>, then: Option<u64>| {
            now.zip(then).map(|(now, then)| now.saturating_sub(then) as f64 / span_s)
        };
        let old = |get: fn(&HostSample) -> Option<u64>| rate(get(host), before.and_then(get));
        self.swap_pages_per_s = old(|h| h.swap_in_pages).zip(old(|h| h.swap_out_pages)).map(|(i, o)| i + o);
        self.major_faults_per_s = old(|h| h.major_faults);
        let waited = |now: Option<Pressure>, then: Option<Pressure>| {
            let us = rate(now.map(|p| p.some_total_us), then.map(|p| p.some_total_us));
            // The mean over 10 s stands in for the first second.
            us.map(|us| us / 1e4).or(now.map(|p| p.some_avg10_percent)).map(|p| p.clamp(0.0, 100.0))
        };
        self.cpu_pressure = waited(host.cpu_pressure, before.and_then(|b| b.cpu_pressure));
        self.memory_pressure = waited(host.memory_pressure, before.and_then(|b| b.memory_pressure));
        self.io_pressure = waited(host.io_pressure, before.and_then(|b| b.io_pressure));
    }

    /// The mean over seconds, each sign over those that have it.
    pub(super) fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mean = |get: fn(&Self) -> Option<f64>| {
            let (sum, n) = all.clone().filter_map(get).fold((0.0, 0.0), |(s, n), x| (s + x, n + 1.0));
            (n > 0.0).then_some(sum / n)
        };
        Self {
            temperature_c: mean(|s| s.temperature_c),
            temperature_limit_c: mean(|s| s.temperature_limit_c),
            clock_mhz: mean(|s| s.clock_mhz),
            clock_max_mhz: mean(|s| s.clock_max_mhz),
            hot: mean(|s| s.hot),
            capped: mean(|s| s.capped),
            under_voltage: mean(|s| s.under_voltage),
            load_per_cpu: mean(|s| s.load_per_cpu),
            memory_available: mean(|s| s.memory_available),
            swap_pages_per_s: mean(|s| s.swap_pages_per_s),
            major_faults_per_s: mean(|s| s.major_faults_per_s),
            dirty_mib: mean(|s| s.dirty_mib),
            cpu_pressure: mean(|s| s.cpu_pressure),
            memory_pressure: mean(|s| s.memory_pressure),
            io_pressure: mean(|s| s.io_pressure),
            queue_fill: mean(|s| s.queue_fill),
            bus_faults: mean(|s| Some(s.bus_faults)).unwrap_or(0.0),
            missed_frames: mean(|s| Some(s.missed_frames)).unwrap_or(0.0),
        }
    }
}

/// Marks the slow seconds and works the rates out.
pub(super) fn seconds<'l>(lines: &'l [(usize, LoopLine)], options: &StallOptions) -> Vec<Second<'l>> {
    let mut before: Option<(usize, &LoopLine)> = None;
    let mut all = Vec::with_capacity(lines.len());
    for (session, line) in lines {
        let earlier = before.filter(|(s, b)| s == session && b.t_s < line.t_s).map(|(_, b)| b);
        let cycles = f64::from(line.cycles.max(1));
        let slow = line.counter("overruns") as f64 / cycles >= options.overrun_share
            || missed_frames(line) as f64 / cycles >= options.missed_frame_share;
        all.push(Second { session: *session, line, slow, signs: Signs::of(line, earlier) });
        before = Some((*session, line));
    }
    all
}

/// Median times of one stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usual {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// What is usual in the healthy seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    pub(super) stages: BTreeMap<String, Usual>,
    pub(super) signs: Signs,
    /// How far it is to be trusted, 0 to 1.
    pub(super) trust: f64,
}

impl Baseline {
    /// From the healthy seconds; where there are too few, nothing is usual.
    pub(super) fn of(seconds: &[Second<'_>], notes: &mut Vec<String>) -> Self {
        let chosen: Vec<&Second<'_>> = seconds.iter().filter(|s| !s.slow).collect();
        if seconds.iter().all(|s| s.line.host.is_none()) && !seconds.is_empty() {
            notes.push(
                "the log has no samples of the host: heat, clock, memory and disk cannot be judged"
                    .to_string(),
            );
        }
        if chosen.len() < MIN_HEALTHY && chosen.len() < seconds.len() {
            notes.push(
                "hardly a second of this log is healthy: stages and signs are compared with zero, not with this \
                 computer's usual figures"
                    .to_string(),
            );
            return Self { trust: 0.7, ..Self::default() };
        }
        let mut times: BTreeMap<&str, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for (name, t) in chosen.iter().flat_map(|s| &s.line.stages) {
            let (p50, p99) = times.entry(name).or_default();
            p50.push(t.p50_ms);
            p99.push(t.p99_ms);
        }
        let stages = times
            .into_iter()
            .map(|(name, (p50, p99))| (name.to_string(), Usual { p50_ms: median(p50), p99_ms: median(p99) }))
            .collect();
        Self { stages, signs: Signs::mean(chosen.iter().map(|s| &s.signs)), trust: 1.0 }
    }
}

/// The middle value; 0 of none.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
