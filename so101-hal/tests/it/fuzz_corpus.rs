//! The corpora of the fuzz targets, replayed.

#[path = "../../fuzz/checks/servo_frame.rs"]
mod servo_frame;

#[test]
fn every_input_of_the_servo_frame_corpus_is_taken_without_a_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/servo_frame");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        servo_frame::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 20, "only {inputs} inputs in {folder}");
}
