//! The tests drive the source by hand, through a channel: nothing sleeps, nothing depends on how fast the machine is.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::clock::{Timestamp, VirtualClock};
use crate::frame::FrameSize;

const JPEG: &[u8] = include_bytes!("../../../tests/fixtures/camera/red_blue.jpg");
const SIZE: FrameSize = FrameSize::new(64, 48);

/// The number of a picture at which the driver panics.
const PANICS: u64 = 666;

/// A driver whose deliveries are sent by the test.
struct Manual {
    spec: CameraSpec,
    deliveries: Mutex<Receiver<Result<Picture>>>,
}

impl Source for Manual {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }
    fn grab(&mut self, _buffers: &mut Buffers) -> Result<Picture> {
        // The test has gone: so has the device.
        let gone = || Error::CameraGone { camera: "main".into(), path: "test".into() };
        let picture = self.deliveries.lock().unwrap().recv().unwrap_or_else(|_| Err(gone()))?;
        assert_ne!(picture.sequence, PANICS, "planted");
        Ok(picture)
    }
}

struct Rig {
    send: Option<Sender<Result<Picture>>>,
    clock: VirtualClock,
    camera: CameraThread,
}

fn picture(sequence: u64, ms: u64, content: Content) -> Picture {
    Picture { sequence, captured: Timestamp::from_start(Duration::from_millis(ms)), content }
}

fn jpeg() -> Content {
    Content::Jpeg(Arc::from(JPEG))
}

fn rig(decode: Decode) -> Rig {
    let (send, deliveries) = channel();
    let clock = VirtualClock::new();
    let source =
        Manual { spec: CameraSpec { name: "main".into(), size: SIZE }, deliveries: Mutex::new(deliveries) };
    send.send(Ok(picture(0, 0, jpeg()))).unwrap();
    let options = ThreadOptions { decode, ..ThreadOptions::default() };
    let camera = CameraThread::spawn(Box::new(source), Arc::new(clock.clone()), options).unwrap();
    Rig { send: Some(send), clock, camera }
}

impl Rig {
    /// Sends a delivery and waits until it is the newest one.
    fn deliver(&mut self, picture: Picture) {
        let before = picture.sequence - 1;
        self.send.as_ref().unwrap().send(Ok(picture)).unwrap();
        self.camera.picture_after(Some(before), Duration::from_secs(20)).unwrap();
    }

    fn at(&self, ms: u64) {
        self.clock.sleep_until(Timestamp::from_start(Duration::from_millis(ms)));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Before the camera, whose thread waits for it.
        self.send = None;
    }
}

#[test]
fn the_newest_picture_is_given_with_its_number_and_time_on_either_thread() {
    for decode in [Decode::OnThread, Decode::OnCapture] {
        let mut rig = rig(decode);
        rig.deliver(picture(1, 33, jpeg()));
        rig.deliver(picture(2, 66, jpeg()));
        rig.at(70);
        let frame = rig.camera.capture().unwrap();
        assert_eq!((frame.sequence, frame.captured.since_start().as_millis()), (2, 66));
        assert_eq!(frame.jpeg().map(|j| &j[..]), Some(JPEG));
        assert_eq!(rig.camera.capture().unwrap(), frame, "the same picture again has the same number");
        let stats = rig.camera.stats();
        assert_eq!((stats.frames, stats.dropped, stats.repeated, stats.stale), (3, 0, 1, 0));
    }
}

#[test]
fn an_old_picture_is_an_error_and_counted() {
    let mut rig = rig(Decode::OnThread);
    rig.at(200);
    rig.camera.capture().unwrap();
    rig.at(201);
    let err = rig.camera.capture().unwrap_err();
    assert!(matches!(err, Error::CameraStale { age_ms: 201, max_age_ms: 200, .. }), "{err}");
    assert_eq!(rig.camera.stats().stale, 1);
    rig.deliver(picture(1, 190, jpeg()));
    assert_eq!(rig.camera.capture().unwrap().sequence, 1);
}

#[test]
fn a_damaged_picture_is_never_replaced_by_the_one_before() {
    for decode in [Decode::OnThread, Decode::OnCapture] {
        let mut rig = rig(decode);
        rig.camera.capture().unwrap();
        rig.deliver(picture(1, 33, Content::Jpeg(Arc::from(&JPEG[..JPEG.len() / 2]))));
        let err = rig.camera.capture().unwrap_err();
        assert!(matches!(err, Error::PictureDamaged { sequence: 1, .. }), "{err}");
        assert_eq!(rig.camera.stats().jpeg_errors, 1, "{decode:?}");
        assert_eq!(rig.camera.last_good().unwrap().sequence, 0, "{decode:?}");
        rig.deliver(picture(2, 66, jpeg()));
        assert_eq!(rig.camera.capture().unwrap().sequence, 2);
        assert_eq!(rig.camera.last_good().unwrap().sequence, 2);
    }
}

#[test]
fn gaps_damage_and_other_sizes_are_counted_and_the_rate_is_measured() {
    let mut rig = rig(Decode::OnThread);
    for k in [1, 2, 5, 6, 7] {
        rig.deliver(picture(k, 100 * k, jpeg()));
    }
    rig.deliver(picture(8, 800, Content::Damaged("flagged by the driver".into())));
    rig.deliver(picture(9, 900, Content::OtherSize(FrameSize::new(1, 1))));
    let err = rig.camera.capture().unwrap_err();
    assert!(matches!(err, Error::CameraSize { expected: SIZE, .. }), "{err}");
    let stats = rig.camera.stats();
    assert_eq!((stats.frames, stats.dropped, stats.jpeg_errors, stats.size_errors), (8, 2, 1, 1));
    assert!((stats.fps - 10.0).abs() < 1e-9 && stats.jitter < Duration::from_micros(1), "{stats:?}");
}

#[test]
fn an_unplugged_camera_says_so_at_once_and_then_that_it_has_stopped() {
    let mut rig = rig(Decode::OnThread);
    rig.camera.capture().unwrap();
    rig.send = None;
    // The newest picture is young enough still; nothing newer will come.
    let err = rig.camera.wait_newer(0).unwrap_err();
    assert!(matches!(err, Error::CameraGone { .. }), "{err}");
    let err = rig.camera.capture().unwrap_err();
    assert!(matches!(&err, Error::CameraStopped { why, .. } if why.contains("is gone")), "{err}");
}

#[test]
fn a_panic_of_a_driver_is_told_and_not_an_old_picture_for_ever() {
    let mut rig = rig(Decode::OnThread);
    rig.camera.capture().unwrap();
    rig.send.as_ref().unwrap().send(Ok(picture(PANICS, 33, jpeg()))).unwrap();
    let err = rig.camera.wait_newer(0).unwrap_err();
    assert!(matches!(&err, Error::CameraStopped { why, .. } if why.contains("panicked")), "{err}");
}

#[test]
fn a_silence_is_counted_and_the_thread_goes_on() {
    let mut rig = rig(Decode::OnThread);
    let silent = Error::CameraSilent { camera: "main".into(), waited_ms: 9 };
    rig.send.as_ref().unwrap().send(Err(silent)).unwrap();
    rig.deliver(picture(1, 33, jpeg()));
    assert_eq!(rig.camera.stats().silences, 1);
}

#[test]
fn a_camera_that_gives_no_first_picture_does_not_start() {
    let (send, deliveries) = channel();
    let source =
        Manual { spec: CameraSpec { name: "main".into(), size: SIZE }, deliveries: Mutex::new(deliveries) };
    send.send(Err(Error::CameraBandwidth { path: "/dev/video0".into() })).unwrap();
    let err = CameraThread::spawn(Box::new(source), Arc::new(VirtualClock::new()), ThreadOptions::default());
    assert!(matches!(err, Err(Error::CameraBandwidth { .. })));
}

#[test]
fn buffers_come_back_where_nobody_keeps_the_pictures() {
    let mut rig = rig(Decode::OnThread);
    let mut places = std::collections::BTreeSet::new();
    for k in 1..40 {
        rig.deliver(picture(k, 33 * k, jpeg()));
        rig.at(33 * k);
        places.insert(rig.camera.capture().unwrap().rgb().as_ptr() as usize);
    }
    assert!(places.len() <= 5, "{} buffers for 39 pictures", places.len());
}
