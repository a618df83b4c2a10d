//! What cameras show, on drawn pictures.

use super::*;
use crate::clock::Timestamp;
use crate::preflight::cameras::RATE_FRAMES;

/// Blocks of brightness, moved to the right by `dx`, over `range` codes from `dark` on.
fn scene(dx: u32, dark: u8, range: u8) -> Frame {
    let size = crate::FrameSize::new(160, 120);
    let mut rgb = Vec::with_capacity(size.rgb_len());
    for y in 0..size.height {
        for x in 0..size.width {
            let (bx, by) = ((x + 160 - dx) / 9, y / 7);
            let noise = (bx * 7919 + by * 104_729 + bx * by * 31) % 251;
            let code = u32::from(dark) + noise * u32::from(range) / 251;
            rgb.extend([code.min(255) as u8; 3]);
        }
    }
    Frame::new(size, rgb, 0, Timestamp::ZERO).unwrap()
}

#[test]
fn a_camera_that_was_moved_blurred_or_darkened_is_told_from_the_one_of_the_reference() {
    let reference = Reference::of("main", &scene(0, 40, 180));
    let judge = |frame: &Frame| {
        let mut facts = CameraFacts::new("main");
        facts.see(frame, Some(&reference)).unwrap();
        Report::from_iter(cameras(&facts, &Limits::default()))
    };
    let of = |frame: &Frame, item| pick(&judge(frame), item);
    let same = judge(&scene(0, 40, 180));
    assert!(same.checks().iter().all(|c| c.verdict <= Verdict::Pass), "{}", same.table());
    let moved = of(&scene(12, 40, 180), Item::CameraFraming);
    assert!(moved.verdict == Verdict::Fail && moved.value.starts_with("+12."), "{moved:?}");
    let dark = of(&scene(0, 0, 12), Item::CameraLuma);
    assert!(dark.verdict == Verdict::Fail && dark.advice.contains("too dark"), "{dark:?}");
    assert_eq!(of(&scene(0, 40, 60), Item::CameraFocus).verdict, Verdict::Fail);
    assert_eq!(of(&scene(0, 160, 180), Item::CameraClipped).verdict, Verdict::Fail);
}

#[test]
fn controls_are_told_apart_by_locked_loose_and_refused() {
    for (controls, verdict, value) in [
        (vec![control(Some(500), Some(500), Automatic::Off)], Verdict::Pass, "exposure 500 us"),
        (vec![control(None, Some(500), Automatic::On)], Verdict::Warn, "exposure 500 us (automatic)"),
        (vec![], Verdict::Warn, "none is locked"),
        (vec![control(Some(500), None, Automatic::None)], Verdict::Fail, "exposure not told, wanted 500"),
        (
            vec![control(Some(5), Some(5), Automatic::On)],
            Verdict::Fail,
            "exposure 5 us (automatic), wanted 5",
        ),
    ] {
        let check = seen(Item::CameraControls, |f| f.controls = Some(controls));
        assert_eq!((check.verdict, check.value.as_str()), (verdict, value));
    }
}

#[test]
fn a_camera_in_order_passes() {
    for item in [Item::CameraSize, Item::CameraRate, Item::CameraJitter, Item::CameraDrops] {
        let check = filmed(item, |_| ());
        assert_eq!(check.verdict, Verdict::Pass, "{check:?}");
        assert_eq!(check.subject, "main");
    }
    assert!(filmed(Item::CameraRate, |_| ()).value.contains(&std::format!("{RATE_FRAMES} frames")));
}
