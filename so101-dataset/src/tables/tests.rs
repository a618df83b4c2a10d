use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::features::Features;
use crate::stats::VectorStats;

fn reader(file: Vec<u8>) -> ParquetRecordBatchReaderBuilder<Bytes> {
    ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap()
}

fn one_batch(file: Vec<u8>) -> RecordBatch {
    let mut batches = reader(file).build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    batch
}

fn rows() -> Vec<u8> {
    let vector: Vec<f32> = (0..12).map(|v| v as f32).collect();
    let columns = [
        ("index", Column::I64(&[7, 8])),
        ("action", Column::F32(&vector)),
        ("observation.state", Column::F32(&vector)),
        ("timestamp", Column::F32(&[0.0, 0.5])),
        ("frame_index", Column::I64(&[0, 1])),
        ("episode_index", Column::I64(&[3, 3])),
        ("task_index", Column::I64(&[0, 0])),
    ];
    let cameras = [so101_hal::CameraSpec::new("main", 8, 8)];
    data_file(&Features::so101(&cameras), &columns).unwrap()
}

#[test]
fn a_data_file_has_lerobots_columns_types_and_one_row_group() {
    let file = reader(rows());
    let names: Vec<_> = file.schema().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(
        names,
        ["action", "observation.state", "timestamp", "frame_index", "episode_index", "index", "task_index"]
    );
    assert!(file.schema().fields().iter().all(|f| f.is_nullable()));
    let DataType::FixedSizeList(child, 6) = file.schema().field(0).data_type() else {
        panic!("no list of 6")
    };
    assert_eq!(
        (child.name().as_str(), child.data_type(), child.is_nullable()),
        ("element", &DataType::Float32, true)
    );
    assert_eq!(file.metadata().num_row_groups(), 1);
    let column = file.metadata().row_group(0).column(0);
    assert_eq!(column.column_path().string(), "action.list.element");
    assert_eq!(column.compression(), Compression::SNAPPY);
    let batch = one_batch(rows());
    let second = batch.column(0).as_fixed_size_list().value(1);
    assert_eq!(second.as_primitive::<Float32Type>().values(), &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    assert_eq!(batch.column(5).as_primitive::<Int64Type>().values(), &[7, 8]);
}

#[test]
fn metadata_is_in_the_schema_and_in_the_footer() {
    let tasks = tasks_file(&["push".to_owned(), "a \"cup\" é".to_owned()]).unwrap();
    for (file, key) in [(rows(), "huggingface"), (tasks, "pandas")] {
        let file = reader(file);
        let in_schema = file.schema().metadata().get(key).unwrap();
        let footer = file.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(footer.iter().any(|kv| kv.key == key && kv.value.as_ref() == Some(in_schema)), "{key}");
        assert!(footer.iter().any(|kv| kv.key == "ARROW:schema"));
        assert!(serde_json::from_str::<serde_json::Value>(in_schema).is_ok());
    }
}

#[test]
fn equal_values_give_equal_bytes() {
    assert_eq!(rows(), rows());
}

#[test]
fn tasks_are_in_the_order_of_their_index() {
    let batch = one_batch(tasks_file(&["b".to_owned(), "a".to_owned()]).unwrap());
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[0, 1]);
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "b");
}

#[test]
fn an_episode_row_nests_statistics_as_lerobot_does() {
    let vector = VectorStats::from_f32("action", 2, &[1.0, 2.0, 3.0, 4.0]).unwrap().summary();
    let mut picture = crate::image_stats::ImageStats::new();
    picture.add(so101_hal::FrameSize::new(1, 1), &[0, 51, 255]);
    let row = EpisodeMeta {
        episode: 4,
        tasks: vec!["push".into()],
        length: 2,
        data: FilePosition { chunk: 0, file: 4 },
        rows: 10..12,
        videos: vec![VideoSpan { key: "v".into(), at: FilePosition::default(), from_s: 0.0, to_s: 0.2 }],
        stats: vec![("action".into(), vector), ("v".into(), picture.summary())],
        meta: FilePosition { chunk: 1, file: 2 },
    };
    let batch = one_batch(episodes_file(&row).unwrap());
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let mean = column("stats/action/mean").as_list::<i32>().value(0);
    assert_eq!(mean.as_primitive::<Float64Type>().values(), &[2.0, 3.0]);
    let count = column("stats/v/count").as_list::<i32>().value(0);
    assert_eq!(count.as_primitive::<Int64Type>().values(), &[1]);
    let green = column("stats/v/max").as_list::<i32>().value(0);
    assert_eq!(green.len(), 3);
    let green = green.as_list::<i32>().value(1).as_list::<i32>().value(0);
    assert_eq!(green.as_primitive::<Float64Type>().values(), &[0.2]);
    assert_eq!(column("dataset_to_index").as_primitive::<Int64Type>().value(0), 12);
    assert_eq!(column("meta/episodes/file_index").as_primitive::<Int64Type>().value(0), 2);
    assert_eq!(batch.num_columns(), 7 + 4 + 20 + 2);
}

#[test]
fn a_missing_or_unfit_column_is_refused_by_name() {
    let short = data_file(&Features::so101(&[]), &[("action", Column::I64(&[1]))]).unwrap_err();
    assert!(matches!(&short, Error::Table { problem } if problem.contains("action")), "{short}");
}

#[test]
fn files_are_numbered_by_lerobots_rule() {
    let mut at = FilePosition::default();
    let mut seen = Vec::new();
    for _ in 0..5 {
        at = at.next(2);
        seen.push((at.chunk, at.file));
    }
    assert_eq!(seen, [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
}
