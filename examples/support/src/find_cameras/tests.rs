use super::*;

fn args(out: &std::path::Path) -> FindCamerasArgs {
    FindCamerasArgs {
        make: Make::Opencv,
        rig: Some(CameraRig::Emulated),
        synthetic: false,
        camera: Vec::new(),
        cameras: None,
        list: false,
        size: Some(FrameSize::new(160, 120)),
        fps: 30,
        frames: 5,
        out: out.to_owned(),
        save_reference: false,
        record_calls: false,
        json: false,
        verbosity: Verbosity::default(),
    }
}

fn candidate_of(formats: &str) -> Candidate {
    let mut calls = v4l2::Replay::parse(formats).unwrap();
    Candidate {
        config: CameraConfig::new("video0", CameraSource::V4l2("/nowhere".into())),
        info: None,
        formats: v4l2::formats(&mut calls).unwrap(),
        closed: None,
    }
}

#[test]
fn drawn_cameras_are_shown_saved_and_compared_with_their_reference() {
    let dir = tempfile::tempdir().unwrap();
    let first = FindCamerasArgs { save_reference: true, ..args(dir.path()) };
    assert_eq!(run(&first).unwrap(), Exit::Ok);
    for file in ["main.png", "gripper.png", "sheet.png", "main.pgm", "gripper.pgm"] {
        assert!(dir.path().join(file).is_file(), "{file}");
    }
    assert_eq!(image::open(dir.path().join("main.png")).unwrap().width(), 160);
    // A knock against one of them is told.
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
    let mut main = synthetic(&args(dir.path())).remove(0);
    if let CameraSource::Synthetic(options) = &mut main.config.source {
        options.shift_px = [7.0, 0.0];
    }
    let seen = look::look(main, &args(dir.path()), &clock).unwrap();
    assert!((seen.framing.unwrap().dx_px - 7.0).abs() < 1.0, "{:?}", seen.framing);
    let text = report::text(&[seen]);
    assert!(text.contains("framing    +7") || text.contains("framing    +6.9"), "{text}");
}

#[test]
fn a_camera_that_fails_is_told_and_the_others_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
    let seen: Vec<Seen> = [Some(3), None]
        .into_iter()
        .map(|unplug| {
            let mut camera = synthetic(&args(dir.path())).remove(0);
            if let CameraSource::Synthetic(options) = &mut camera.config.source {
                options.unplug_after = unplug;
            }
            look::look(camera, &args(dir.path()), &clock).unwrap()
        })
        .collect();
    assert!(seen[0].error.as_deref().unwrap().contains("is gone"));
    assert!(seen[1].error.is_none() && seen[1].figures.is_some());
}

#[test]
fn the_usual_size_is_taken_where_there_is_one_and_the_rate_that_it_has() {
    let webcam = "ENUM_FMT index=0 -> pixelformat=YUYV\nENUM_FMT index=1 -> pixelformat=MJPG\n\
                  ENUM_FRAMESIZES index=0 pixel_format=MJPG -> kind=1 width=1280 height=720\n\
                  ENUM_FRAMESIZES index=1 pixel_format=MJPG -> kind=1 width=640 height=480\n\
                  ENUM_FRAMEINTERVALS index=0 width=640 -> kind=1 numerator=1 denominator=25";
    let dir = tempfile::tempdir().unwrap();
    let mut usual = candidate_of(webcam);
    choose(&mut usual, &FindCamerasArgs { size: None, ..args(dir.path()) });
    let c = &usual.config;
    assert_eq!((c.format, c.size, c.fps), (PixelFormat::Mjpg, FrameSize::new(640, 480), 25));
    let mut other = candidate_of(&webcam.replace("width=640", "width=800"));
    choose(&mut other, &FindCamerasArgs { size: None, ..args(dir.path()) });
    assert_eq!((other.config.size, other.config.fps), (FrameSize::new(1280, 720), 30));
}

#[test]
fn lerobots_text_and_a_file_of_ours_describe_cameras() {
    let pasted =
        described("{ front: {type: opencv, index_or_path: 7, width: 640, height: 480, fps: 30}}").unwrap();
    assert_eq!(pasted[0].config.source, CameraSource::V4l2("/dev/video7".into()));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cameras.toml");
    let toml = "[[cameras]]\nname = \"top\"\nsource = { synthetic = { luminance = 40.0 } }\nwidth = 64\nheight = 48\nfps = 10\n\
                [cameras.controls]\nexposure_us = 15600\nfocus = \"auto\"\n";
    std::fs::write(&file, toml).unwrap();
    let ours = described(&file.display().to_string()).unwrap();
    assert_eq!((ours[0].config.name.as_str(), ours[0].config.size), ("top", FrameSize::new(64, 48)));
    std::fs::write(&file, toml.replace("fps", "rate")).unwrap();
    assert!(matches!(described(&file.display().to_string()), Err(Error::Usage(_))));
    assert!(matches!(described("{a: {type: zmq}}"), Err(Error::Usage(_))));
}

#[test]
fn sizes_are_two_numbers() {
    assert_eq!(size("640x480"), Ok(FrameSize::new(640, 480)));
    for bad in ["640", "640x", "0x480", "640x480x3", "99999x1"] {
        assert!(size(bad).is_err(), "{bad}");
    }
}
