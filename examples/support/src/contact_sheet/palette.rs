//! Reduces a picture to a palette by median cut.

const COLOURS: usize = 64;
/// Colours are counted by their upper five bits a channel.
const BITS: usize = 5;
const BINS: usize = 1 << (3 * BITS);

/// The palette (RGB triples) and one index a pixel.
pub(super) fn reduce(rgb: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut counts = vec![0_u64; BINS];
    let mut sums = vec![[0_u64; 3]; BINS];
    for pixel in rgb.chunks_exact(3) {
        let bin = bin(pixel);
        counts[bin] += 1;
        for (sum, &v) in sums[bin].iter_mut().zip(pixel) {
            *sum += u64::from(v);
        }
    }
    let used: Vec<usize> = (0..BINS).filter(|&b| counts[b] > 0).collect();
    let mut boxes = vec![used];
    while boxes.len() < COLOURS {
        let Some((which, channel)) = widest(&boxes, &counts) else { break };
        let mut lower = std::mem::take(&mut boxes[which]);
        // Ties by the whole bin, so that the result does not depend on the order before.
        lower.sort_by_key(|&b| (component(b, channel), b));
        let upper = lower.split_off(median(&lower, &counts));
        boxes[which] = lower;
        boxes.push(upper);
    }
    let mut index_of = vec![0_u8; BINS];
    let mut palette = Vec::with_capacity(3 * boxes.len());
    for (i, bins) in boxes.iter().enumerate() {
        let count = bins.iter().map(|&b| counts[b]).sum::<u64>().max(1);
        // Means of bytes, and at most 64 boxes.
        palette.extend((0..3).map(|c| (bins.iter().map(|&b| sums[b][c]).sum::<u64>() / count) as u8));
        for &b in bins {
            index_of[b] = i as u8;
        }
    }
    (palette, rgb.chunks_exact(3).map(|p| index_of[bin(p)]).collect())
}

fn bin(pixel: &[u8]) -> usize {
    pixel.iter().fold(0, |bin, &v| bin << BITS | usize::from(v) >> (8 - BITS))
}

fn component(bin: usize, channel: usize) -> usize {
    bin >> (BITS * (2 - channel)) & ((1 << BITS) - 1)
}

/// The box and channel to be cut next: the largest range, weighed by the root of the pixels in it. `None` when every
/// box has one bin.
fn widest(boxes: &[Vec<usize>], counts: &[u64]) -> Option<(usize, usize)> {
    let mut best = None;
    for (i, bins) in boxes.iter().enumerate().filter(|(_, bins)| bins.len() > 1) {
        let pixels = bins.iter().map(|&b| counts[b]).sum::<u64>().isqrt().isqrt();
        for channel in 0..3 {
            let values = || bins.iter().map(|&b| component(b, channel));
            let range = values().max().unwrap_or(0) - values().min().unwrap_or(0);
            let weight = range as u64 * pixels;
            if best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, (i, channel)));
            }
        }
    }
    best.map(|(_, cut)| cut)
}

/// Where half of the pixels lie on either side; both parts get a bin at least.
fn median(bins: &[usize], counts: &[u64]) -> usize {
    let half = bins.iter().map(|&b| counts[b]).sum::<u64>() / 2;
    let mut seen = 0;
    let cut = bins.iter().position(|&b| {
        seen += counts[b];
        seen > half
    });
    cut.unwrap_or(1).clamp(1, bins.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_are_kept_exactly() {
        let rgb: Vec<u8> = [[1, 2, 3], [250, 0, 9], [1, 2, 3], [90, 90, 200]].concat();
        let (palette, indices) = reduce(&rgb);
        let back: Vec<u8> =
            indices.iter().flat_map(|&i| palette[3 * usize::from(i)..][..3].to_vec()).collect();
        assert_eq!(back, rgb);
    }

    #[test]
    fn a_gradient_stays_within_its_box_and_the_palette_within_its_size() {
        let rgb: Vec<u8> = (0..=255_u8).flat_map(|v| [v, 255 - v, v / 2]).collect();
        let (palette, indices) = reduce(&rgb);
        assert!(palette.len() <= 3 * COLOURS);
        for (pixel, &i) in rgb.chunks_exact(3).zip(&indices) {
            let got = &palette[3 * usize::from(i)..][..3];
            assert!(got.iter().zip(pixel).all(|(a, b)| a.abs_diff(*b) <= 16), "{got:?} {pixel:?}");
        }
    }

    #[test]
    fn an_empty_picture_has_no_indices() {
        assert!(reduce(&[]).1.is_empty());
    }
}
