use super::*;

fn episode(from_index: u64, to_index: u64) -> EpisodeRow {
    EpisodeRow {
        episode: 0,
        tasks: vec![],
        length: to_index - from_index,
        data_chunk: 0,
        data_file: 0,
        from_index,
        to_index,
        videos: vec![],
    }
}

#[test]
fn steps_outside_of_the_episode_repeat_its_ends_and_are_flagged() {
    let e = episode(10, 13);
    for (step, want) in
        [(-3, (10, true)), (-2, (10, false)), (0, (12, false)), (1, (12, true)), (i64::MAX, (12, true))]
    {
        assert_eq!(clamped(12, step, &e), want, "{step}");
    }
}

#[test]
fn values_of_scattered_steps_come_in_the_order_of_the_steps() {
    let column = Values::I64((0..20).collect());
    let (mut out, mut pad) = (Values::I64(vec![]), vec![]);
    // File rows 4 to 9 are the episode, two numbers a row.
    copy_steps(&column, 2, (6, 106), &episode(104, 110), &[2, 3, 4, -9, 0, -1, 0], &mut out, &mut pad);
    assert_eq!(out, Values::I64(vec![16, 17, 18, 19, 18, 19, 8, 9, 12, 13, 10, 11, 12, 13]));
    assert_eq!(pad, [false, false, true, true, false, false, false]);
}

#[test]
fn relative_times_are_whole_periods_or_refused() {
    let spec = |time: f64| {
        let deltas = DeltaTimestamps::from([("action".to_owned(), vec![0.0, time])]);
        WindowSpec::from_delta_timestamps(&deltas, 30, DEFAULT_TOLERANCE_S)
    };
    assert_eq!(spec(-0.1).unwrap().steps("action"), Some([0, -3].as_slice()));
    assert_eq!(spec(1.0 / 30.0 + 9e-5).unwrap().steps("action"), Some([0, 1].as_slice()));
    for bad in [0.05, 1.0 / 30.0 + 2e-4, f64::NAN, f64::INFINITY] {
        let error = spec(bad).unwrap_err().to_string();
        assert!(error.contains("of action is no whole number of periods at 30 Hz"), "{error}");
    }
}
