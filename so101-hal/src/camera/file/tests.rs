use super::*;
use crate::clock::VirtualClock;

const JPEG: &[u8] = include_bytes!("../../../tests/fixtures/camera/red_blue.jpg");
const PNG: &[u8] = include_bytes!("../../../tests/fixtures/camera/red_blue.png");

fn open(path: &Path, at_end: AtEnd) -> Result<FileCamera> {
    FileCamera::open("main", path, FileOptions { fps: 10, at_end }, Arc::new(VirtualClock::new()))
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

/// A grey PNG file of 64 x 48.
fn grey_png(value: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 64, 48);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[value; 64 * 48]).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn a_folder_is_shown_in_the_order_of_its_numbers_at_its_rate() {
    let files: Vec<_> = [1, 2, 10, 9].map(|n| (format!("f{n}.png"), grey_png(n))).into();
    let files: Vec<_> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
    let dir = folder(&files);
    fs::write(dir.path().join("notes.txt"), "no picture").unwrap();
    let mut camera = open(dir.path(), AtEnd::Loop).unwrap();
    assert_eq!(Camera::spec(&camera).size, FrameSize::new(64, 48));
    for (k, grey) in [1, 2, 9, 10, 1, 2].into_iter().enumerate() {
        let frame = camera.capture().unwrap();
        assert_eq!(frame.rgb()[..3], [grey; 3], "picture {k}");
        assert_eq!((frame.sequence, frame.captured.since_start().as_millis()), (k as u64, 100 * k as u128));
    }
}

#[test]
fn png_and_jpeg_show_the_same_picture_and_the_jpeg_keeps_its_bytes() {
    let dir = folder(&[("a.png", PNG), ("b.JPG", JPEG)]);
    let mut camera = open(dir.path(), AtEnd::Stop).unwrap();
    let (png, jpeg) = (camera.capture().unwrap(), camera.capture().unwrap());
    assert_eq!(png.rgb()[..3], [254, 0, 0]);
    let far = |f: &Frame| f.rgb()[3 * (64 * 40 + 50)..][..3].to_vec();
    assert!(far(&png).iter().zip(far(&jpeg)).all(|(a, b)| a.abs_diff(b) < 8), "{:?}", far(&jpeg));
    assert_eq!(png.jpeg(), None);
    assert_eq!(jpeg.jpeg().map(|j| &j[..]), Some(JPEG));
    let end = camera.capture().unwrap_err();
    assert!(matches!(end, Error::PicturesEnded { shown: 2, .. }), "{end}");
}

#[test]
fn a_stream_is_cut_into_its_pictures_and_begins_again_or_ends() {
    // Padding in between, as drivers write it; a false end marker inside of a comment segment.
    let mut commented = JPEG[..2].to_vec();
    commented.extend([0xff, 0xfe, 0, 6, 0xff, 0xd9, 0xff, 0xd8]);
    commented.extend(&JPEG[2..]);
    let stream = [JPEG, &[0; 30], &commented].concat();
    let dir = folder(&[("s.mjpg", &stream)]);
    let path = dir.path().join("s.mjpg");
    let mut camera = open(&path, AtEnd::Stop).unwrap();
    let files: Vec<_> = (0..2).map(|_| camera.capture().unwrap().jpeg().unwrap().to_vec()).collect();
    assert_eq!(files, [JPEG.to_vec(), commented]);
    assert!(matches!(camera.capture(), Err(Error::PicturesEnded { shown: 2, .. })));
    let mut camera = open(&path, AtEnd::Loop).unwrap();
    let sequences: Vec<_> = (0..5).map(|_| camera.capture().unwrap().sequence).collect();
    assert_eq!(sequences, [0, 1, 2, 3, 4]);
}

#[test]
fn a_damaged_picture_is_an_error_of_its_own_and_the_next_one_comes() {
    let half = &JPEG[..JPEG.len() / 2];
    let dir = folder(&[("1.jpg", JPEG), ("2.jpg", half), ("3.png", &PNG[..60]), ("4.jpg", JPEG)]);
    let mut camera = open(dir.path(), AtEnd::Stop).unwrap();
    let results: Vec<_> = (0..4).map(|_| camera.capture()).collect();
    assert!(results[0].is_ok() && results[3].is_ok());
    for (k, result) in results[1..3].iter().enumerate() {
        assert!(
            matches!(result, Err(Error::PictureDamaged { sequence, .. }) if *sequence == k as u64 + 1),
            "{result:?}"
        );
    }
    let dir = folder(&[("s.mjpg", &[JPEG, half].concat())]);
    let mut camera = open(&dir.path().join("s.mjpg"), AtEnd::Stop).unwrap();
    assert!(camera.capture().is_ok());
    assert!(matches!(camera.capture(), Err(Error::PictureDamaged { sequence: 1, .. })));
}

#[test]
fn another_size_in_the_middle_is_told() {
    let mut small = Vec::new();
    let mut encoder = png::Encoder::new(&mut small, 2, 1);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    writer.finish().unwrap();
    assert_eq!(png_rgb(&small).unwrap(), (FrameSize::new(2, 1), alloc::vec![1, 2, 3, 5, 6, 7]));
    let dir = folder(&[("1.jpg", JPEG), ("2.png", &small)]);
    let mut camera = open(dir.path(), AtEnd::Stop).unwrap();
    camera.capture().unwrap();
    let err = camera.capture().unwrap_err();
    assert!(matches!(err, Error::CameraSize { got: FrameSize { width: 2, height: 1 }, .. }), "{err}");
}

#[test]
fn what_has_no_pictures_is_refused_by_name() {
    let dir = folder(&[("notes.txt", b"x"), ("empty.mjpg", b""), ("broken.jpg", &JPEG[..50])]);
    for (file, has) in [
        ("notes.txt", "no folder, PNG"),
        ("empty.mjpg", "there is none"),
        ("broken.jpg", "damaged"),
        ("missing.jpg", "missing.jpg"),
    ] {
        let err = open(&dir.path().join(file), AtEnd::Loop).map(|_| ()).unwrap_err().to_string();
        assert!(err.contains(has), "{file}: {err}");
    }
    let empty = folder(&[("notes.txt", b"x")]);
    assert!(matches!(open(empty.path(), AtEnd::Loop), Err(Error::PictureFile { .. })));
}
