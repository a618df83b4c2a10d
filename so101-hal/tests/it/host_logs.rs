//! Scripted loop logs: `diagnose` names the cause of each, and of no other.
//!
//! The logs are those of a Raspberry Pi 5 that records two cameras at 30 Hz, in the magnitudes that such a loop has;
//! none of them was measured on one. `SO101_WRITE_FIXTURES=1` writes the fixtures anew.

use std::path::PathBuf;

use proptest::prelude::*;
use so101_hal::host::stall::{Diagnosis, StallCause, StallOptions, diagnose};
use so101_hal::host::{self, HostSample, LogLine, LoopLine, Pressure, QueueDepth, StageTimes, Throttled};

/// One second of the script that may still be changed.
struct Second {
    line: LoopLine,
    /// Rates, from which the counters since boot are summed up.
    swap_pages: u64,
    major_faults: u64,
    cpu_percent: f64,
    memory_percent: f64,
    io_percent: f64,
}

/// Numbers that look like noise and are the same everywhere: about -1 to 1.
fn noise(second: usize, salt: u64) -> f64 {
    let mut x =
        (second as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 32;
    (x >> 40) as f64 / (1_u64 << 23) as f64 - 1.0
}

fn round(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

impl Second {
    fn healthy(second: usize) -> Self {
        let mut line = LoopLine::default();
        line.t_s = (second + 1) as f64;
        line.span_s = 1.0;
        line.cycles = 30;
        line.period_ms = 33.333;
        line.episode = Some(second as u64 / 15);
        for (i, (name, p50, p99)) in [
            ("observe_bus", 2.1, 2.9),
            ("camera.front", 0.3, 0.9),
            ("camera.gripper", 0.3, 0.8),
            ("decode", 6.2, 7.8),
            ("teleop", 1.9, 2.6),
            ("act", 0.4, 0.7),
            ("record", 3.8, 5.5),
            ("encode_queue", 0.02, 0.1),
            ("total", 15.0, 19.8),
        ]
        .into_iter()
        .enumerate()
        {
            let wobble = 1.0 + 0.06 * noise(second, i as u64);
            let (p50_ms, p99_ms) = (round(p50 * wobble), round(p99 * wobble));
            let times = StageTimes { n: 30, p50_ms, p99_ms, max_ms: round(p99_ms * 1.15) };
            line.stages.insert(name.to_owned(), times);
        }
        if second.is_multiple_of(15) && second > 0 {
            let ms = round(180.0 * (1.0 + 0.1 * noise(second, 20)));
            line.stages
                .insert("disk_commit".to_owned(), StageTimes { n: 1, p50_ms: ms, p99_ms: ms, max_ms: ms });
        }
        line.queue = Some(QueueDepth { max: 4, capacity: 64 });
        let mut host = HostSample::default();
        host.temperature_c = Some(round(62.0 + noise(second, 21)));
        host.temperature_limit_c = Some(80.0);
        host.clock_mhz = Some(if noise(second, 22) > 0.6 { 2000.0 } else { 2400.0 });
        host.clock_max_mhz = Some(2400.0);
        host.governor = Some("ondemand".to_owned());
        host.throttled = Some(Throttled(0));
        host.load_1min = Some(round(1.9 + 0.2 * noise(second, 23)));
        host.cpus = Some(4);
        host.memory_available_mib = Some(5200.0);
        host.memory_total_mib = Some(8064.0);
        host.swap_used_mib = Some(0.0);
        host.dirty_mib = Some(30.0);
        host.rss_mib = Some(410.0);
        line.host = Some(host);
        Self { line, swap_pages: 0, major_faults: 1, cpu_percent: 3.0, memory_percent: 0.0, io_percent: 1.2 }
    }

    fn host(&mut self) -> &mut HostSample {
        self.line.host.as_mut().unwrap()
    }

    /// Stage times become these multiples.
    fn slower(&mut self, stages: &[&str], p50: f64, p99: f64) {
        for name in stages {
            let t = self.line.stages.get_mut(*name).unwrap();
            t.p50_ms = round(t.p50_ms * p50);
            t.p99_ms = round(t.p99_ms * p99);
            t.max_ms = round(t.p99_ms * 1.2);
        }
    }

    fn count(&mut self, counter: &str, n: u64) {
        self.line.counters.insert(counter.to_owned(), n);
    }

    /// Everything that computes, by the clock.
    fn slow_processor(&mut self) {
        self.slower(&["decode", "record"], 2.1, 2.3);
        self.slower(&["observe_bus", "teleop"], 1.15, 1.3);
        self.slower(&["total"], 2.2, 2.4);
        self.count("overruns", 19);
        self.line.cycles = 27;
    }
}

type Effect = fn(&mut Second);

fn thermal(s: &mut Second) {
    s.slow_processor();
    let host = s.host();
    host.temperature_c = Some(84.2);
    host.clock_mhz = Some(1500.0);
    host.throttled = Some(Throttled(0xe_000e));
}

fn clock(s: &mut Second) {
    s.slow_processor();
    let host = s.host();
    host.temperature_c = Some(51.0);
    host.clock_mhz = Some(1000.0);
    host.governor = Some("powersave".to_owned());
}

/// Pages come and go, the disk that swap is on is busy, and every stage has long periods.
fn memory(s: &mut Second) {
    s.slower(&["observe_bus", "decode", "teleop", "record", "camera.front"], 1.1, 6.0);
    s.slower(&["total"], 1.2, 4.5);
    s.count("overruns", 5);
    s.count("stale.front", 2);
    (s.swap_pages, s.major_faults, s.memory_percent, s.io_percent) = (2600, 700, 24.0, 21.0);
    let host = s.host();
    host.memory_available_mib = Some(160.0);
    host.swap_used_mib = Some(1900.0);
    host.load_1min = Some(4.8);
}

/// The loop waits for pictures, and the governor lowers the clock of a processor with nothing to do.
fn camera(s: &mut Second) {
    s.slower(&["camera.front"], 30.0, 60.0);
    s.slower(&["total"], 1.6, 3.1);
    s.count("overruns", 8);
    s.count("dropped.front", 7);
    s.count("stale.front", 9);
    s.host().clock_mhz = Some(1600.0);
}

fn bus(s: &mut Second) {
    s.slower(&["observe_bus"], 1.2, 15.0);
    s.slower(&["teleop"], 1.0, 1.2);
    s.slower(&["total"], 1.1, 3.1);
    s.count("overruns", 4);
    s.count("bus_timeouts", 3);
    s.count("bus_damaged", 2);
    s.count("bus_retries", 5);
}

fn disk(s: &mut Second) {
    s.slower(&["record"], 1.4, 12.0);
    s.slower(&["encode_queue"], 20.0, 400.0);
    s.slower(&["total"], 1.3, 4.2);
    s.count("overruns", 6);
    s.line.queue = Some(QueueDepth { max: 61, capacity: 64 });
    s.io_percent = 46.0;
    let ms = 2400.0;
    s.line.stages.insert("disk_commit".to_owned(), StageTimes { n: 1, p50_ms: ms, p99_ms: ms, max_ms: ms });
    s.host().dirty_mib = Some(540.0);
}

fn power(s: &mut Second) {
    s.slow_processor();
    s.host().clock_mhz = Some(1500.0);
    s.host().throttled = Some(Throttled(0x5_0003));
}

fn load(s: &mut Second) {
    s.slow_processor();
    s.cpu_percent = 61.0;
    s.host().load_1min = Some(9.5);
}

const SCRIPTS: [(&str, StallCause, Effect); 6] = [
    ("thermal", StallCause::Thermal, thermal),
    ("clock", StallCause::Clock, clock),
    ("memory", StallCause::Memory, memory),
    ("camera", StallCause::Camera, camera),
    ("bus", StallCause::Bus, bus),
    ("disk", StallCause::Disk, disk),
];

/// A log of so many seconds; `effect` is asked for each.
fn script(seconds: usize, effect: impl Fn(usize, &mut Second)) -> String {
    let (mut swap, mut faults, mut waited) = (9000_u64, 800_u64, [4e6, 0.0, 2e6]);
    let mut text = r#"{"kind":"start","unix_time_s":1780000000,"period_ms":33.333,"host":{"os":"linux","arch":"aarch64","model":"Raspberry Pi 5 Model B Rev 1.0","threads":4,"memory_mib":8064}}"#.to_owned();
    text.push('\n');
    for i in 0..seconds {
        let mut s = Second::healthy(i);
        effect(i, &mut s);
        swap += s.swap_pages / 2;
        faults += s.major_faults;
        let percents = [s.cpu_percent, s.memory_percent, s.io_percent];
        for (sum, percent) in waited.iter_mut().zip(percents) {
            *sum += percent * 1e4;
        }
        let pressure = |i: usize| {
            Some(Pressure { some_avg10_percent: round(percents[i]), some_total_us: waited[i] as u64 })
        };
        if let Some(host) = &mut s.line.host {
            (host.swap_in_pages, host.swap_out_pages) = (Some(swap), Some(swap));
            host.major_faults = Some(faults);
            host.cpu_pressure = pressure(0);
            host.memory_pressure = pressure(1);
            host.io_pressure = pressure(2);
        }
        text.push_str(&serde_json::to_string(&LogLine::Loop(Box::new(s.line))).unwrap());
        text.push('\n');
    }
    text
}

/// 20 healthy seconds, 10 of the effect, 2 healthy ones.
fn stalled(effect: Effect) -> String {
    script(32, |i, s| {
        if (20..30).contains(&i) {
            effect(s);
        }
    })
}

fn found(text: &str) -> Diagnosis {
    diagnose(&host::parse(text.as_bytes()), &StallOptions::default())
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/host").join(format!("{name}.jsonl"))
}

#[test]
fn the_fixtures_are_what_the_script_says() {
    let healthy = script(32, |_, _| ());
    let logs = SCRIPTS.iter().map(|(name, _, effect)| (*name, stalled(*effect)));
    for (name, text) in logs.chain([("healthy", healthy)]) {
        if std::env::var_os("SO101_WRITE_FIXTURES").is_some() {
            std::fs::write(fixture(name), &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(fixture(name)).unwrap(), text, "{name}");
    }
}

#[test]
fn each_scripted_log_is_named_by_its_cause_alone() {
    for (name, cause, _) in SCRIPTS {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let found = found(&text);
        assert_eq!(found.cause, Some(cause), "{name}: {found}");
        assert_eq!(found.causes(), [cause], "{name}: {found}");
        assert_eq!((found.seconds, found.healthy_seconds, found.stalls.len()), (32, 22, 1), "{name}");
        let stall = &found.stalls[0];
        assert_eq!((stall.from_s, stall.to_s), (20.0, 30.0), "{name}");
        assert!(stall.overruns > 0 && !stall.stages.is_empty(), "{name}");
        let [first, rest @ ..] = stall.causes.as_slice() else { panic!("{name} has no cause") };
        assert!(first.confidence >= 0.6, "{name}: {found}");
        assert!(!first.evidence.is_empty() && !first.advice.is_empty(), "{name}");
        assert!(rest.iter().all(|c| c.confidence < 0.6 * first.confidence), "{name}: {found}");
    }
}

#[test]
fn the_stage_that_grew_most_stands_first() {
    for (effect, stage) in
        [(thermal as Effect, "decode"), (camera, "camera.front"), (bus, "observe_bus"), (disk, "record")]
    {
        let found = found(&stalled(effect));
        let first = &found.stalls[0].stages[0];
        assert_eq!(first.stage, stage, "{found}");
        assert!(first.share.unwrap() > 0.3 && first.p99_ms > first.healthy_p99_ms, "{found}");
    }
}

#[test]
fn a_healthy_log_has_no_stall_however_warm_it_is() {
    let cool = found(&std::fs::read_to_string(fixture("healthy")).unwrap());
    assert_eq!((cool.cause, cool.stalls.len(), cool.healthy_seconds), (None, 0, 32));
    assert!(cool.to_string().starts_with("no stall in 32 seconds"), "{cool}");
    // Hot, capped, little memory left: signs without a slow period are no stall.
    let warm = found(&script(32, |_, s| {
        let host = s.host();
        host.temperature_c = Some(83.0);
        host.throttled = Some(Throttled(0xe_0008));
        host.memory_available_mib = Some(200.0);
    }));
    assert_eq!((warm.cause, warm.stalls.len()), (None, 0));
}

#[test]
fn signs_that_were_there_all_the_time_explain_nothing() {
    type Always = fn(&mut Second);
    let always: [(&str, Always); 4] = [
        ("hot", |s| {
            s.host().temperature_c = Some(83.0);
            s.host().throttled = Some(Throttled(0xe_0008));
        }),
        ("low clock", |s| s.host().clock_mhz = Some(1500.0)),
        ("swap", |s| (s.swap_pages, s.memory_percent) = (3000, 20.0)),
        ("lossy bus", |s| s.count("bus_retries", 4)),
    ];
    for (what, always) in always {
        let text = script(32, |i, s| {
            if (20..30).contains(&i) {
                camera(s);
            }
            always(s);
        });
        let found = found(&text);
        assert_eq!(found.causes(), [StallCause::Camera], "{what}: {found}");
    }
}

#[test]
fn two_troubles_in_one_log_are_two_stalls_with_their_own_causes() {
    let text = script(50, |i, s| match i {
        12..20 => thermal(s),
        30..36 => bus(s),
        _ => {}
    });
    let found = found(&text);
    let causes: Vec<StallCause> = found.stalls.iter().map(|s| s.causes[0].cause).collect();
    assert_eq!(causes, [StallCause::Thermal, StallCause::Bus], "{found}");
    // Thermal has cost more periods.
    assert_eq!(found.causes(), causes, "{found}");
}

#[test]
fn what_the_six_logs_do_not_have_is_told_apart_too() {
    let policy: Effect = |s| {
        s.line
            .stages
            .insert("policy".to_owned(), StageTimes { n: 30, p50_ms: 24.0, p99_ms: 31.0, max_ms: 33.0 });
        s.slower(&["total"], 2.5, 2.6);
        s.count("overruns", 15);
    };
    // As on a desktop: no flags, a trip point, and a clock that falls.
    let no_flags: Effect = |s| {
        thermal(s);
        s.host().throttled = None;
    };
    let nothing: Effect = |s| {
        s.slower(&["total"], 2.5, 2.6);
        s.count("overruns", 15);
    };
    for (name, effect, cause) in [
        ("power", power as Effect, StallCause::Power),
        ("load", load, StallCause::Load),
        ("policy", policy, StallCause::Policy),
        ("thermal without flags", no_flags, StallCause::Thermal),
        ("nothing to see", nothing, StallCause::Unknown),
    ] {
        let found = found(&stalled(effect));
        assert_eq!(found.causes(), [cause], "{name}: {found}");
    }
}

#[test]
fn what_a_slow_processor_brings_with_it_is_no_cause_of_its_own() {
    let effect: Effect = |s| {
        thermal(s);
        s.slower(&["camera.front", "encode_queue"], 4.0, 8.0);
        s.count("stale.front", 8);
        s.count("bus_timeouts", 2);
        s.line.queue = Some(QueueDepth { max: 58, capacity: 64 });
    };
    let found = found(&stalled(effect));
    let causes: Vec<StallCause> = found.stalls[0].causes.iter().map(|c| c.cause).collect();
    assert_eq!(causes, [StallCause::Thermal], "{found}");
}

#[test]
fn mild_trouble_is_named_too() {
    let thermal: Effect = |s| {
        s.slower(&["decode", "record"], 1.3, 1.4);
        s.count("overruns", 1);
        let host = s.host();
        (host.temperature_c, host.clock_mhz) = (Some(80.6), Some(2000.0));
        host.throttled = Some(Throttled(0x8_0008));
    };
    let memory: Effect = |s| {
        s.slower(&["decode", "record", "observe_bus"], 1.0, 4.0);
        s.count("overruns", 2);
        (s.swap_pages, s.memory_percent, s.io_percent) = (500, 7.0, 9.0);
    };
    // Nothing waits for the pictures; the recording only gets the old one again.
    let camera: Effect = |s| s.count("stale.gripper", 4);
    let bus: Effect = |s| {
        s.slower(&["observe_bus"], 1.0, 9.0);
        s.count("overruns", 1);
        s.count("bus_timeouts", 1);
    };
    let disk: Effect = |s| {
        s.slower(&["record"], 1.0, 8.0);
        s.count("overruns", 1);
        s.io_percent = 14.0;
    };
    for (cause, effect) in [
        (StallCause::Thermal, thermal),
        (StallCause::Memory, memory),
        (StallCause::Camera, camera),
        (StallCause::Bus, bus),
        (StallCause::Disk, disk),
    ] {
        let found = found(&stalled(effect));
        assert_eq!(found.causes(), [cause], "{found}");
    }
}

#[test]
fn a_log_that_is_slow_from_its_first_second_still_names_the_cause() {
    for (effect, cause) in
        [(thermal as Effect, StallCause::Thermal), (clock, StallCause::Clock), (bus, StallCause::Bus)]
    {
        let found = found(&script(20, |_, s| effect(s)));
        assert_eq!(found.cause, Some(cause), "{found}");
        assert!(found.notes.iter().any(|n| n.contains("hardly a second")), "{found}");
    }
}

#[test]
fn a_log_without_host_samples_says_what_it_cannot_tell() {
    let text = script(32, |i, s| {
        if (20..30).contains(&i) {
            thermal(s);
        }
        s.line.host = None;
    });
    let found = found(&text);
    assert!(!found.causes().contains(&StallCause::Thermal), "{found}");
    assert!(found.notes.iter().any(|n| n.contains("no samples of the host")), "{found}");
}

#[test]
fn sessions_in_one_file_are_kept_apart() {
    // The counters since boot of the second session are lower: the computer was started again.
    let healthy = script(20, |_, s| s.swap_pages = 10_000);
    let text = healthy + &stalled(bus);
    let found = found(&text);
    assert_eq!(found.causes(), [StallCause::Bus], "{found}");
    assert_eq!(found.stalls[0].session, 2);
}

#[test]
fn a_cut_line_and_lines_of_other_kinds_are_stepped_over() {
    let mut text = stalled(disk);
    text.push_str(
        "{\"episode\":3,\"commit_ms\":12.0}\n\n{\"kind\":\"later\"}\n{\"kind\":\"loop\",\"t_s\":33,\"sp",
    );
    let log = host::parse(text.as_bytes());
    assert_eq!((log.starts.len(), log.lines.len(), log.skipped), (1, 32, 3));
    assert_eq!(diagnose(&log, &StallOptions::default()).causes(), [StallCause::Disk]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_or_the_diagnosis_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let log = host::parse(&bytes);
        let _ = diagnose(&log, &StallOptions::default()).to_string();
    }

    #[test]
    fn no_damage_to_a_log_makes_the_diagnosis_panic(
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut bytes = stalled(memory).into_bytes();
        for (index, byte) in at {
            let i = index.index(bytes.len());
            bytes[i] = byte;
        }
        let log = host::parse(&bytes);
        let found = diagnose(&log, &StallOptions::default());
        prop_assert!(serde_json::to_string(&found).is_ok());
        prop_assert!(found.healthy_seconds <= found.seconds);
    }

    #[test]
    fn no_numbers_make_the_diagnosis_panic(
        numbers in prop::collection::vec((any::<f64>(), any::<u64>(), any::<u32>()), 1..12),
    ) {
        let mut text = String::new();
        for (x, n, bits) in numbers {
            let mut s = Second::healthy(0);
            s.line.cycles = bits;
            s.line.t_s = x.abs() % 1e6;
            s.count("overruns", n);
            s.count("stale.front", n);
            s.count("dropped.front", n);
            let host = s.host();
            host.temperature_c = Some(x);
            host.clock_mhz = Some(x);
            host.memory_total_mib = Some(x);
            host.swap_in_pages = Some(n);
            host.swap_out_pages = Some(n);
            host.cpus = Some(bits);
            host.throttled = Some(Throttled(bits));
            text.push_str(&serde_json::to_string(&LogLine::Loop(Box::new(s.line))).unwrap());
            text.push('\n');
        }
        let found = found(&text);
        prop_assert!(found.stalls.iter().flat_map(|s| &s.causes).all(|c| (0.0..=1.0).contains(&c.confidence)));
    }
}
