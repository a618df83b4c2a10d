//! JPEG as cameras send it (MJPEG): whole or refused, never half a picture.
//!
//! A JPEG has no checksum. A picture that lacks more than some hundred bytes at its end is refused, one that lacks fewer
//! mostly is; bytes that are lost in its middle are refused where what is left breaks the code or ends too early, which
//! was the case in four of five holes of 150 bytes in small pictures. Both hold from a width of 64 pixels on. What gets
//! through is a picture with wrong colours from some block on; the drivers' own mark for lost bytes (`v4l2` refuses
//! those) is the better sign.

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::frame::FrameSize;

/// The Huffman tables of ITU-T T.81 annex K.3 as one DHT segment: MJPEG files may leave them out.
const STANDARD_TABLES: &[u8; 420] = include_bytes!("standard_tables.bin");

/// No camera of an arm has more rows or columns.
pub(crate) const MAX_SIDE: u32 = 8192;
/// From this width on a row of blocks has more bytes than the decoder reads ahead.
const WIDE: u32 = 64;

/// Why a file gave no pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JpegFault {
    /// It is not whole.
    Damaged(String),
    /// It is of another size.
    Size(FrameSize),
}

/// The file up to and with its end marker: drivers hand over whole buffers, with what was in them before.
///
/// `None` where it does not begin or does not end as a JPEG does.
pub(crate) fn trim(bytes: &[u8]) -> Option<&[u8]> {
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let end = bytes.windows(2).rposition(|pair| pair == [0xff, 0xd9])?;
    bytes.get(..end + 2)
}

/// Width and height, without decoding.
pub(crate) fn size_of(file: &[u8]) -> Result<FrameSize, JpegFault> {
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options());
    decoder.decode_headers().map_err(damaged)?;
    size(&decoder)
}

/// Decodes into `rgb`, which has to be of the right length for `expected`.
pub(crate) fn decode_into(file: &[u8], expected: FrameSize, rgb: &mut [u8]) -> Result<(), JpegFault> {
    let Some(file) = trim(file) else {
        let what = if file.starts_with(&[0xff, 0xd8]) { "its end is missing" } else { "it is no JPEG file" };
        return Err(JpegFault::Damaged(what.to_string()));
    };
    // Behind an end marker that comes too early the decoder reads zeros, and the rest of the picture is grey; without the
    // marker it says that data are missing. (In narrow pictures it says so of whole ones too.)
    let end = if expected.width >= WIDE { file.len() - 2 } else { file.len() };
    let file = with_tables(file.get(..end).unwrap_or(file));
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&*file), options());
    decoder.decode_headers().map_err(damaged)?;
    let got = size(&decoder)?;
    if got != expected {
        return Err(JpegFault::Size(got));
    }
    decoder.decode_into(rgb).map_err(damaged)
}

fn options() -> DecoderOptions {
    DecoderOptions::default()
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_max_width(MAX_SIDE as usize)
        .set_max_height(MAX_SIDE as usize)
        // Without it, a broken file comes back as a picture that is grey from some row on.
        .set_strict_mode(true)
}

fn size(decoder: &JpegDecoder<ZCursor<&[u8]>>) -> Result<FrameSize, JpegFault> {
    let info = decoder.info().ok_or_else(|| JpegFault::Damaged("it has no size".to_string()))?;
    Ok(FrameSize::new(u32::from(info.width), u32::from(info.height)))
}

fn damaged(error: DecodeErrors) -> JpegFault {
    JpegFault::Damaged(error.to_string().replace('\n', "; "))
}

/// The file with the standard tables where it has none.
fn with_tables(file: &[u8]) -> Cow<'_, [u8]> {
    let mut at = 2;
    while let Some(&[0xff, marker, hi, lo]) = file.get(at..at + 4) {
        match marker {
            0xc4 => return Cow::Borrowed(file),
            // The scan begins, and there was no table.
            0xda => {
                let mut whole = Vec::with_capacity(file.len() + STANDARD_TABLES.len());
                whole.extend_from_slice(file.get(..at).unwrap_or_default());
                whole.extend_from_slice(STANDARD_TABLES);
                whole.extend_from_slice(file.get(at..).unwrap_or_default());
                return Cow::Owned(whole);
            }
            _ => at += 2 + usize::from(u16::from_be_bytes([hi, lo])),
        }
    }
    Cow::Borrowed(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 64 x 48, 4:2:2, left half red, right half blue, made by libjpeg at quality 90.
    const RED_BLUE: &[u8] = include_bytes!("../../tests/fixtures/camera/red_blue.jpg");
    const SIZE: FrameSize = FrameSize::new(64, 48);

    fn decode(file: &[u8]) -> Result<Vec<u8>, JpegFault> {
        let mut rgb = alloc::vec![0; SIZE.rgb_len()];
        decode_into(file, SIZE, &mut rgb).map(|()| rgb)
    }

    fn looks_right(rgb: &[u8]) -> bool {
        let at = |x: usize, y: usize| &rgb[3 * (64 * y + x)..][..3];
        [(8, 8), (20, 40)].iter().all(|&(x, y)| at(x, y)[0] > 240 && at(x, y)[2] < 15)
            && [(44, 8), (60, 40)].iter().all(|&(x, y)| at(x, y)[2] > 240 && at(x, y)[0] < 15)
    }

    /// The same file without its DHT segments, as many cameras send it.
    fn without_tables() -> Vec<u8> {
        let mut out = RED_BLUE[..2].to_vec();
        let mut at = 2;
        loop {
            let len = 2 + usize::from(u16::from_be_bytes([RED_BLUE[at + 2], RED_BLUE[at + 3]]));
            match RED_BLUE[at + 1] {
                0xc4 => {}
                0xda => break,
                _ => out.extend_from_slice(&RED_BLUE[at..at + len]),
            }
            at += len;
        }
        out.extend_from_slice(&RED_BLUE[at..]);
        out
    }

    #[test]
    fn a_whole_file_is_decoded() {
        assert!(looks_right(&decode(RED_BLUE).unwrap()));
        assert_eq!(size_of(RED_BLUE), Ok(SIZE));
    }

    #[test]
    fn a_file_without_huffman_tables_gets_the_standard_ones() {
        let bare = without_tables();
        assert!(bare.len() + 400 < RED_BLUE.len());
        assert_eq!(decode(&bare).unwrap(), decode(RED_BLUE).unwrap());
    }

    #[test]
    fn what_a_driver_leaves_behind_the_end_is_cut_off() {
        let mut padded = RED_BLUE.to_vec();
        padded.extend([0; 1000]);
        assert_eq!(trim(&padded), Some(RED_BLUE));
        assert!(looks_right(&decode(&padded).unwrap()));
    }

    #[test]
    fn a_file_that_is_not_whole_is_refused_and_says_why() {
        let mut cases: Vec<(Vec<u8>, &str)> = alloc::vec![
            (Vec::new(), "no JPEG"),
            (b"hello".to_vec(), "no JPEG"),
            (RED_BLUE[..RED_BLUE.len() / 2].to_vec(), "end is missing"),
            (RED_BLUE[..RED_BLUE.len() - 1].to_vec(), "end is missing"),
        ];
        // The last part is missing, but the end marker is there: as when USB packets are lost.
        for lost in [12, 30, 60] {
            let mut hole = RED_BLUE[..RED_BLUE.len() - 2 - lost].to_vec();
            hole.extend_from_slice(&[0xff, 0xd9]);
            cases.push((hole, ""));
        }
        for (file, why) in cases {
            match decode(&file) {
                Err(JpegFault::Damaged(what)) => assert!(what.contains(why), "{what}"),
                other => panic!("{} bytes: {:?}", file.len(), other.map(|_| ())),
            }
        }
    }

    #[test]
    fn another_size_is_told_before_anything_is_decoded() {
        let mut rgb = alloc::vec![0; 3];
        assert_eq!(decode_into(RED_BLUE, FrameSize::new(1, 1), &mut rgb), Err(JpegFault::Size(SIZE)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn no_change_of_the_bytes_makes_it_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in 0_usize..2000,
        ) {
            let mut file = RED_BLUE.to_vec();
            for (at, value) in changes {
                let at = at.index(file.len());
                file[at] = value;
            }
            file.truncate(file.len().saturating_sub(cut.saturating_sub(1000)));
            let _ = decode(&file);
            let _ = size_of(&file);
        }
    }
}
