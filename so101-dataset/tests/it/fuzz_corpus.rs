//! The corpora of the fuzz targets, replayed.

#[path = "../../fuzz/checks/info_json.rs"]
mod info_json;

#[test]
fn every_input_of_the_info_json_corpus_is_read_or_refused() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/info_json");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        info_json::check(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 30, "only {inputs} inputs in {folder}");
}
