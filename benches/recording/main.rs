//! What recording costs, as CPU time and waits against their limits. Exits 1 when a limit is missed.
//!
//! Every figure is on the noisy scene (`scene.rs`), at the picture quality that is checked in the same run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench, not a library"
)]

mod scene;

use std::path::Path;
use std::time::{Duration, Instant};

use so101_dataset::video::VideoReader;
use so101_dataset::{DatasetSpec, DatasetWriter, WriterOptions};
use so101_hal::{
    Action, CameraSpec, Degrees, EpisodeEnd, EpisodeSink as _, EpisodeStart, Frame, JointVector, NamedFrame,
    Observation, Timestamp,
};

const FPS: u32 = 30;
const STEPS: usize = 90;

fn main() {
    let cameras = [CameraSpec::new("main", 640, 480), CameraSpec::new("gripper", 320, 240)];
    let pictures: Vec<Vec<Frame>> =
        cameras.iter().enumerate().map(|(k, c)| scene::frames(STEPS, c.size, k)).collect();
    let dir = tempfile::tempdir().unwrap();
    let mut table = Table::default();
    streaming(dir.path(), &cameras, &pictures, &mut table);
    real_time(dir.path(), &cameras, &pictures, &mut table);
    commits(dir.path(), &cameras, &pictures, &mut table);
    table.finish();
}

/// All pictures as fast as the encoder takes them: CPU a step, quality, bytes.
fn streaming(dir: &Path, cameras: &[CameraSpec], pictures: &[Vec<Frame>], table: &mut Table) {
    let path = dir.join("streaming");
    let mut writer = DatasetWriter::create(&path, spec(cameras), WriterOptions::default()).unwrap();
    let cpu = process_cpu();
    record(&mut writer, cameras, pictures, STEPS, |_| ());
    let saved = writer.finish().unwrap();
    assert_eq!(saved.episodes, 1);
    let step = (process_cpu() - cpu) / STEPS as u32;
    table.row(
        "two-camera streaming, CPU a step (a third of a core at 30 fps)",
        ms(step),
        1e3 / f64::from(FPS) / 3.0,
        "ms",
    );
    let mut bytes = 0;
    for (camera, frames) in cameras.iter().zip(pictures) {
        let file = path.join(format!("videos/observation.images.{}/chunk-000/file-000.mp4", camera.name));
        bytes += std::fs::metadata(&file).unwrap().len();
        let mut reader = VideoReader::open(&file).unwrap();
        let db: f64 = frames
            .iter()
            .enumerate()
            .map(|(i, f)| psnr_luma(f, &reader.frame(i as u64).unwrap()))
            .sum::<f64>()
            / STEPS as f64;
        table.at_least(&format!("PSNR-Y, camera {}", camera.name), db, 40.0, "dB");
    }
    println!("bytes a step: {}", bytes / STEPS as u64);
}

/// The same at 30 fps of real time: what the control thread spends and waits.
fn real_time(dir: &Path, cameras: &[CameraSpec], pictures: &[Vec<Frame>], table: &mut Table) {
    let mut writer =
        DatasetWriter::create(dir.join("real_time"), spec(cameras), WriterOptions::default()).unwrap();
    let mut spent = Vec::new();
    let start = Instant::now();
    let mut last = thread_cpu();
    record(&mut writer, cameras, pictures, STEPS, |i| {
        let now = thread_cpu();
        spent.push(now - last);
        std::thread::sleep(
            (start + Duration::from_secs(1) * (i as u32 + 1) / FPS).saturating_duration_since(Instant::now()),
        );
        last = thread_cpu();
    });
    spent.sort_unstable();
    let mean = spent.iter().sum::<Duration>() / STEPS as u32;
    table.row("control thread, CPU a frame, mean", ms(mean), 3.0, "ms");
    table.row("control thread, CPU a frame, p99", ms(spent[STEPS * 99 / 100]), 8.0, "ms");
    writer.finish().unwrap();

    let mut writer =
        DatasetWriter::create(dir.join("waits"), spec(cameras), WriterOptions::default()).unwrap();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        begin(&mut writer);
        for i in 0..STEPS / 3 {
            writer.add(&observation(cameras, pictures, i), &action(i)).unwrap();
            std::thread::sleep(
                (start + Duration::from_secs(1) * (i as u32 + 1) / FPS)
                    .saturating_duration_since(Instant::now()),
            );
        }
        let end = Instant::now();
        writer.end(&EpisodeEnd::default()).unwrap();
        waits.push(end.elapsed());
    }
    table.row(
        "loop waits after an episode's last frame, max of 4",
        ms(*waits.iter().max().unwrap()),
        30.0,
        "ms",
    );
    writer.finish().unwrap();
}

/// Durable commits of a growing set. The measured episodes are whole ones (3 s, both cameras, so that their videos have
/// to reach the disk too); those between only make the set longer.
fn commits(dir: &Path, cameras: &[CameraSpec], pictures: &[Vec<Frame>], table: &mut Table) {
    let path = dir.join("commits");
    let mut writer = DatasetWriter::create(&path, spec(cameras), WriterOptions::default()).unwrap();
    let mut times = Vec::new();
    for episode in 0..505 {
        let whole = (8..13).contains(&episode) || episode >= 500;
        record(&mut writer, cameras, pictures, if whole { STEPS } else { 2 }, |_| ());
        // One at a time, so that a commit is measured and no queue.
        times.extend(writer.wait_saved().unwrap().iter().map(|s| s.commit_time));
    }
    writer.finish().unwrap();
    let median = |lo: usize, hi: usize| {
        let mut t = times[lo..hi].to_vec();
        t.sort_unstable();
        ms(t[t.len() / 2])
    };
    table.row("durable commit at 10 episodes, median of 5", median(8, 13), 150.0, "ms");
    table.row("durable commit at 500 episodes, median of 5", median(500, 505), 400.0, "ms");
}

fn spec(cameras: &[CameraSpec]) -> DatasetSpec {
    DatasetSpec::so101(FPS, cameras.to_vec())
}

fn begin(writer: &mut DatasetWriter) {
    writer.begin(&EpisodeStart { task: "bench".to_owned(), ..EpisodeStart::default() }).unwrap();
}

fn record(
    writer: &mut DatasetWriter,
    cameras: &[CameraSpec],
    pictures: &[Vec<Frame>],
    n: usize,
    mut each: impl FnMut(usize),
) {
    begin(writer);
    for i in 0..n {
        writer.add(&observation(cameras, pictures, i), &action(i)).unwrap();
        each(i);
    }
    writer.end(&EpisodeEnd::default()).unwrap();
}

fn observation(cameras: &[CameraSpec], pictures: &[Vec<Frame>], i: usize) -> Observation {
    let frames = cameras
        .iter()
        .zip(pictures)
        .map(|(c, p)| NamedFrame { camera: c.name.as_str().into(), frame: p[i].clone() });
    let at = Timestamp::from_start(Duration::from_secs(1) * i as u32 / FPS);
    Observation { at, joints: joints(i), frames: frames.collect() }
}

fn action(i: usize) -> Action {
    Action { joints: joints(i + 1) }
}

fn joints(i: usize) -> JointVector<Degrees> {
    JointVector::<Degrees>::from_row(
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|j| 40.0 * (0.1 * i as f64 + j).sin()),
    )
}

/// Luma of BT.601 on both sides, so that chroma subsampling does not count.
fn psnr_luma(a: &Frame, b: &Frame) -> f64 {
    let luma = |p: &[u8]| {
        (0.299 * f64::from(p[0]) + 0.587 * f64::from(p[1]) + 0.114 * f64::from(p[2])) * 219.0 / 255.0
    };
    let sum: f64 =
        a.rgb().chunks_exact(3).zip(b.rgb().chunks_exact(3)).map(|(x, y)| (luma(x) - luma(y)).powi(2)).sum();
    10.0 * (255.0f64.powi(2) / (sum / (a.rgb().len() / 3) as f64).max(1e-9)).log10()
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

fn process_cpu() -> Duration {
    cpu(rustix::time::ClockId::ProcessCPUTime)
}

fn thread_cpu() -> Duration {
    cpu(rustix::time::ClockId::ThreadCPUTime)
}

fn cpu(clock: rustix::time::ClockId) -> Duration {
    let t = rustix::time::clock_gettime(clock);
    Duration::new(t.tv_sec.unsigned_abs(), t.tv_nsec.unsigned_abs() as u32)
}

/// Figures against limits.
#[derive(Default)]
struct Table {
    missed: Vec<String>,
}

impl Table {
    fn row(&mut self, what: &str, value: f64, limit: f64, unit: &str) {
        self.print(what, value, "<=", limit, unit, value <= limit);
    }
    fn at_least(&mut self, what: &str, value: f64, limit: f64, unit: &str) {
        self.print(what, value, ">=", limit, unit, value >= limit);
    }
    fn print(&mut self, what: &str, value: f64, sign: &str, limit: f64, unit: &str, ok: bool) {
        println!("{} {what}: {value:.2} {unit} (limit {sign} {limit:.2})", if ok { "ok  " } else { "MISS" });
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
