//! The two orders of a video's pictures: as they are stored and decoded, and as they are shown.

use super::Mp4Index;

/// Which sample holds which picture.
#[derive(Debug)]
pub(crate) enum Order {
    /// They are shown in the order of the samples.
    AsStored,
    /// There are B-frames.
    Reordered {
        /// The sample of each picture.
        sample: Vec<u32>,
        /// The picture of each sample.
        picture: Vec<u32>,
    },
}

impl Order {
    pub(crate) fn of(index: &Mp4Index) -> Self {
        if !index.is_reordered() {
            return Self::AsStored;
        }
        let mut sample: Vec<u32> = (0..u32::try_from(index.samples.len()).unwrap_or(u32::MAX)).collect();
        sample.sort_by_cached_key(|i| index.pts_ticks(*i as usize));
        let mut picture = vec![0; sample.len()];
        for (shown, stored) in (0..).zip(&sample) {
            if let Some(place) = picture.get_mut(*stored as usize) {
                *place = shown;
            }
        }
        Self::Reordered { sample, picture }
    }

    /// The sample of a picture.
    pub(crate) fn sample(&self, picture: usize) -> usize {
        match self {
            Self::AsStored => picture,
            Self::Reordered { sample, .. } => sample.get(picture).map_or(picture, |i| *i as usize),
        }
    }

    /// The picture of a sample.
    pub(crate) fn picture(&self, sample: usize) -> usize {
        match self {
            Self::AsStored => sample,
            Self::Reordered { picture, .. } => picture.get(sample).map_or(sample, |i| *i as usize),
        }
    }
}
