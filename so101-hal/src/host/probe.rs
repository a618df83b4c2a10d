//! Samples of the computer's health.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::string::ToString as _;
use std::vec::Vec;

use super::read::{Reader, entries, field, page_bytes};
use super::{HostSample, Throttled};

/// Sensors whose hottest counts; more would make a sample dear on a machine with many zones.
const MAX_SENSORS: usize = 4;

/// Groups of cores whose slowest counts.
const MAX_POLICIES: usize = 4;

/// Asking `vcgencmd` starts a process, so it is asked only every so many samples.
const VCGENCMD_EVERY: u64 = 5;

/// Where the firmware of a Raspberry Pi begins to slow it (it ends at 85).
const RASPBERRY_PI_SOFT_LIMIT_C: f64 = 80.0;

/// Reads the health of a Linux computer. On other systems samples are empty.
///
/// Where things are is looked up once, by [`HostProbe::new`]; a sample then reads at most 20 small files (12 on a
/// Raspberry Pi 5), see [`HostProbe::files_read`].
///
/// ```
/// use so101_hal::host::HostProbe;
/// let mut probe = HostProbe::system();
/// let sample = probe.sample();
/// println!("{:?} C, {:?} MHz", sample.temperature_c, sample.clock_mhz);
/// ```
#[derive(Clone, Debug)]
pub struct HostProbe {
    root: PathBuf,
    reader: Reader,
    sensors: Vec<PathBuf>,
    limit_c: Option<f64>,
    policies: Vec<PathBuf>,
    clock_max_mhz: Option<f64>,
    throttled: ThrottledSource,
    supply_alarm: Option<PathBuf>,
    cpus: Option<u32>,
    page_bytes: u64,
}

/// Where the throttling bits come from.
#[derive(Clone, Debug)]
enum ThrottledSource {
    Absent,
    File(PathBuf),
    Program { path: PathBuf, asked: u64, last: Option<Throttled> },
}

impl HostProbe {
    /// A probe of the computer whose file system begins at `root`: `/`, or a folder that a test has made.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let mut reader = Reader::default();
        let (sensors, trip_c) = find_sensors(&mut reader, &root);
        let policies: Vec<PathBuf> = entries(&root.join("sys/devices/system/cpu/cpufreq"), "policy")
            .into_iter()
            .take(MAX_POLICIES)
            .collect();
        let clock_max_mhz = policies
            .iter()
            .filter_map(|p| reader.thousandths(&p.join("cpuinfo_max_freq")))
            .min_by(f64::total_cmp);
        let is_raspberry_pi = super::read::one_line(&mut reader, &root.join("proc/device-tree/model"))
            .is_some_and(|m| m.starts_with("Raspberry Pi"));
        let limit_c = if is_raspberry_pi { Some(RASPBERRY_PI_SOFT_LIMIT_C) } else { trip_c };
        let supply_alarm = entries(&root.join("sys/class/hwmon"), "hwmon")
            .into_iter()
            .find(|h| reader.text(&h.join("name")) == Some("rpi_volt"))
            .map(|h| h.join("in0_lcrit_alarm"));
        let cpus = reader.text(&root.join("sys/devices/system/cpu/online")).and_then(count_cpus);
        let page_bytes = page_bytes(&mut reader, &root);
        let throttled = throttled_source(&root);
        reader.files = 0;
        Self {
            root,
            reader,
            sensors,
            limit_c,
            policies,
            clock_max_mhz,
            throttled,
            supply_alarm,
            cpus,
            page_bytes,
        }
    }

    /// A probe of this computer.
    #[must_use]
    pub fn system() -> Self {
        Self::new("/")
    }

    /// Files that all samples so far have read.
    #[must_use]
    pub const fn files_read(&self) -> u64 {
        self.reader.files
    }

    /// The computer at this moment.
    pub fn sample(&mut self) -> HostSample {
        let mut sample = HostSample {
            temperature_c: self.temperature_c(),
            temperature_limit_c: self.limit_c,
            clock_max_mhz: self.clock_max_mhz,
            throttled: self.throttled(),
            cpus: self.cpus,
            ..HostSample::default()
        };
        self.read_clock(&mut sample);
        if let Some(path) = &self.supply_alarm {
            sample.supply_alarm = self.reader.number(path).map(|n| n != 0.0);
        }
        self.read_memory(&mut sample);
        let reader = &mut self.reader;
        let text = reader.text(&self.root.join("proc/loadavg"));
        sample.load_1min =
            text.and_then(|t| t.split(' ').next()?.parse().ok()).filter(|n: &f64| n.is_finite());
        sample.cpu_pressure = reader.pressure(&self.root.join("proc/pressure/cpu"));
        sample.memory_pressure = reader.pressure(&self.root.join("proc/pressure/memory"));
        sample.io_pressure = reader.pressure(&self.root.join("proc/pressure/io"));
        sample
    }

    fn temperature_c(&mut self) -> Option<f64> {
        let reader = &mut self.reader;
        self.sensors.iter().filter_map(|s| reader.thousandths(s)).max_by(f64::total_cmp)
    }

    fn read_clock(&mut self, sample: &mut HostSample) {
        let reader = &mut self.reader;
        let mut slowest: Option<(f64, &PathBuf)> = None;
        for policy in &self.policies {
            let Some(mhz) = reader.thousandths(&policy.join("scaling_cur_freq")) else { continue };
            if slowest.is_none_or(|(least, _)| mhz < least) {
                slowest = Some((mhz, policy));
            }
        }
        if let Some((mhz, policy)) = slowest {
            sample.clock_mhz = Some(mhz);
            sample.governor = super::read::one_line(reader, &policy.join("scaling_governor"));
        }
    }

    fn read_memory(&mut self, sample: &mut HostSample) {
        let page_bytes = self.page_bytes;
        let reader = &mut self.reader;
        if let Some(text) = reader.text(&self.root.join("proc/meminfo")) {
            let mib = |key| field(text, key).map(|kib| kib as f64 / 1024.0);
            sample.memory_total_mib = mib("MemTotal");
            sample.memory_available_mib = mib("MemAvailable");
            sample.swap_used_mib = mib("SwapTotal").zip(mib("SwapFree")).map(|(all, free)| all - free);
            sample.dirty_mib = mib("Dirty").zip(mib("Writeback")).map(|(dirty, under_way)| dirty + under_way);
        }
        if let Some(text) = reader.text(&self.root.join("proc/vmstat")) {
            sample.swap_in_pages = field(text, "pswpin");
            sample.swap_out_pages = field(text, "pswpout");
            sample.major_faults = field(text, "pgmajfault");
        }
        let resident = reader.text(&self.root.join("proc/self/statm"));
        let pages = resident.and_then(|t| t.split(' ').nth(1)?.parse::<u64>().ok());
        sample.rss_mib = pages.map(|n| n as f64 * page_bytes as f64 / f64::from(1 << 20));
    }

    fn throttled(&mut self) -> Option<Throttled> {
        match &mut self.throttled {
            ThrottledSource::Absent => None,
            ThrottledSource::File(path) => self.reader.text(path).and_then(parse_bits),
            ThrottledSource::Program { path, asked, last } => {
                if *asked % VCGENCMD_EVERY == 0 {
                    let output = Command::new(path).arg("get_throttled").output().ok();
                    *last = output.and_then(|o| parse_bits(core::str::from_utf8(&o.stdout).ok()?.trim()));
                }
                *asked += 1;
                *last
            }
        }
    }
}

impl Default for HostProbe {
    fn default() -> Self {
        Self::system()
    }
}

/// The temperature files of the processor, and where its passive cooling or critical limit begins.
fn find_sensors(reader: &mut Reader, root: &Path) -> (Vec<PathBuf>, Option<f64>) {
    let zones = entries(&root.join("sys/class/thermal"), "thermal_zone");
    let is_cpu = |reader: &mut Reader, zone: &PathBuf| {
        reader.text(&zone.join("type")).is_some_and(|t| {
            let t = t.to_ascii_lowercase();
            ["cpu", "x86_pkg", "soc", "core", "package"].iter().any(|word| t.contains(word))
        })
    };
    let mut chosen: Vec<PathBuf> = zones.iter().filter(|z| is_cpu(reader, z)).cloned().collect();
    if chosen.is_empty() {
        chosen = zones;
    }
    chosen.truncate(MAX_SENSORS);
    let limit_c = chosen.iter().filter_map(|z| zone_limit_c(reader, z)).min_by(f64::total_cmp);
    let mut sensors: Vec<PathBuf> = chosen.into_iter().map(|z| z.join("temp")).collect();
    if sensors.is_empty() {
        sensors = entries(&root.join("sys/class/hwmon"), "hwmon")
            .into_iter()
            .filter(|h| {
                let name = reader.text(&h.join("name")).unwrap_or_default().to_string();
                ["coretemp", "k10temp", "zenpower", "cpu_thermal"].contains(&name.as_str())
            })
            .map(|h| h.join("temp1_input"))
            .take(MAX_SENSORS)
            .collect();
    }
    (sensors, limit_c)
}

/// The lowest passive trip point of a zone; without one, 10 degrees below its critical one.
fn zone_limit_c(reader: &mut Reader, zone: &Path) -> Option<f64> {
    let mut passive = None;
    let mut critical = None;
    for path in entries(zone, "trip_point_") {
        let Some(name) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else { continue };
        let Some(number) = name.strip_suffix("_type") else { continue };
        let Some(kind) = reader.text(&path).map(std::string::ToString::to_string) else { continue };
        // A trip point that is switched off stands at or below zero.
        let at_c = reader.thousandths(&zone.join([number, "_temp"].concat())).filter(|c| *c > 0.0);
        let slot = match kind.as_str() {
            "passive" | "hot" => &mut passive,
            "critical" => &mut critical,
            _ => continue,
        };
        *slot = [*slot, at_c].into_iter().flatten().min_by(f64::total_cmp);
    }
    passive.or_else(|| critical.map(|c| c - 10.0))
}

/// The firmware's file where the kernel has it, else the vendor's program.
fn throttled_source(root: &Path) -> ThrottledSource {
    let soc = entries(&root.join("sys/devices/platform"), "soc");
    let inside = soc.iter().flat_map(|s| entries(s, "").into_iter().map(|e| e.join("get_throttled")));
    let file = soc.iter().map(|s| s.join("get_throttled")).chain(inside).find(|f| f.is_file());
    if let Some(path) = file {
        return ThrottledSource::File(path);
    }
    let program = ["usr/bin/vcgencmd", "opt/vc/bin/vcgencmd"].map(|p| root.join(p));
    match program.into_iter().find(|p| p.is_file()) {
        Some(path) => ThrottledSource::Program { path, asked: 0, last: None },
        None => ThrottledSource::Absent,
    }
}

/// `throttled=0x50005`, `0x50005` or the kernel's `50005`.
fn parse_bits(text: &str) -> Option<Throttled> {
    let text = text.strip_prefix("throttled=").unwrap_or(text);
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).ok().map(Throttled)
}

/// Processors in a list such as `0-3,8`.
fn count_cpus(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}
