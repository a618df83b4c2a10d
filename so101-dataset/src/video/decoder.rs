//! Decoders: samples of an mp4 in, planes out, in the order in which the pictures are shown.

#[cfg(feature = "av1")]
mod av1;
mod h264;

use so101_hal::FrameSize;

use super::color::Planes;
use crate::mp4::{FourCc, Mp4Index, SampleKind};

/// Takes a picture that came out.
pub(super) type Show<'a> = dyn FnMut(&Planes<'_>) + 'a;

/// One warm decoder; its state is that after the last sample.
pub(super) struct Decoder {
    engine: Engine,
    size: FrameSize,
}

enum Engine {
    H264(h264::H264),
    #[cfg(feature = "av1")]
    Av1(av1::Av1),
}

/// Why there is no decoder for a file.
pub(super) enum NoDecoder {
    /// This codec is not decoded here.
    Codec(String),
    /// The codec's own library refuses to start.
    Failed(String),
}

impl Decoder {
    /// A decoder for the file with this index.
    pub(super) fn of(index: &Mp4Index) -> Result<Self, NoDecoder> {
        let engine = if index.codec == FourCc(*b"av01") {
            Self::av1(index)?
        } else {
            let record = h264::AvcRecord::of(index).map_err(NoDecoder::Codec)?;
            Engine::H264(h264::H264::new(record).map_err(NoDecoder::Failed)?)
        };
        Ok(Self { engine, size: index.size })
    }

    #[cfg(feature = "av1")]
    fn av1(index: &Mp4Index) -> Result<Engine, NoDecoder> {
        av1::check(index).map_err(NoDecoder::Codec)?;
        Ok(Engine::Av1(av1::Av1::new(index.size).map_err(NoDecoder::Failed)?))
    }

    #[cfg(not(feature = "av1"))]
    fn av1(index: &Mp4Index) -> Result<Engine, NoDecoder> {
        Err(NoDecoder::Codec(format!("{} (this build is without the feature `av1`)", index.codec)))
    }

    /// Forgets the state, as after an error.
    pub(super) fn reset(&mut self) -> Result<(), String> {
        match &mut self.engine {
            Engine::H264(engine) => engine.reset(),
            #[cfg(feature = "av1")]
            Engine::Av1(engine) => {
                engine.reset();
                Ok(())
            }
        }
    }

    /// Makes ready for a key frame elsewhere in the file: pictures that are still kept back are dropped.
    pub(super) fn jump(&mut self) -> Result<(), String> {
        match &mut self.engine {
            // A key frame starts afresh by itself; only pictures of before would come out in front of its own.
            Engine::H264(engine) if engine.keeps_pictures() => engine.reset(),
            Engine::H264(_) => Ok(()),
            #[cfg(feature = "av1")]
            Engine::Av1(_) => Ok(()),
        }
    }

    /// Decodes one sample and shows the pictures that come out: one at once, or later ones earlier samples' pictures.
    pub(super) fn decode(
        &mut self,
        sample: &[u8],
        kind: SampleKind,
        show: &mut Show<'_>,
    ) -> Result<(), String> {
        let (size, mut other) = (self.size, None);
        let mut checked = |planes: &Planes<'_>| {
            if planes.size == size { show(planes) } else { other = Some(planes.size) }
        };
        match &mut self.engine {
            Engine::H264(engine) => engine.decode(sample, kind, &mut checked)?,
            #[cfg(feature = "av1")]
            Engine::Av1(engine) => engine.decode(sample, &mut checked)?,
        }
        match other {
            Some(other) => Err(format!("a picture of {other} in a file of {size}")),
            None => Ok(()),
        }
    }

    /// Shows the pictures that are kept back when no sample follows. The next sample must be a key frame.
    pub(super) fn drain(&mut self, show: &mut Show<'_>) -> Result<(), String> {
        match &mut self.engine {
            Engine::H264(engine) => engine.drain(show),
            #[cfg(feature = "av1")]
            Engine::Av1(_) => Ok(()),
        }
    }
}
