//! The queue between the control loop and the encoder, and what happens when the disk fails.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::mp4::Storage;

const SIZE: FrameSize = FrameSize::new(32, 32);

/// A file whose thread says when it is about to write, and waits for leave.
struct Gated {
    file: File,
    writing: Sender<()>,
    leave: Receiver<()>,
    /// Writes that pass without leave: the front of the file.
    free: u32,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.free > 0 {
            self.free -= 1;
        } else {
            // After the test has dropped its ends everything passes.
            let _ = self.writing.send(());
            let _ = self.leave.recv();
        }
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Gated {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Storage for Gated {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fails with `kind` once it holds more than `room` bytes.
struct Small {
    file: File,
    room: usize,
    kind: io::ErrorKind,
}

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(self.kind)?;
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Small {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Storage for Small {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    folder: tempfile::TempDir,
    stream: VideoStream,
    writing: Receiver<()>,
    leave: Sender<()>,
}

impl Rig {
    fn new(queue_frames: usize, overflow: Overflow) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let (to_test, writing) = channel();
        let (leave, from_test) = channel();
        let file = File::create(&path).unwrap();
        let gated = Gated { file, writing: to_test, leave: from_test, free: 1 };
        let config = StreamConfig::default().with_queue(queue_frames, overflow);
        let stream = VideoStream::spawn_on(Box::new(gated), &path, &camera(SIZE), &config).unwrap();
        Self { folder, stream, writing, leave }
    }

    fn push(&mut self, i: u64) {
        self.stream.push(frame(SIZE, plain(SIZE, i), i)).unwrap();
    }

    /// Finishes with an encoder that is held up no more; the numbers of the pictures in the file.
    fn finish(self) -> (VideoReport, Vec<u64>) {
        let Self { folder, stream, writing, leave } = self;
        drop((writing, leave));
        let report = stream.finish().unwrap();
        let mut video = VideoReader::open(&folder.path().join("a.mp4")).unwrap();
        let numbers = (0..video.frames()).map(|i| counter(SIZE, video.frame(i).unwrap().rgb())).collect();
        (report, numbers)
    }
}

#[test]
fn a_full_queue_repeats_the_picture_before_and_reports_it() {
    let mut rig = Rig::new(2, Overflow::RepeatAndReport);
    rig.push(0);
    rig.writing.recv().unwrap(); // 0 is out of the queue and being written
    (1..=2).for_each(|i| rig.push(i));
    assert_eq!(rig.stream.repeated(), 0);
    (3..=5).for_each(|i| rig.push(i)); // no room for these
    assert_eq!(rig.stream.repeated(), 3);
    rig.leave.send(()).unwrap();
    rig.writing.recv().unwrap(); // 1 is out of the queue
    rig.push(6);
    assert_eq!((rig.stream.pushed(), rig.stream.repeated()), (7, 3));
    let (report, numbers) = rig.finish();
    assert_eq!(numbers, [0, 1, 2, 2, 2, 2, 6]);
    assert_eq!((report.frames, report.repeated), (7, 3));
    let mut stats = crate::image_stats::ImageStats::new();
    numbers.iter().for_each(|&i| stats.add(SIZE, &plain(SIZE, i)));
    assert_eq!(report.stats, stats, "a repeated picture counts each time");
}

#[test]
fn pictures_refused_at_the_very_end_are_repeated_too() {
    let mut rig = Rig::new(1, Overflow::RepeatAndReport);
    rig.push(0);
    rig.writing.recv().unwrap();
    (1..=4).for_each(|i| rig.push(i));
    let (report, numbers) = rig.finish();
    assert_eq!(numbers, [0, 1, 1, 1, 1]);
    assert_eq!((report.frames, report.repeated), (5, 3));
}

#[test]
fn a_blocking_queue_waits_and_loses_nothing() {
    let mut rig = Rig::new(1, Overflow::Block);
    rig.push(0);
    rig.writing.recv().unwrap();
    rig.push(1); // fills the queue
    let Rig { folder, mut stream, writing, leave } = rig;
    let (waiting, pushed) = channel();
    let producer = std::thread::spawn(move || {
        stream.push(frame(SIZE, plain(SIZE, 2), 2)).unwrap();
        waiting.send(()).unwrap();
        stream
    });
    assert!(pushed.try_recv().is_err(), "there is no room before the encoder goes on");
    drop((writing, leave));
    pushed.recv().unwrap();
    let report = producer.join().unwrap().finish().unwrap();
    assert_eq!((report.frames, report.repeated), (3, 0));
    assert_eq!(Mp4Index::read(&folder.path().join("a.mp4")).unwrap().samples.len(), 3);
}

#[test]
fn closing_the_input_returns_while_the_encoder_still_works() {
    let mut rig = Rig::new(4, Overflow::Block);
    (0..3).for_each(|i| rig.push(i));
    rig.writing.recv().unwrap();
    rig.stream.close_input(); // the encoder stands still in picture 0, so this waits for nothing
    let refused = rig.stream.push(frame(SIZE, plain(SIZE, 3), 3));
    assert!(matches!(refused, Err(Error::VideoClosed { state: "was closed", .. })));
    drop((rig.writing, rig.leave));
    assert_eq!(rig.stream.join().unwrap().frames, 3);
}

#[test]
fn a_full_disk_is_an_error_of_its_own_at_the_next_push_and_removes_the_file() {
    for (kind, full) in [
        (io::ErrorKind::StorageFull, true),
        (io::ErrorKind::QuotaExceeded, true),
        (io::ErrorKind::Other, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let config = StreamConfig::default().with_queue(1, Overflow::Block).with_frames_hint(10);
        let storage = Small { file: File::create(&path).unwrap(), room: 3000, kind };
        let mut stream = VideoStream::spawn_on(Box::new(storage), &path, &camera(SIZE), &config).unwrap();
        let error = (0..200).find_map(|i| stream.push(frame(SIZE, noisy(SIZE, i), i)).err()).unwrap();
        assert_eq!(matches!(error, Error::DiskFull { .. }), full, "{error}");
        assert_eq!(matches!(error, Error::Io { .. }), !full, "{error}");
        assert!(error.to_string().ends_with(&path.display().to_string()), "{error}");
        assert!(!path.exists());
        let again = stream.push(frame(SIZE, noisy(SIZE, 0), 0));
        assert!(matches!(again, Err(Error::VideoClosed { state: "has failed", .. })));
        assert!(stream.finish().is_err());
    }
}

#[test]
fn a_disk_that_fills_up_at_the_end_fails_the_finish() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let front = 32 + 1024 + 16;
    let storage =
        Small { file: File::create(&path).unwrap(), room: front + 300, kind: io::ErrorKind::StorageFull };
    let config = StreamConfig::default().with_frames_hint(0);
    let mut stream = VideoStream::spawn_on(Box::new(storage), &path, &camera(SIZE), &config).unwrap();
    stream.push(frame(SIZE, vec![7; SIZE.rgb_len()], 0)).unwrap();
    assert!(matches!(stream.finish(), Err(Error::DiskFull { .. })));
    assert!(!path.exists());
}

#[test]
fn an_aborted_or_dropped_stream_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for abort in [true, false] {
        let path = folder.path().join("a.mp4");
        let mut stream = VideoStream::spawn(&path, &camera(SIZE), &StreamConfig::default()).unwrap();
        (0..5).for_each(|i| stream.push(frame(SIZE, plain(SIZE, i), i)).unwrap());
        assert!(path.exists());
        if abort {
            stream.abort().unwrap();
        } else {
            drop(stream);
        }
        assert!(!path.exists());
    }
}

#[test]
fn a_picture_of_another_size_is_refused_and_the_stream_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let mut stream = VideoStream::spawn(&path, &camera(SIZE), &StreamConfig::default()).unwrap();
    stream.push(frame(SIZE, plain(SIZE, 0), 0)).unwrap();
    let other = FrameSize::new(64, 48);
    let refused = stream.push(frame(other, plain(other, 1), 1)).unwrap_err();
    assert!(
        matches!(&refused, Error::FrameSize { camera, got, .. } if camera == "main" && *got == other),
        "{refused}"
    );
    assert_eq!(stream.finish().unwrap().frames, 1);
}

#[test]
fn a_stream_without_pictures_or_without_a_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let stream = VideoStream::spawn(&path, &camera(SIZE), &StreamConfig::default()).unwrap();
    assert!(matches!(stream.finish(), Err(Error::Encode { frame: 0, .. })));
    assert!(!path.exists());
    let config = StreamConfig::default().with_queue(0, Overflow::Block);
    let refused = VideoStream::spawn(&path, &camera(SIZE), &config).err();
    assert!(matches!(refused, Some(Error::VideoSetting { setting: "queue_frames", .. })), "{refused:?}");
    assert!(matches!(
        VideoStream::spawn(&path, &camera(FrameSize::new(33, 32)), &StreamConfig::default()).err(),
        Some(Error::VideoSize { .. })
    ));
}
