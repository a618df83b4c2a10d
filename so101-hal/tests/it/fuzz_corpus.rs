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

/// A minute and more of this stands for a fuzzer where there is none: `SO101_FUZZ_SECONDS`.
#[test]
fn random_streams_and_mutations_of_the_corpus_are_taken_without_a_panic_or_an_endless_loop() {
    let seconds = std::env::var("SO101_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/servo_frame");
    let mut corpus: Vec<Vec<u8>> =
        std::fs::read_dir(folder).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    corpus.sort();
    let mut dice = crate::bad_line::Dice::new(6);
    let mut inputs = 0_u64;
    while inputs < 10_000 || std::time::Instant::now() < end {
        let mut input = if dice.hits(300) {
            (0..dice.below(400)).map(|_| dice.below(256) as u8).collect()
        } else {
            corpus[dice.below(corpus.len() as u64) as usize].clone()
        };
        for _ in 0..dice.below(8) {
            let at = dice.below(input.len() as u64 + 1) as usize;
            let other = &corpus[dice.below(corpus.len() as u64) as usize];
            match dice.below(6) {
                0 => input.truncate(at),
                1 => input.insert(at, [0xff, 0xfe, 0, 1, 6, 2, 15, 0x82][dice.below(8) as usize]),
                2 => input.extend_from_slice(other),
                3 if at < input.len() => input[at] = dice.below(256) as u8,
                4 if at < input.len() => input[at] ^= 1 << dice.below(8),
                _ => {
                    // Bytes whose checksum is right, wherever they land.
                    let data: Vec<u8> = (0..dice.below(20)).map(|_| dice.below(256) as u8).collect();
                    let mut packet =
                        vec![0xff, 0xff, dice.below(8) as u8, data.len() as u8 + 2, dice.below(4) as u8];
                    packet.extend(data);
                    packet.push(so101_hal::protocol::checksum(&packet[2..]));
                    input.splice(at..at, packet);
                }
            }
        }
        servo_frame::check(&input[..input.len().min(2000)]);
        inputs += 1;
    }
    println!("{inputs} inputs");
}
