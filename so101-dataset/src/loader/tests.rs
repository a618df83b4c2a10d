use std::path::Path;

use super::*;
use crate::reader::Dataset;
use crate::window::WindowSpec;

fn windows() -> Arc<Windows> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lerobot_rolling");
    let set = Arc::new(Dataset::open(path).unwrap());
    Arc::new(Windows::new(set, &WindowSpec::new().with_steps("action", 0..4)).unwrap())
}

fn indices(loader: &mut Loader, batches: usize) -> Vec<u64> {
    (0..batches).flat_map(|_| loader.next_batch().unwrap()).map(|w| w.index).collect()
}

#[test]
fn batches_come_in_the_samplers_order_whatever_the_number_of_threads() {
    let windows = windows();
    let mut sampler = Sampler::new(windows.dataset(), 3);
    let want: Vec<u64> = (0..60).filter_map(|_| sampler.next_row()).collect();
    for workers in [1, 3] {
        let options = LoaderOptions::default().with_batch(6).with_workers(workers);
        let sampler = Sampler::new(windows.dataset(), 3);
        let mut loader = Loader::new(Arc::clone(&windows), sampler, options).unwrap();
        assert_eq!(indices(&mut loader, 10), want, "{workers}");
    }
}

#[test]
fn a_resumed_loader_goes_on_behind_the_batches_that_were_taken() {
    let windows = windows();
    let options = LoaderOptions::default().with_batch(7);
    let start = || Sampler::new(windows.dataset(), 9);
    let mut whole = Loader::new(Arc::clone(&windows), start(), options).unwrap();
    // Across the end of an epoch of 116 rows.
    let all = indices(&mut whole, 30);
    let mut first = Loader::new(Arc::clone(&windows), start(), options).unwrap();
    let mut parts = indices(&mut first, 13);
    let text = serde_json::to_string(&first.state()).unwrap();
    drop(first);
    let state = serde_json::from_str(&text).unwrap();
    let mut rest = Loader::new(Arc::clone(&windows), start().resume(state), options).unwrap();
    parts.extend(indices(&mut rest, 17));
    assert_eq!(parts, all);
}

#[test]
fn an_epoch_has_each_row_of_the_chosen_episodes_once_without_their_ends() {
    let windows = windows();
    let set = windows.dataset();
    let margins = EpisodeMargins { first_rows: 2, last_rows: 3 };
    let mut sampler = Sampler::of_episodes(set, &[1, 2, 99], margins, 1);
    let mut drawn: Vec<u64> = (0..sampler.len()).filter_map(|_| sampler.next_row()).collect();
    drawn.sort_unstable();
    let want: Vec<u64> = set.episodes()[1..3].iter().flat_map(|e| e.from_index + 2..e.to_index - 3).collect();
    assert_eq!(drawn, want);
    let mut second: Vec<u64> = (0..sampler.len()).filter_map(|_| sampler.next_row()).collect();
    second.sort_unstable();
    assert_eq!(second, want);
}

#[test]
fn no_rows_an_error_in_one_window_and_a_panic_are_told_and_end_nothing_else() {
    let windows = windows();
    let none = Sampler::of_episodes(windows.dataset(), &[], EpisodeMargins::default(), 0);
    let error = Loader::new(Arc::clone(&windows), none, LoaderOptions::default()).unwrap_err();
    assert!(matches!(error, Error::EmptySampler { .. }), "{error}");
    let sampler = Sampler::new(windows.dataset(), 0).in_order();
    let options = LoaderOptions::default().with_batch(2).with_workers(1);
    let prepare = |w: Window| match w.index {
        3 => Err(Error::NoSuchRow { row: 3, rows: 0, path: "x".into() }),
        8 => panic!("planted"),
        index => Ok(index),
    };
    let mut loader = Loader::with_prepare(windows, sampler, options, prepare).unwrap();
    assert_eq!(loader.next_batch().unwrap(), [0, 1]);
    assert!(matches!(loader.next_batch(), Err(Error::NoSuchRow { .. })));
    assert_eq!(loader.next_batch().unwrap(), [4, 5]);
    assert_eq!(loader.next_batch().unwrap(), [6, 7]);
    let error = loader.next_batch().unwrap_err().to_string();
    assert!(error.contains("threads have ended"), "{error}");
}

#[test]
fn a_panic_in_one_of_two_threads_is_told_and_the_other_goes_on() {
    let windows = windows();
    let sampler = Sampler::new(windows.dataset(), 0).in_order();
    let options = LoaderOptions::default().with_batch(2).with_workers(2);
    let prepare = |w: Window| match w.index {
        2 => panic!("planted"),
        index => Ok(index),
    };
    let mut loader = Loader::with_prepare(windows, sampler, options, prepare).unwrap();
    assert_eq!(loader.next_batch().unwrap(), [0, 1]);
    let error = loader.next_batch().unwrap_err().to_string();
    assert!(error.contains("threads have ended"), "{error}");
    for first in (4..40).step_by(2) {
        assert_eq!(loader.next_batch().unwrap(), [first, first + 1]);
    }
}
