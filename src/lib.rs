#![doc = include_str!("../README.md")]

pub use so101_dataset as dataset;
pub use so101_hal as hal;
#[cfg(feature = "sim")]
pub use so101_sim as sim;
