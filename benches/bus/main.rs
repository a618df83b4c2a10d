//! One cycle on the servo bus beside rustypot 1.13.1, on the same emulated servos behind pseudo-terminals.
//!
//! Ours reads the whole telemetry of six servos, 15 bytes each; rustypot reads their positions, 2 bytes each. The gates
//! are on rounds of both in turn, as medians of their ratios, so that a busy machine hits both; Criterion's figures are
//! for the record. Exits 1 when a limit is missed.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::exit,
    reason = "a bench, with an allocator that counts"
)]

mod counting;
mod servos;

use std::time::{Duration, Instant};

use criterion::Criterion;
use rustix::time::{ClockId, clock_gettime};
use rustypot::servo::feetech::sts3215::Sts3215Controller;
use so101_hal::bus::{Bus, ServoBus as _, SyncReplies};
use so101_hal::port::CountingPort;
use so101_hal::protocol::SyncRow;
use so101_hal::registers::{GOAL_POSITION, TELEMETRY, Telemetry};
use so101_hal::{SerialPort, ServoId};

const ROUNDS: usize = 40;
const CYCLES: usize = 50;
const IDS: [u8; 6] = [1, 2, 3, 4, 5, 6];

fn main() {
    let servos = servos::Servos::start();
    let mut ours = Ours::open(servos.path(0));
    let mut theirs = Theirs::open(servos.path(1));
    assert_eq!(ours.positions(), servos.positions());
    theirs.check(&servos.positions());

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("bus");
    group.sample_size(30).measurement_time(Duration::from_secs(3));
    group.bench_function("baseline: rustypot 1.13.1, positions of six servos", |b| b.iter(|| theirs.read()));
    group.bench_function("telemetry of six servos", |b| b.iter(|| ours.read()));
    group.bench_function("baseline: rustypot 1.13.1, positions and goals", |b| b.iter(|| theirs.cycle()));
    group.bench_function("telemetry and goals", |b| b.iter(|| ours.cycle()));
    group.finish();
    criterion.final_summary();

    let (mut our_costs, mut their_costs) = (Costs::default(), Costs::default());
    for _ in 0..ROUNDS {
        our_costs.measure(|| ours.read());
        their_costs.measure(|| theirs.read());
    }
    let mut table = Table::default();
    let (time, cpu) = (our_costs.time_us(), our_costs.cpu_us());
    let (their_time, their_cpu) = (their_costs.time_us(), their_costs.cpu_us());
    println!("telemetry, 15 bytes of six servos: {time:.1} us, CPU of this thread {cpu:.1} us");
    println!("rustypot, 2 bytes of six servos:   {their_time:.1} us, CPU of this thread {their_cpu:.1} us");
    let (time, cpu) = our_costs.ratios(&their_costs);
    table.at_most("time of a telemetry read, of rustypot's position read", time, 0.8);
    table.at_most("CPU of this thread, of rustypot's", cpu, 0.5);

    let counted = |ours: &mut Ours, run: fn(&mut Ours)| {
        let (calls, allocations) = (ours.bus.port().calls().syscalls(), counting::allocations());
        let n = 200;
        (0..n).for_each(|_| run(ours));
        let per_cycle = |count: u64| count as f64 / f64::from(n);
        let calls = ours.bus.port().calls().syscalls() - calls;
        (per_cycle(calls), per_cycle(counting::allocations() - allocations))
    };
    let (calls, allocations) = counted(&mut ours, Ours::read);
    table.at_most("system calls of a telemetry read", calls, 4.0);
    table.at_most("allocations of a telemetry read", allocations, 0.0);
    let (calls, allocations) = counted(&mut ours, Ours::cycle);
    table.at_most("system calls of a telemetry read and a goal write", calls, 4.0);
    table.at_most("allocations of a telemetry read and a goal write", allocations, 0.0);
    println!("statistics of the bus: {:?}", ours.bus.stats());
    table.finish();
}

struct Ours {
    bus: Bus<CountingPort<SerialPort>>,
    replies: SyncReplies,
}

impl Ours {
    fn open(path: &str) -> Self {
        let port = CountingPort::new(SerialPort::open(path).unwrap());
        Self { bus: Bus::new(port), replies: SyncReplies::new() }
    }

    fn read(&mut self) {
        self.bus.sync_read(TELEMETRY, &ServoId::ARM, &mut self.replies).unwrap();
        assert!(self.replies.is_complete());
    }

    fn cycle(&mut self) {
        self.read();
        let rows = ServoId::ARM.map(|id| SyncRow { id, data: &[0x00, 0x08] });
        self.bus.sync_write(GOAL_POSITION.address, &rows).unwrap();
    }

    fn positions(&mut self) -> Vec<i32> {
        self.read();
        let telemetry = |data: &[u8]| Telemetry::from_bytes(data.try_into().unwrap());
        self.replies.iter().map(|(_, reply)| telemetry(reply.unwrap().data).position.0).collect()
    }
}

struct Theirs {
    controller: Sts3215Controller,
}

impl Theirs {
    fn open(path: &str) -> Self {
        let port = serialport::new(path, 1_000_000).timeout(Duration::from_millis(20)).open().unwrap();
        Self { controller: Sts3215Controller::new().with_protocol_v1().with_serial_port(port) }
    }

    fn read(&mut self) {
        assert_eq!(self.controller.sync_read_raw_present_position(&IDS).unwrap().len(), 6);
    }

    fn cycle(&mut self) {
        self.read();
        self.controller.sync_write_raw_goal_position(&IDS, &[0x800; 6]).unwrap();
    }

    fn check(&mut self, positions: &[i32]) {
        let read = self.controller.sync_read_raw_present_position(&IDS).unwrap();
        assert!(read.iter().map(|p| i32::from(*p)).eq(positions.iter().copied()), "{read:?}");
    }
}

/// Time (the median) and CPU (the mean) of a cycle, round by round.
#[derive(Default)]
struct Costs {
    times: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Costs {
    fn measure(&mut self, mut cycle: impl FnMut()) {
        cycle();
        let before = thread_cpu();
        let mut times = [Duration::ZERO; CYCLES];
        for time in &mut times {
            let start = Instant::now();
            cycle();
            *time = start.elapsed();
        }
        self.cpu.push((thread_cpu() - before) / CYCLES as u32);
        times.sort_unstable();
        self.times.push(times[CYCLES / 2]);
    }

    /// Time and CPU of these, of the others', as medians of the ratios of rounds next to each other.
    fn ratios(&self, others: &Self) -> (f64, f64) {
        let ratio = |a: &[Duration], b: &[Duration]| {
            let mut ratios: Vec<f64> =
                a.iter().zip(b).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        (ratio(&self.times, &others.times), ratio(&self.cpu, &others.cpu))
    }

    fn time_us(&self) -> f64 {
        median_us(&self.times)
    }

    fn cpu_us(&self) -> f64 {
        median_us(&self.cpu)
    }
}

fn median_us(durations: &[Duration]) -> f64 {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].as_secs_f64() * 1e6
}

fn thread_cpu() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), t.tv_nsec.unsigned_abs() as u32)
}

/// Figures against limits.
#[derive(Default)]
struct Table {
    missed: Vec<String>,
}

impl Table {
    fn at_most(&mut self, what: &str, value: f64, limit: f64) {
        let ok = value <= limit;
        println!("{} {what}: {value:.2} (limit <= {limit:.2})", if ok { "ok  " } else { "MISS" });
        if !ok {
            self.missed.push(what.to_owned());
        }
    }

    fn finish(self) {
        if !self.missed.is_empty() {
            println!("missed: {}", self.missed.join("; "));
            std::process::exit(1);
        }
    }
}
