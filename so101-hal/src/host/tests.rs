use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::bus::BusStats;
use crate::clock::Timestamp;

/// A file of a made-up computer.
fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const MEMINFO: &str = "MemTotal:        8257536 kB\nMemFree:          921600 kB\nMemAvailable:    5324800 kB\n\
                       SwapTotal:        524288 kB\nSwapFree:         262144 kB\nDirty:             10240 kB\n\
                       Writeback:          2048 kB\n";

/// The files of a Raspberry Pi 5, as its kernel has them.
fn raspberry_pi() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for (file, text) in [
        ("proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0"),
        ("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
        ("sys/class/thermal/thermal_zone0/temp", "61350\n"),
        ("sys/class/thermal/thermal_zone0/trip_point_0_type", "critical\n"),
        ("sys/class/thermal/thermal_zone0/trip_point_0_temp", "110000\n"),
        ("sys/class/thermal/thermal_zone0/trip_point_1_type", "active\n"),
        ("sys/class/thermal/thermal_zone0/trip_point_1_temp", "50000\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "2400000\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1500000\n"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "ondemand\n"),
        ("sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled", "50005\n"),
        ("sys/class/hwmon/hwmon0/name", "cpu_thermal\n"),
        ("sys/class/hwmon/hwmon1/name", "rpi_volt\n"),
        ("sys/class/hwmon/hwmon1/in0_lcrit_alarm", "0\n"),
        ("proc/loadavg", "1.87 1.20 0.90 2/412 9371\n"),
        ("proc/meminfo", MEMINFO),
        ("proc/vmstat", "pgpgin 5\npswpin 120\npswpout 340\npgfault 9000\npgmajfault 77\n"),
        ("proc/self/statm", "51200 25600 900 1 0 3000 0\n"),
        ("proc/self/smaps", "00400000-00500000 r-xp\nKernelPageSize:       16 kB\n"),
        ("proc/pressure/cpu", "some avg10=3.10 avg60=2.00 avg300=1.00 total=123456\n"),
        (
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=9\n",
        ),
        ("proc/pressure/io", "some avg10=1.25 avg60=0.00 avg300=0.00 total=4242\n"),
        ("proc/sys/kernel/osrelease", "6.12.47+rpt-rpi-2712\n"),
    ] {
        put(root, file, text);
    }
    dir
}

#[test]
fn a_sample_of_a_raspberry_pi_has_everything() {
    let dir = raspberry_pi();
    let mut probe = HostProbe::new(dir.path());
    let sample = probe.sample();
    let wanted = HostSample {
        temperature_c: Some(61.35),
        temperature_limit_c: Some(80.0),
        clock_mhz: Some(1500.0),
        clock_max_mhz: Some(2400.0),
        governor: Some("ondemand".into()),
        throttled: Some(Throttled(0x5_0005)),
        supply_alarm: Some(false),
        load_1min: Some(1.87),
        cpus: Some(4),
        memory_available_mib: Some(5200.0),
        memory_total_mib: Some(8064.0),
        swap_used_mib: Some(256.0),
        dirty_mib: Some(12.0),
        swap_in_pages: Some(120),
        swap_out_pages: Some(340),
        major_faults: Some(77),
        cpu_pressure: Some(Pressure { some_avg10_percent: 3.1, some_total_us: 123_456 }),
        memory_pressure: Some(Pressure { some_avg10_percent: 0.0, some_total_us: 7 }),
        io_pressure: Some(Pressure { some_avg10_percent: 1.25, some_total_us: 4242 }),
        rss_mib: Some(400.0),
    };
    assert_eq!(sample, wanted);
    assert_eq!(sample.under_voltage(), Some(true));
    let text = serde_json::to_string(&sample).unwrap();
    assert_eq!(serde_json::from_str::<HostSample>(&text).unwrap(), sample);
}

#[test]
fn a_sample_reads_a_dozen_files_and_no_more_the_next_time() {
    let dir = raspberry_pi();
    let mut probe = HostProbe::new(dir.path());
    assert_eq!(probe.files_read(), 0, "looking things up is not part of a sample");
    for n in 1..=3 {
        probe.sample();
        assert_eq!(probe.files_read(), 12 * n);
    }
}

#[test]
fn where_nothing_is_told_the_sample_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let sample = HostProbe::new(dir.path()).sample();
    assert_eq!(sample, HostSample::default());
    assert_eq!(serde_json::to_string(&sample).unwrap(), "{}");
    // Files that hold nonsense are as good as none.
    let dir = raspberry_pi();
    for file in ["sys/class/thermal/thermal_zone0/temp", "proc/meminfo", "proc/pressure/io", "proc/loadavg"] {
        put(dir.path(), file, "inf nan \u{fffd}");
    }
    let sample = HostProbe::new(dir.path()).sample();
    assert_eq!((sample.temperature_c, sample.load_1min, sample.io_pressure), (None, None, None));
    assert_eq!(sample.memory_total_mib, None);
}

#[test]
fn many_sensors_and_cores_are_the_hottest_and_the_slowest() {
    let dir = tempfile::tempdir().unwrap();
    for (zone, kind, temp) in
        [(0, "acpitz", "90000"), (1, "x86_pkg_temp", "55000"), (2, "cpu-0", "57000"), (3, "iwlwifi", "88000")]
    {
        let folder = format!("sys/class/thermal/thermal_zone{zone}");
        put(dir.path(), &format!("{folder}/type"), kind);
        put(dir.path(), &format!("{folder}/temp"), temp);
    }
    put(dir.path(), "sys/class/thermal/thermal_zone2/trip_point_0_type", "passive");
    put(dir.path(), "sys/class/thermal/thermal_zone2/trip_point_0_temp", "95000");
    for (policy, now) in [(0, "3000000"), (4, "1200000")] {
        let folder = format!("sys/devices/system/cpu/cpufreq/policy{policy}");
        put(dir.path(), &format!("{folder}/scaling_cur_freq"), now);
        put(dir.path(), &format!("{folder}/cpuinfo_max_freq"), "3200000");
    }
    put(dir.path(), "sys/devices/system/cpu/online", "0-3,6,8-9");
    let sample = HostProbe::new(dir.path()).sample();
    assert_eq!((sample.temperature_c, sample.temperature_limit_c), (Some(57.0), Some(95.0)));
    assert_eq!((sample.clock_mhz, sample.clock_max_mhz), (Some(1200.0), Some(3200.0)));
    assert_eq!(sample.cpus, Some(7));
}

#[cfg(unix)]
#[test]
fn the_vendors_program_is_asked_where_the_kernel_has_no_file_and_not_every_time() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let asked = dir.path().join("asked");
    let script = format!("#!/bin/sh\necho x >> {}\necho throttled=0xe0008\n", asked.display());
    put(dir.path(), "usr/bin/vcgencmd", &script);
    let program = dir.path().join("usr/bin/vcgencmd");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut probe = HostProbe::new(dir.path());
    for _ in 0..6 {
        let flags = probe.sample().throttled.unwrap();
        assert!(flags.hot() && flags.slowed_since_boot() && !flags.capped() && !flags.under_voltage());
    }
    assert_eq!(fs::read_to_string(asked).unwrap().lines().count(), 2);
}

#[test]
fn throttling_bits_are_now_or_since_boot() {
    let now = Throttled(0b1111);
    assert!(now.under_voltage() && now.capped() && now.throttled() && now.soft_limit());
    assert!(!now.under_voltage_since_boot() && !now.slowed_since_boot());
    let before = Throttled(0b1111 << 16);
    assert!(!before.under_voltage() && !before.capped() && !before.hot());
    assert!(before.under_voltage_since_boot() && before.slowed_since_boot());
}

#[test]
fn facts_name_the_board_and_the_kernel() {
    let dir = raspberry_pi();
    let facts = HostFacts::read(dir.path());
    assert_eq!(facts.model.as_deref(), Some("Raspberry Pi 5 Model B Rev 1.0"));
    assert_eq!(facts.kernel.as_deref(), Some("6.12.47+rpt-rpi-2712"));
    assert_eq!(facts.memory_mib, Some(8064));
    let other = tempfile::tempdir().unwrap();
    put(other.path(), "proc/cpuinfo", "processor : 0\nmodel name\t: Some Processor 9000\n");
    assert_eq!(HostFacts::read(other.path()).model.as_deref(), Some("Some Processor 9000"));
}

fn options(cameras: &[&str]) -> LoopLogOptions {
    LoopLogOptions {
        period: Duration::from_millis(20),
        cameras: cameras.iter().map(ToString::to_string).collect(),
        every: Duration::from_secs(1),
        probe: None,
        when_full: WhenFull::LoseLines,
    }
}

/// So many periods of 20 ms, each with this much work.
fn cycles<W: std::io::Write + Send>(log: &mut LoopLog<W>, from: u32, n: u32, work: Duration) {
    for i in from..from + n {
        log.end_cycle(Timestamp::from_start((i + 1) * Duration::from_millis(20)), work);
    }
}

#[test]
fn a_second_becomes_one_line_with_percentiles_and_counters() {
    let mut log = LoopLog::start(Vec::new(), options(&["front", "wrist"])).unwrap();
    log.set_episode(Some(7));
    for i in 1..=50 {
        log.stage(Stage::ObserveBus, Duration::from_millis(i));
        log.stage(Stage::Camera(1), Duration::from_micros(300));
        // A camera that was never announced has no place.
        log.stage(Stage::Camera(5), Duration::from_millis(1));
        let work = Duration::from_millis(if i % 10 == 0 { 25 } else { 10 });
        log.end_cycle(Timestamp::from_start(Duration::from_millis(20 * i)), work);
        log.count(Counter::StaleFrames(0), 1);
    }
    log.count(Counter::DroppedFrames(1), 3);
    log.count(Counter::DroppedFrames(9), 3);
    log.bus(BusStats { retries: 100, ..BusStats::default() });
    log.bus(BusStats { retries: 104, timeouts: 2, ..BusStats::default() });
    log.queue(3, 8);
    log.queue(1, 8);
    cycles(&mut log, 50, 50, Duration::from_millis(5));
    let bytes = log.finish().unwrap();
    let parsed = parse(&bytes);
    assert_eq!((parsed.starts.len(), parsed.lines.len(), parsed.skipped), (1, 2, 0));
    assert_eq!(parsed.starts[0].period_ms, 20.0);
    let (_, first) = &parsed.lines[0];
    assert_eq!((first.t_s, first.span_s, first.cycles, first.episode), (1.0, 1.0, 50, Some(7)));
    assert_eq!(first.stages["observe_bus"], StageTimes { n: 50, p50_ms: 25.0, p99_ms: 50.0, max_ms: 50.0 });
    assert_eq!(first.stages["camera.wrist"].p50_ms, 0.3);
    assert_eq!(first.stages["total"].max_ms, 25.0);
    assert_eq!(first.stages.len(), 3, "{:?}", first.stages.keys());
    assert_eq!((first.counter("overruns"), first.counter("stale.front")), (5, 49));
    let (_, second) = &parsed.lines[1];
    assert_eq!((second.counter("bus_retries"), second.counter("bus_timeouts")), (4, 2));
    assert_eq!((second.counter("dropped.wrist"), second.counters_of("dropped.")), (3, 3));
    assert_eq!(second.queue, Some(QueueDepth { max: 3, capacity: 8 }));
    assert_eq!((second.counter("overruns"), second.cycles), (0, 50));
}

#[test]
fn an_episode_ends_its_line_and_the_time_between_belongs_to_none() {
    let mut log = LoopLog::start(Vec::new(), options(&[])).unwrap();
    log.set_episode(Some(0));
    cycles(&mut log, 0, 20, Duration::from_millis(5));
    log.set_episode(Some(1));
    // Ten seconds later.
    cycles(&mut log, 500, 50, Duration::from_millis(5));
    log.set_episode(None);
    log.stage(Stage::DiskCommit, Duration::from_millis(150));
    let parsed = parse(&log.finish().unwrap());
    let spans: Vec<(Option<u64>, f64, u32)> =
        parsed.lines.iter().map(|(_, l)| (l.episode, l.span_s, l.cycles)).collect();
    assert_eq!(spans, [(Some(0), 0.4, 20), (Some(1), 1.0, 50), (None, 0.02, 0)]);
    assert_eq!(parsed.lines[2].1.stages["disk_commit"].max_ms, 150.0);
}

#[test]
fn a_log_has_samples_of_the_host_in_every_line() {
    let dir = raspberry_pi();
    let options = LoopLogOptions { probe: Some(HostProbe::new(dir.path())), ..options(&[]) };
    let mut log = LoopLog::start(Vec::new(), options).unwrap();
    cycles(&mut log, 0, 100, Duration::from_millis(5));
    let parsed = parse(&log.finish().unwrap());
    assert_eq!(parsed.lines.len(), 2);
    assert!(parsed.lines.iter().all(|(_, l)| l.host.as_ref().unwrap().temperature_c == Some(61.35)));
}

#[test]
fn a_log_that_is_dropped_is_whole_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut log = LoopLog::start(fs::File::create(&path).unwrap(), options(&[])).unwrap();
    cycles(&mut log, 0, 70, Duration::from_millis(5));
    drop(log);
    let parsed = parse(&fs::read(path).unwrap());
    assert_eq!(parsed.lines.iter().map(|(_, l)| l.cycles).collect::<Vec<_>>(), [50, 20]);
}

#[test]
fn a_full_disk_stops_no_loop_and_is_told_at_the_end() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut log = LoopLog::start(Full, options(&[])).unwrap();
    cycles(&mut log, 0, 5000, Duration::from_millis(5));
    let error = log.finish().map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the loop log"), "{error}");
}

/// A disk that takes nothing until the test lets it.
struct Stuck(std::sync::mpsc::Receiver<()>, Vec<u8>);

impl std::io::Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Closed = free.
        let _ = self.0.recv();
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_costs_lines_that_are_counted_and_no_time_of_the_loop() {
    let (free, waits) = std::sync::mpsc::channel();
    let mut log = LoopLog::start(Stuck(waits, Vec::new()), options(&[])).unwrap();
    // Forty seconds in which nothing can be written, and a little more.
    cycles(&mut log, 0, 40 * 50 + 10, Duration::from_millis(5));
    drop(free);
    let parsed = parse(&log.finish().unwrap().1);
    let lost: u64 = parsed.lines.iter().map(|(_, l)| l.counter("lost_lines")).sum();
    assert!(lost >= 20, "{lost}");
    assert_eq!(parsed.lines.len() as u64 + lost, 41);
}

#[test]
fn a_loop_in_simulated_time_loses_no_line() {
    let options = LoopLogOptions { when_full: WhenFull::Wait, ..options(&[]) };
    let mut log = LoopLog::start(Vec::new(), options).unwrap();
    cycles(&mut log, 0, 300 * 50, Duration::from_millis(5));
    assert_eq!(parse(&log.finish().unwrap()).lines.len(), 300);
}
