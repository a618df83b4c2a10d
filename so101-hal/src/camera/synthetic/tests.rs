use super::*;
use crate::camera::framing::Reference;
use crate::camera::quality::{Pace, clipped_share, focus_measure, mean_luma};
use crate::clock::VirtualClock;
use alloc::vec::Vec;

const SPEC: FrameSize = FrameSize::new(160, 120);

fn camera(options: SyntheticOptions) -> (SyntheticCamera, VirtualClock) {
    let clock = VirtualClock::new();
    let spec = CameraSpec { name: "main".into(), size: SPEC };
    (SyntheticCamera::new(spec, options, Arc::new(clock.clone())), clock)
}

fn first(options: SyntheticOptions) -> Frame {
    camera(options).0.capture().unwrap()
}

fn plain() -> SyntheticOptions {
    SyntheticOptions::default()
}

#[test]
fn equal_seeds_give_equal_pictures_and_the_disc_moves() {
    let take = |seed| {
        let (mut c, _) = camera(SyntheticOptions { seed, noise: 3, ..plain() });
        (0..5).map(|_| c.capture().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(take(7), take(7));
    assert_ne!(take(7)[0].rgb(), take(8)[0].rgb());
    let (mut still, _) = camera(plain());
    assert_ne!(still.capture().unwrap().rgb(), still.capture().unwrap().rgb(), "the disc moves");
}

#[test]
fn luminance_blur_and_shift_are_what_was_asked_for() {
    for luminance in [8.0, 60.0, 128.0, 240.0] {
        let mean = mean_luma(&first(SyntheticOptions { luminance, ..plain() }));
        assert!((mean - luminance).abs() < 2.5, "{luminance}: {mean}");
    }
    assert!(clipped_share(&first(SyntheticOptions { luminance: 255.0, ..plain() })).high > 0.9);
    assert!(clipped_share(&first(SyntheticOptions { luminance: 0.0, ..plain() })).low > 0.9);
    let focus = |blur_px| focus_measure(&first(SyntheticOptions { blur_px, ..plain() }));
    assert!(focus(0) > 3.0 * focus(1) && focus(1) > 3.0 * focus(4), "{} {} {}", focus(0), focus(1), focus(4));
    let shifted = first(SyntheticOptions { shift_px: [-6.5, 9.0], noise: 4, luminance: 90.0, ..plain() });
    let found = Reference::of("main", &first(plain())).shift_of(&shifted).unwrap();
    assert!(
        (found.dx_px + 6.5).abs() < 1.0 && (found.dy_px - 9.0).abs() < 1.0 && found.is_certain(),
        "{found:?}"
    );
}

#[test]
fn pictures_come_at_the_rate_and_lost_ones_leave_a_gap() {
    let (mut c, _) = camera(SyntheticOptions { fps: 20, drop_every: 5, ..plain() });
    let stamps: Vec<_> = (0..20).map(|_| c.capture().unwrap()).map(|f| (f.sequence, f.captured)).collect();
    let pace = Pace::of(&stamps);
    assert!((pace.fps - 20.0).abs() < 1e-6 && pace.jitter < Duration::from_nanos(50), "{pace:?}");
    assert_eq!((pace.frames, pace.dropped, stamps[4].0), (20, 4, 5));
}

#[test]
fn late_pictures_are_jitter() {
    let (mut c, _) = camera(SyntheticOptions { late_ms: 10, ..plain() });
    let stamps: Vec<_> = (0..30).map(|_| c.capture().unwrap()).map(|f| (f.sequence, f.captured)).collect();
    let jitter = Pace::of(&stamps).jitter;
    assert!(jitter > Duration::from_millis(9) && jitter < Duration::from_millis(11), "{jitter:?}");
}

#[test]
fn a_caller_who_was_away_gets_the_picture_of_now() {
    let (mut c, clock) = camera(SyntheticOptions { fps: 10, ..plain() });
    assert_eq!(c.capture().unwrap().sequence, 0);
    clock.sleep_until(Timestamp::from_start(Duration::from_millis(1_050)));
    let frame = c.capture().unwrap();
    assert_eq!((frame.sequence, frame.captured.since_start().as_millis()), (10, 1_000));
}

#[test]
fn a_wrong_size_damage_and_an_unplug_are_typed_errors() {
    let (mut c, _) = camera(SyntheticOptions { delivers: Some(FrameSize::new(80, 60)), ..plain() });
    let err = c.capture().unwrap_err();
    assert!(
        matches!(err, Error::CameraSize { expected: SPEC, got: FrameSize { width: 80, height: 60 }, .. }),
        "{err}"
    );

    let (mut c, _) = camera(SyntheticOptions { damage_every: 3, ..plain() });
    let results: Vec<_> = (0..6).map(|_| c.capture()).collect();
    let damaged: Vec<usize> = (0..6).filter(|&i| results[i].is_err()).collect();
    assert_eq!(damaged, [2, 5]);
    assert!(matches!(results[2], Err(Error::PictureDamaged { sequence: 2, .. })));

    let (mut c, _) = camera(SyntheticOptions { unplug_after: Some(1), ..plain() });
    c.capture().unwrap();
    assert!(matches!(c.capture(), Err(Error::CameraGone { .. })));
}
