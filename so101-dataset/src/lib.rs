//! LeRobot datasets in Rust: crash-safe recording, reading, checking.
#![doc = include_str!("../README.md")]

pub mod check;
mod commit;
pub mod error;
pub mod features;
#[cfg(feature = "av1")]
mod ffi;
pub mod image_stats;
pub mod info;
pub mod loader;
pub mod mp4;
pub mod reader;
pub mod sidecar;
pub mod spec;
pub mod stats;
mod tables;
pub mod video;
pub mod window;
pub mod writer;

pub use error::{Error, Result};
pub use features::{DEFAULT_FEATURES, DType, Feature, Features, camera_feature};
pub use image_stats::{ImageStats, sample_stride};
pub use info::{Info, Version};
pub use reader::{Column, Dataset, EpisodeRow, EpisodeTable, FeatureStats, Stats, Values, VideoSpan};
pub use sidecar::{CameraRecord, EpisodeEntry, EpisodeRecord, SIDECAR_DIR, Sidecar};
pub use spec::{BodyUnit, DatasetSpec, Recording, SessionInfo, SpecDiff, SpecDifference, Units};
pub use stats::{FeatureSummary, QUANTILES, SummaryShape, VectorStats};
pub use writer::{DatasetWriter, FinishReport, SavedEpisode, WriterOptions};
