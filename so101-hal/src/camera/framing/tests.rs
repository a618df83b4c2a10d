use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;

/// A picture of seeded texture, of which any window can be taken: value noise of three sizes.
fn texture(seed: u64, x: f64, y: f64) -> f64 {
    let lattice = |ix: i64, iy: i64, octave: u64| {
        let mut h = seed
            ^ (ix as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ octave.wrapping_mul(0xff51_afd7_ed55_8ccd);
        h = (h ^ (h >> 31)).wrapping_add((iy as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
        h = (h ^ (h >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((h ^ (h >> 32)) & 0xffff) as f64 / 65_535.0
    };
    [(3.0, 0.3), (11.0, 0.4), (37.0, 0.3)]
        .iter()
        .enumerate()
        .map(|(octave, (cell, weight))| {
            let (u, v) = (x / cell, y / cell);
            let (ix, iy) = (u.floor(), v.floor());
            let (fx, fy) = (u - ix, v - iy);
            let at = |i: i64, j: i64| lattice(ix as i64 + i, iy as i64 + j, octave as u64);
            let top = at(0, 0) * (1.0 - fx) + at(1, 0) * fx;
            let bottom = at(0, 1) * (1.0 - fx) + at(1, 1) * fx;
            weight * (top * (1.0 - fy) + bottom * fy)
        })
        .sum()
}

struct View {
    seed: u64,
    shift: [f64; 2],
    gain: f64,
    offset: f64,
    noise: f64,
}

fn view(size: FrameSize, v: &View) -> Frame {
    let mut state = v.seed.wrapping_mul(77) | 1;
    let mut rgb = Vec::with_capacity(size.rgb_len());
    for y in 0..size.height {
        for x in 0..size.width {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = ((state >> 40) as f64 / 16_777_216.0 - 0.5) * 2.0 * v.noise;
            let scene = texture(v.seed, f64::from(x) - v.shift[0], f64::from(y) - v.shift[1]);
            let code = (220.0 * scene * v.gain + v.offset + noise).clamp(0.0, 255.0) as u8;
            rgb.extend([code; 3]);
        }
    }
    Frame::new(size, rgb, 0, Timestamp::ZERO).unwrap()
}

fn still(seed: u64) -> View {
    View { seed, shift: [0.0; 2], gain: 1.0, offset: 10.0, noise: 0.0 }
}

#[test]
fn a_shift_is_found_within_a_pixel_at_the_size_of_a_real_camera() {
    let size = FrameSize::new(640, 480);
    let reference = Reference::of("main", &view(size, &still(5)));
    for shift in [[0.0, 0.0], [40.0, -40.0], [-39.5, 23.25], [0.5, -0.5], [-1.0, 2.0]] {
        let now = view(size, &View { shift, gain: 0.7, offset: 40.0, noise: 6.0, ..still(5) });
        let found = reference.shift_of(&now).unwrap();
        assert!(
            (found.dx_px - shift[0]).abs() < 0.6 && (found.dy_px - shift[1]).abs() < 0.6,
            "{shift:?} {found:?}"
        );
        assert!(found.is_certain(), "{found:?}");
    }
}

#[test]
fn an_unmoved_camera_has_no_shift_and_full_correlation() {
    let picture = view(FrameSize::new(320, 240), &still(9));
    let found = Reference::of("main", &picture).shift_of(&picture).unwrap();
    assert!(found.distance_px() < 0.05 && found.ncc > 0.9999, "{found:?}");
}

#[test]
fn flat_pictures_noise_and_other_scenes_are_not_certain() {
    let size = FrameSize::new(320, 240);
    let flat = |v: u8| Frame::new(size, alloc::vec![v; size.rgb_len()], 0, Timestamp::ZERO).unwrap();
    let dark = |seed| view(size, &View { gain: 0.0, noise: 4.0, ..still(seed) });
    let scene = view(size, &still(1));
    let cases = [
        ("flat", flat(90), flat(90)),
        ("flat now", scene.clone(), flat(3)),
        ("flat then", flat(200), scene.clone()),
        ("noise", dark(3), dark(4)),
        ("another scene", scene, view(size, &still(2))),
    ];
    for (what, then, now) in cases {
        let found = Reference::of("main", &then).shift_of(&now).unwrap();
        assert!(!found.is_certain(), "{what}: {found:?}");
    }
}

#[test]
fn a_pattern_that_repeats_is_not_certain() {
    let size = FrameSize::new(320, 240);
    let stripes = |by: u32| {
        let rgb = (0..size.height)
            .flat_map(|_| 0..size.width)
            .flat_map(|x| [if ((x + by) / 16).is_multiple_of(2) { 200 } else { 40 }; 3])
            .collect();
        Frame::new(size, rgb, 0, Timestamp::ZERO).unwrap()
    };
    let found = Reference::of("main", &stripes(0)).shift_of(&stripes(5)).unwrap();
    assert!(found.ncc > 0.8 && !found.is_certain(), "{found:?}");
}

#[test]
fn another_size_is_refused() {
    let reference = Reference::of("main", &view(FrameSize::new(32, 24), &still(1)));
    let err = reference.shift_of(&view(FrameSize::new(32, 25), &still(1))).unwrap_err();
    assert!(matches!(err, Error::CameraSize { .. }), "{err}");
}

#[test]
#[cfg(feature = "std")]
fn a_reference_comes_back_from_disk_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main.pgm");
    let reference = Reference::of("main", &view(FrameSize::new(33, 21), &still(8)));
    reference.save(&path).unwrap();
    assert_eq!(Reference::load(&path).unwrap(), reference);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no scratch file stays");
    std::fs::write(&path, b"P5\n33 21\n255\n").unwrap();
    assert!(matches!(Reference::load(&path), Err(Error::FramingReference { .. })));
    assert!(matches!(Reference::load(&dir.path().join("no.pgm")), Err(Error::CameraIo { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_shift_up_to_40_px_is_found_within_a_pixel_whatever_the_light(
        seed in 0_u64..1_000_000, dx in -40.0_f64..40.0, dy in -40.0_f64..40.0, gain in 0.4_f64..1.1,
        offset in 0.0_f64..40.0, noise in 0.0_f64..10.0,
    ) {
        let size = FrameSize::new(240, 180);
        let reference = Reference::of("main", &view(size, &still(seed)));
        let found = reference.shift_of(&view(size, &View { seed, shift: [dx, dy], gain, offset, noise })).unwrap();
        prop_assert!((found.dx_px - dx).abs() < 1.0 && (found.dy_px - dy).abs() < 1.0, "{found:?}");
        prop_assert!(found.is_certain(), "{found:?}");
    }

    #[test]
    #[cfg(feature = "std")]
    fn no_file_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..900) {
        let _ = Reference::from_bytes(&bytes);
        let good = Reference::of("a b", &view(FrameSize::new(30, 20), &still(3))).to_bytes();
        let cut = cut.min(good.len());
        prop_assert_eq!(Reference::from_bytes(&good[..cut]).is_ok(), cut == good.len());
        let mut spliced = good[..cut].to_vec();
        spliced.extend_from_slice(&bytes);
        let _ = Reference::from_bytes(&spliced);
    }
}
