//! The whole driver against recorded replies: `tests/fixtures/camera/*.v4l2`, with lines of a test's own in front, which are
//! found first.

use alloc::format;
use alloc::vec::Vec;

use super::super::{Automatic, CameraSource, Content, PixelFormat, Setting, Stamps};
use super::*;
use crate::clock::VirtualClock;
use crate::error::Error;
use crate::frame::FrameSize;

const WEBCAM: &str = include_str!("../../../tests/fixtures/camera/webcam.v4l2");
const TAKEN: &str = include_str!("../../../tests/fixtures/camera/controls_taken.v4l2");
const JPEG: &[u8] = include_bytes!("../../../tests/fixtures/camera/red_blue.jpg");
const SIZE: FrameSize = FrameSize::new(64, 48);
/// Stamped by the kernel's monotonic clock, at the start of the exposure.
const GOOD: &str = "flags=0x12000";

fn replay(own: &str) -> Replay {
    let text = format!("{own}\n{TAKEN}\n{WEBCAM}");
    let mut padded = JPEG.to_vec();
    padded.resize(JPEG.len() + 200, 0);
    let grey: Vec<u8> = [128, 128].repeat(64 * 48);
    Replay::parse(&text)
        .unwrap()
        .with_data("whole", JPEG)
        .with_data("padded", &padded)
        .with_data("half", &JPEG[..JPEG.len() / 2])
        .with_data("grey", &grey)
}

fn config() -> CameraConfig {
    let mut config = CameraConfig::new("main", CameraSource::V4l2("/nowhere/video0".into()));
    config.size = SIZE;
    config
}

fn locked() -> CameraConfig {
    let mut config = config();
    config.controls.exposure_us = Some(Setting::Locked(15_600));
    config.controls.gain = Some(Setting::Locked(20));
    config.controls.white_balance_k = Some(Setting::Locked(4600));
    config.controls.power_line_hz = Some(Setting::Locked(50));
    config
}

fn start_with(own: &str, config: &CameraConfig) -> Result<(V4l2Camera<Replay>, VirtualClock)> {
    let clock = VirtualClock::new();
    clock.sleep_until(Timestamp::from_start(Duration::from_secs(100)));
    let camera = V4l2Camera::start(replay(own), config, "/nowhere/video0", Arc::new(clock.clone()))?;
    Ok((camera, clock))
}

fn start(own: &str) -> V4l2Camera<Replay> {
    start_with(own, &config()).unwrap().0
}

fn refused(own: &str, config: &CameraConfig) -> Error {
    start_with(own, config).map(|_| ()).unwrap_err()
}

/// A line for a picture.
fn picture(index: u32, sequence: u32, ms: u64, more: &str) -> String {
    format!("DQBUF -> index={index} sequence={sequence} time_us={} {more}\n", 1000 * ms)
}

#[test]
fn everything_is_agreed_in_the_kernels_order_and_told() {
    let camera = start("");
    let calls: Vec<&str> = camera.calls().asked().iter().map(|c| c.split(' ').next().unwrap()).collect();
    let mut order = calls.clone();
    order.dedup();
    order.retain(|c| !matches!(*c, "QUERYCTRL" | "G_CTRL" | "QUERYBUF" | "QBUF"));
    assert_eq!(order, ["QUERYCAP", "ENUM_FMT", "S_FMT", "G_PARM", "S_PARM", "REQBUFS", "STREAMON"]);
    assert_eq!(calls.iter().filter(|c| **c == "QBUF").count(), 4, "all buffers are given before the start");
    assert!(!calls.contains(&"S_CTRL"), "nothing is set that nobody asked for");
    let device = Camera::device(&camera).unwrap();
    assert_eq!((device.driver.as_str(), device.card.as_str()), ("uvcvideo", "HD Webcam: HD Webcam"));
    assert_eq!((device.format.as_str(), device.fps, device.fps_wanted), ("MJPG", Some(30.0), 30));
    assert_eq!(device.path.as_deref(), Some("/nowhere/video0"));
}

#[test]
fn a_picture_has_its_bytes_its_number_and_the_time_that_the_kernel_stamped() {
    let own = [
        picture(0, 7, 40_000, &format!("{GOOD} data=padded")),
        picture(1, 8, 40_033, &format!("{GOOD} data=whole")),
    ];
    let mut camera = start(&own.concat());
    let mut buffers = Buffers::new();
    let first = camera.grab(&mut buffers).unwrap();
    // The stamp is 5 ms old when the picture is taken, whatever the two clocks count from.
    assert_eq!((first.sequence, first.captured.since_start()), (0, Duration::from_millis(99_995)));
    assert_eq!(first.content, Content::Jpeg(Arc::from(JPEG)), "without the padding");
    let frame = camera.grab(&mut buffers).unwrap().decode(&config().spec(), &mut buffers).unwrap();
    assert_eq!((frame.sequence, frame.rgb()[0] > 240), (1, true));
    assert_eq!(frame.jpeg().map(|j| &j[..]), Some(JPEG));
    assert_eq!(Camera::device(&camera).unwrap().stamps, Stamps::StartOfExposure);
    let given: Vec<_> = camera.calls().asked().iter().filter(|c| c.starts_with("QBUF")).skip(4).collect();
    assert!(given[0].starts_with("QBUF index=0") && given[1].starts_with("QBUF index=1"), "{given:?}");
}

#[test]
fn a_driver_that_does_not_stamp_gets_the_time_of_arrival() {
    for flags in ["flags=0", "flags=0x4000 time_us=5000", "flags=0x12000 time_us=0"] {
        let (mut camera, _) =
            start_with(&format!("DQBUF -> index=0 sequence=1 data=whole {flags}"), &config()).unwrap();
        let picture = camera.grab(&mut Buffers::new()).unwrap();
        assert_eq!(picture.captured.since_start(), Duration::from_secs(100), "{flags}");
        assert_eq!(Camera::device(&camera).unwrap().stamps, Stamps::Arrival);
    }
    let mut camera = start(&picture(0, 1, 9, "flags=0x2000 data=whole"));
    camera.grab(&mut Buffers::new()).unwrap();
    assert_eq!(Camera::device(&camera).unwrap().stamps, Stamps::EndOfFrame);
}

#[test]
fn gaps_of_the_kernels_numbers_stay_gaps_also_across_their_32_bits() {
    let numbers = [u32::MAX - 1, u32::MAX, 2, 3];
    let own: String = numbers
        .iter()
        .zip(0..)
        .map(|(&n, k)| picture(k, n, 1000 + 33 * u64::from(k), &format!("{GOOD} data=whole")))
        .collect();
    let mut camera = start(&own);
    let mut buffers = Buffers::new();
    let ours: Vec<u64> = (0..4).map(|_| camera.grab(&mut buffers).unwrap().sequence).collect();
    assert_eq!(ours, [0, 1, 4, 5]);
}

#[test]
fn a_driver_that_does_not_count_or_begins_again_gives_one_picture_after_the_other() {
    let mut numbers = Numbers::default();
    let ours: Vec<u64> = [9, 9, 9, 0, 1, 3].iter().map(|&n| numbers.of(n)).collect();
    assert_eq!(ours, [0, 1, 2, 3, 4, 6]);
}

#[test]
fn what_is_no_picture_is_told_as_such_and_the_next_one_comes() {
    let own = [
        picture(0, 0, 10, &format!("{GOOD} data=half")),
        picture(1, 1, 20, "flags=0x12040 data=whole"),
        picture(2, 2, 30, &format!("{GOOD} bytesused=0")),
        picture(3, 3, 40, &format!("{GOOD} data=whole bytesused=99999")),
        picture(0, 4, 50, &format!("{GOOD} data=whole")),
    ];
    let mut camera = start(&own.concat());
    let mut buffers = Buffers::new();
    for has in ["no whole JPEG", "USB bus", "without bytes", "without bytes"] {
        let picture = camera.grab(&mut buffers).unwrap();
        assert!(matches!(&picture.content, Content::Damaged(why) if why.contains(has)), "{has}: {picture:?}");
        assert!(matches!(picture.decode(&config().spec(), &mut buffers), Err(Error::PictureDamaged { .. })));
    }
    assert!(camera.grab(&mut buffers).unwrap().decode(&config().spec(), &mut buffers).is_ok());
}

#[test]
fn yuyv_is_taken_where_it_is_asked_for_and_a_short_picture_is_damaged() {
    let own = [
        picture(0, 0, 10, &format!("{GOOD} data=grey")),
        picture(1, 1, 20, &format!("{GOOD} data=grey bytesused=6143")),
    ];
    let mut config = config();
    config.format = PixelFormat::Yuyv;
    let (mut camera, _) = start_with(&own.concat(), &config).unwrap();
    assert_eq!(Camera::device(&camera).unwrap().format, "YUYV");
    let mut buffers = Buffers::new();
    let frame = camera.grab(&mut buffers).unwrap().decode(&config.spec(), &mut buffers).unwrap();
    // (128 - 16) / 219 of 255.
    assert_eq!((&frame.rgb()[..3], frame.jpeg()), ([130, 130, 130].as_slice(), None));
    let short = camera.grab(&mut buffers).unwrap().decode(&config.spec(), &mut buffers);
    assert!(matches!(short, Err(Error::PictureDamaged { sequence: 1, .. })), "{short:?}");
}

#[test]
fn a_camera_without_mjpg_gives_yuyv_unless_mjpg_is_asked_for() {
    let own = "ENUM_FMT index=0 -> pixelformat=YUYV\nENUM_FMT index=1 -> pixelformat=NV12\nENUM_FMT index=2 -> EINVAL";
    let (camera, _) = start_with(own, &config()).unwrap();
    assert_eq!(Camera::device(&camera).unwrap().format, "YUYV");
    let mut config = config();
    config.format = PixelFormat::Mjpg;
    let err = refused(own, &config);
    assert!(matches!(&err, Error::CameraFormat { offered, .. } if offered == "YUYV, NV12"), "{err}");
}

#[test]
fn a_size_that_the_camera_does_not_have_is_refused_with_those_it_has() {
    let mut config = config();
    config.size = FrameSize::new(800, 600);
    let err = refused("", &config).to_string();
    assert!(err.contains("MJPG 800x600") && err.contains("64x48, 1280x720"), "{err}");
}

#[test]
fn controls_are_locked_with_their_automatic_off_first_and_read_back() {
    let (camera, _) = start_with("", &locked()).unwrap();
    let set: Vec<_> = camera.calls().asked().iter().filter(|c| c.starts_with("S_CTRL")).cloned().collect();
    let hex = |id: u32, value: i32| match value {
        0 => format!("S_CTRL id={id}"),
        v => format!("S_CTRL id={id} value={v}"),
    };
    let expected = [
        hex(abi::CID_EXPOSURE_AUTO, 1),
        hex(abi::CID_EXPOSURE_AUTO_PRIORITY, 0),
        hex(abi::CID_EXPOSURE_ABSOLUTE, 156),
        hex(abi::CID_GAIN, 20),
        hex(abi::CID_AUTO_WHITE_BALANCE, 0),
        hex(abi::CID_WHITE_BALANCE_TEMPERATURE, 4600),
        hex(abi::CID_POWER_LINE_FREQUENCY, 1),
    ];
    assert_eq!(set, expected);
    let device = Camera::device(&camera).unwrap();
    let got: Vec<_> = device.controls.iter().map(|c| (c.name, c.got, c.automatic, c.took())).collect();
    use Automatic::{None as No, Off};
    assert_eq!(
        got,
        [
            ("exposure", Some(15_600), Off, true),
            ("gain", Some(20), No, true),
            ("white_balance", Some(4600), Off, true),
            ("power_line", Some(50), No, true),
        ]
    );
    assert_eq!(device.refused().count(), 0);
}

#[test]
fn a_locked_control_that_did_not_take_is_reported_with_both_values() {
    let mut config = locked();
    config.controls.focus = Some(Setting::Locked(30));
    // The exposure is limited to 33 ms by the driver, the gain is refused, white balance goes on by itself.
    config.controls.exposure_us = Some(Setting::Locked(50_000));
    let own = "S_CTRL id=0x9a0902 value=500 -> ok\nG_CTRL id=0x9a0902 -> value=333\n\
               S_CTRL id=0x980913 -> EIO\nG_CTRL id=0x980913 -> value=64\n\
               G_CTRL id=0x98090c -> value=1\nS_CTRL id=0x980918 -> EBUSY\nG_CTRL id=0x980918 -> value=3";
    let (camera, _) = start_with(own, &config).unwrap();
    let words: Vec<_> = Camera::device(&camera).unwrap().refused().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "exposure 33300 us, wanted 50000 of 300 to 204700",
            "gain 64, wanted 20 of 0 to 100 [set: EIO]",
            "white_balance 4600 K (automatic), wanted 4600 of 2800 to 6500",
            "power_line not told (automatic), wanted 50 [set: EBUSY]",
            "focus not told, wanted 30 [the camera has no such control]",
        ]
    );
}

#[test]
fn controls_that_the_start_of_the_stream_has_reset_are_set_again_after_the_first_picture() {
    // Read back right after it was set, again after the first picture, and once more after it was set anew.
    let reads =
        "G_CTRL id=0x980913 -> value=20\nG_CTRL id=0x980913 -> value=0\nG_CTRL id=0x980913 -> value=20\n";
    let own = format!("{reads}{}", picture(0, 0, 10, &format!("{GOOD} data=whole")));
    let (mut camera, _) = start_with(&own, &locked()).unwrap();
    let sets = |c: &V4l2Camera<Replay>| {
        c.calls().asked().iter().filter(|a| a.starts_with("S_CTRL id=9963795")).count()
    };
    assert_eq!(sets(&camera), 1);
    camera.grab(&mut Buffers::new()).unwrap();
    assert_eq!((sets(&camera), Camera::device(&camera).unwrap().refused().count()), (2, 0));
}

#[test]
fn a_control_that_drifts_later_is_seen() {
    let (mut camera, _) =
        start_with("G_CTRL id=0x980913 -> value=20\nG_CTRL id=0x980913 -> value=21", &locked()).unwrap();
    let reports = camera.check_controls().unwrap();
    let gain = reports.iter().find(|r| r.name == "gain").unwrap();
    assert_eq!((gain.got, gain.wanted, gain.took()), (Some(21), Some(20), false));
}

#[test]
fn automatic_is_switched_on_where_it_is_asked_for_and_values_that_are_none_are_told() {
    let mut config = config();
    config.controls.exposure_us = Some(Setting::Auto);
    config.controls.power_line_hz = Some(Setting::Locked(55));
    let own = "S_CTRL id=0x9a0901 value=3 -> EINVAL\nS_CTRL id=0x9a0901 -> ok\nG_CTRL id=0x9a0901 -> value=0";
    let (camera, _) = start_with(own, &config).unwrap();
    let controls = &Camera::device(&camera).unwrap().controls;
    assert_eq!((controls[0].automatic, controls[0].wanted, controls[0].held()), (Automatic::On, None, None));
    let mains = controls.iter().find(|c| c.name == "power_line").unwrap();
    assert!(!mains.took() && mains.fault.as_deref().unwrap().contains("55 Hz is no value"), "{mains}");
}

#[test]
fn each_way_to_fail_is_an_error_of_its_own() {
    for (own, has) in [
        ("QUERYCAP -> ENOTTY", "no video device"),
        ("QUERYCAP -> capabilities=0x84a00001 device_caps=0x04a00000", "does not capture video"),
        ("QUERYCAP -> capabilities=0x1 device_caps=0", "no streaming"),
        ("S_FMT -> EBUSY", "another program"),
        ("REQBUFS -> EBUSY", "another program"),
        ("REQBUFS -> count=1", "1 buffers"),
        ("STREAMON -> ENOSPC", "bandwidth"),
        ("STREAMON -> EIO", "cannot start the camera"),
        ("S_PARM -> ENODEV", "main is gone"),
        ("QUERYBUF -> ENODEV", "main is gone"),
    ] {
        let err = refused(own, &config()).to_string();
        assert!(err.contains(has), "{own}: {err}");
    }
    let unplugged_while_locking = refused("S_CTRL -> ENODEV", &locked());
    assert!(matches!(unplugged_while_locking, Error::CameraGone { .. }));
}

#[test]
fn a_rate_that_cannot_be_set_is_no_reason_to_refuse() {
    for (own, fps) in [
        ("G_PARM -> ENOTTY", None),
        ("G_PARM -> capability=0 numerator=1 denominator=25", Some(25.0)),
        ("S_PARM -> EINVAL", None),
        ("S_PARM -> numerator=1 denominator=20", Some(20.0)),
    ] {
        assert_eq!(Camera::device(&start(own)).unwrap().fps, fps, "{own}");
    }
}

#[test]
fn an_unplug_and_a_silence_are_told_apart() {
    let mut camera = start(&format!(
        "WAIT -> TIMEOUT\n{}DQBUF -> ENODEV",
        picture(0, 0, 10, &format!("{GOOD} data=whole"))
    ));
    let mut buffers = Buffers::new();
    assert!(matches!(camera.grab(&mut buffers), Err(Error::CameraSilent { waited_ms: 2000, .. })));
    camera.grab(&mut buffers).unwrap();
    let err = camera.grab(&mut buffers).unwrap_err();
    assert!(matches!(&err, Error::CameraGone { path, .. } if path == "/nowhere/video0"), "{err}");
}

#[test]
fn without_a_thread_the_newest_of_the_waiting_pictures_is_given() {
    let own: String =
        (0..3).map(|k| picture(k, k, 10 + u64::from(k), &format!("{GOOD} data=whole"))).collect();
    let mut camera = start(&own);
    assert_eq!(camera.capture().unwrap().sequence, 2);
}

#[test]
fn the_stream_is_stopped_at_the_end() {
    let calls = Recorder::new(replay(""));
    let log = calls.log();
    drop(V4l2Camera::start(calls, &config(), "/nowhere/video0", Arc::new(VirtualClock::new())).unwrap());
    assert!(log.text().ends_with("STREAMOFF kind=1 -> ok\n"), "{}", log.text());
}

#[test]
fn what_a_recorder_writes_down_plays_back_as_it_was() {
    let own = [picture(0, 7, 40_000, &format!("{GOOD} data=whole")), "DQBUF -> ENODEV".into()];
    let run = |calls: Recorder<Replay>| {
        let clock = Arc::new(VirtualClock::new());
        let mut camera = V4l2Camera::start(calls, &locked(), "/nowhere/video0", clock).unwrap();
        let mut buffers = Buffers::new();
        let picture = camera.grab(&mut buffers).unwrap();
        assert!(camera.grab(&mut buffers).is_err());
        (
            camera.calls().log().text(),
            Camera::device(&camera).unwrap().clone(),
            picture.sequence,
            picture.captured,
        )
    };
    let first = run(Recorder::new(replay(&own.concat())));
    let again = run(Recorder::new(Replay::parse(&first.0).unwrap()));
    assert_eq!(first.0.lines().collect::<Vec<_>>(), again.0.lines().collect::<Vec<_>>());
    assert_eq!((first.1, first.2, first.3), (again.1, again.2, again.3));
}

#[test]
fn formats_sizes_and_rates_are_listed() {
    let formats = formats(&mut replay("")).unwrap();
    let names: Vec<_> = formats.iter().map(|f| (f.fourcc.as_str(), f.description.as_str())).collect();
    assert_eq!(names, [("MJPG", "Motion-JPEG"), ("YUYV", "YUYV 4:2:2")]);
    assert_eq!(formats[0].sizes.len(), 2);
    assert_eq!(
        (formats[0].sizes[1].size, &formats[0].sizes[1].fps),
        (FrameSize::new(1280, 720), &alloc::vec![30.0, 15.0])
    );
    let range = "ENUM_FRAMESIZES index=0 pixel_format=MJPG -> kind=3 width=32 height=1920 step_width=8 min_height=24 \
                 max_height=1080 step_height=8";
    let ends: Vec<_> = super::formats(&mut replay(range)).unwrap()[0].sizes.iter().map(|s| s.size).collect();
    assert_eq!(ends, [FrameSize::new(32, 24), FrameSize::new(1920, 1080)]);
}

#[test]
fn lines_that_are_none_are_refused_by_number() {
    for bad in [
        "QUERYCAP",
        "QUERYCAP -> ",
        "querycap -> ok",
        "QUERYCAP -> EWHAT",
        "QUERYCAP x -> ok",
        "QUERYCAP -> a=\"b",
    ] {
        let err = Replay::parse(&format!("# fine\n{bad}")).unwrap_err();
        assert!(matches!(err, Error::CameraReplayLine { line: 2, .. }), "{bad}: {err}");
    }
}
