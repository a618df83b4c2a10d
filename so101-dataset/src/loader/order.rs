//! A random order of `0..n` that needs no memory: a keyed permutation.

/// Rounds of the Feistel network; four make a strong permutation (Luby and Rackoff 1988).
const ROUNDS: u64 = 4;

/// A permutation of `0..n`, drawn by a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    n: u64,
    /// Bits of each half.
    half_bits: u32,
    key: u64,
}

impl Permutation {
    pub(super) fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self { n, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Where `i < n` goes: each place once.
    pub(super) fn at(&self, i: u64) -> u64 {
        // The network permutes a power of four that is less than 4 n; walking along a cycle stays a permutation.
        let mut x = i;
        loop {
            x = self.network(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn network(&self, x: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in 0..ROUNDS {
            let mixed = mix(right ^ mix(self.key.wrapping_add(round)));
            (left, right) = (right, left ^ (mixed & mask));
        }
        (left << self.half_bits) | right
    }
}

/// SplitMix64's finalizer (Steele, Lea and Flood 2014): every bit depends on every bit.
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_is_taken_once(n in 1_u64..3000, key in any::<u64>()) {
            let p = Permutation::new(n, key);
            let mut seen = vec![false; usize::try_from(n).unwrap()];
            for i in 0..n {
                let at = usize::try_from(p.at(i)).unwrap();
                prop_assert!(!std::mem::replace(&mut seen[at], true));
            }
        }
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let p = Permutation::new(10_000, 3);
        let near = (0..9_999).filter(|i| p.at(*i).abs_diff(p.at(i + 1)) < 100).count();
        // 2 % of random pairs are that near.
        assert!((100..320).contains(&near), "{near}");
    }
}
