//! Pages of a column, checked before they are decoded.
//!
//! The decoder of the `parquet` crate takes levels, bit widths and dictionary indices on trust, and panics on damaged
//! ones. This walk over the same bytes refuses them first. The layout is that of the Parquet format's `Encodings.md`:
//! levels and dictionary indices are runs, either of one value or of groups of eight bit-packed ones.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

/// Widest dictionary index.
const MAX_INDEX_BITS: u8 = 32;

/// Bytes that the values of a column decode to; 0 where they are of free length.
pub(super) fn fixed_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let values = u64::try_from(chunk.num_values()).unwrap_or(0);
    let kind = Kind::of(chunk.column_type(), chunk.column_descr().type_length());
    values.saturating_mul(kind.map_or(0, Kind::bytes_a_value))
}

/// Checks one column of one row group; returns at most how many bytes it decodes to.
///
/// # Errors
/// What is wrong, without the column's name.
pub(super) fn check_column(file: &Arc<File>, chunk: &ColumnChunkMetaData, rows: u64) -> Result<u64, String> {
    let total_rows = usize::try_from(rows).map_err(|e| e.to_string())?;
    let mut pages =
        SerializedPageReader::new(file.clone(), chunk, total_rows, None).map_err(|e| e.to_string())?;
    let descriptor = chunk.column_descr();
    let mut column = Column {
        kind: Kind::of(chunk.column_type(), descriptor.type_length())?,
        max_rep: u32::try_from(descriptor.max_rep_level()).unwrap_or(0),
        max_def: u32::try_from(descriptor.max_def_level()).unwrap_or(0),
        dictionary: None,
        longest: 0,
        declared: u64::try_from(chunk.num_values()).unwrap_or(0),
        values: 0,
        rows: 0,
        bytes: fixed_bytes(chunk),
    };
    while let Some(page) = pages.get_next_page().map_err(|e| e.to_string())? {
        column.check_page(&page)?;
    }
    if column.values != column.declared || column.rows != rows {
        return Err(format!(
            "{} values in {} rows where the footer says {} in {rows}",
            column.values,
            column.rows,
            chunk.num_values()
        ));
    }
    Ok(column.bytes)
}

/// How plain values lie in a page.
#[derive(Clone, Copy)]
enum Kind {
    Bits,
    Fixed(usize),
    /// Four bytes of length, then the bytes.
    Sized,
}

impl Kind {
    fn of(physical: Type, type_length: i32) -> Result<Self, String> {
        Ok(match physical {
            Type::BOOLEAN => Self::Bits,
            Type::INT32 | Type::FLOAT => Self::Fixed(4),
            Type::INT64 | Type::DOUBLE => Self::Fixed(8),
            Type::INT96 => Self::Fixed(12),
            Type::BYTE_ARRAY => Self::Sized,
            Type::FIXED_LEN_BYTE_ARRAY => Self::Fixed(
                usize::try_from(type_length).map_err(|_| "a negative length of its type".to_owned())?,
            ),
        })
    }

    /// Of a decoded value; 0 where each has its own length.
    fn bytes_a_value(self) -> u64 {
        match self {
            Self::Bits => 1,
            Self::Fixed(size) => size as u64,
            Self::Sized => 0,
        }
    }

    /// Returns the length of the longest value, 0 where all are alike.
    fn check_plain(self, bytes: &[u8], count: u64) -> Result<u64, String> {
        let needed = match self {
            Self::Bits => count.div_ceil(8),
            Self::Fixed(size) => count.saturating_mul(size as u64),
            Self::Sized => {
                let (mut rest, mut longest) = (bytes, 0);
                for _ in 0..count {
                    longest = longest.max(take_sized(&mut rest)?.len() as u64);
                }
                return Ok(longest);
            }
        };
        if needed > bytes.len() as u64 {
            return Err(format!("{count} values take {needed} bytes, a page has {}", bytes.len()));
        }
        Ok(0)
    }
}

/// What is known while the pages pass by.
struct Column {
    kind: Kind,
    max_rep: u32,
    max_def: u32,
    /// Values in the dictionary.
    dictionary: Option<u32>,
    /// Bytes of the longest value in the dictionary.
    longest: u64,
    /// Values that the footer declares.
    declared: u64,
    values: u64,
    rows: u64,
    /// Bytes that all decode to, at most.
    bytes: u64,
}

impl Column {
    fn check_page(&mut self, page: &Page) -> Result<(), String> {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                    return Err(format!("a dictionary in the encoding {encoding}"));
                }
                self.dictionary = Some(*num_values);
                self.longest = self.kind.check_plain(buf, u64::from(*num_values))?;
                Ok(())
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let mut rest: &[u8] = buf;
                let mut levels = |max: u32, encoding: &Encoding| match (max, encoding) {
                    (0, _) => Ok(None),
                    (_, Encoding::RLE) => take_sized(&mut rest).map(Some),
                    _ => Err(format!("levels in the encoding {encoding}")),
                };
                let rep = levels(self.max_rep, rep_level_encoding)?;
                let def = levels(self.max_def, def_level_encoding)?;
                self.check_data(rep, def, rest, u64::from(*num_values), *encoding)
            }
            Page::DataPageV2 {
                buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let split = |bytes: &[u8], at: u32| {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    if at > bytes.len() {
                        Err("levels that end behind their page".to_owned())
                    } else {
                        Ok(at)
                    }
                };
                let (rep, rest) = buf.split_at(split(buf, *rep_levels_byte_len)?);
                let (def, rest) = rest.split_at(split(rest, *def_levels_byte_len)?);
                let rep = (self.max_rep > 0).then_some(rep);
                let def = (self.max_def > 0).then_some(def);
                self.check_data(rep, def, rest, u64::from(*num_values), *encoding)
            }
        }
    }

    fn check_data(
        &mut self,
        rep: Option<&[u8]>,
        def: Option<&[u8]>,
        data: &[u8],
        values: u64,
        encoding: Encoding,
    ) -> Result<(), String> {
        self.values += values;
        if self.values > self.declared {
            return Err(format!("more than the {} values of the footer", self.declared));
        }
        let walk_levels = |bytes: Option<&[u8]>, max: u32, wanted: u32| match bytes {
            None => Ok(values),
            Some(bytes) => {
                let bits = u32::BITS - max.leading_zeros();
                walk(bytes, bits, values, max.saturating_add(1), wanted)
            }
        };
        self.rows += walk_levels(rep, self.max_rep, 0)?;
        let present = walk_levels(def, self.max_def, self.max_def)?;
        if present == 0 {
            return Ok(());
        }
        match encoding {
            Encoding::PLAIN => {
                if matches!(self.kind, Kind::Sized) {
                    self.bytes = self.bytes.saturating_add(data.len() as u64);
                }
                self.kind.check_plain(data, present).map(drop)
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let dictionary =
                    self.dictionary.ok_or("a page that needs a dictionary, and there is none")?;
                let (bits, indices) = data.split_first().ok_or("a page without dictionary indices")?;
                if *bits > MAX_INDEX_BITS {
                    return Err(format!("dictionary indices of {bits} bits"));
                }
                self.bytes = self.bytes.saturating_add(present.saturating_mul(self.longest));
                walk(indices, u32::from(*bits), present, dictionary, 0).map(drop)
            }
            Encoding::RLE => {
                let mut rest = data;
                walk(take_sized(&mut rest)?, 1, present, 2, 0).map(drop)
            }
            // The decoders of the other encodings check for themselves; LeRobot writes none of them.
            _ => Ok(()),
        }
    }
}

/// Takes four bytes of length and as many bytes off the front.
fn take_sized<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let short = || "a length that leads out of its page".to_owned();
    let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if length > after.len() {
        return Err(short());
    }
    let (taken, after) = after.split_at(length);
    *rest = after;
    Ok(taken)
}

/// Walks over `count` values of `bits` bits in runs, all of which must be below `limit`; returns how many equal
/// `wanted`.
fn walk(mut bytes: &[u8], bits: u32, count: u64, limit: u32, wanted: u32) -> Result<u64, String> {
    let short = || "runs that end early".to_owned();
    let check = |value: u64| {
        if value < u64::from(limit) {
            Ok(value == u64::from(wanted))
        } else {
            Err(format!("a value {value} of {limit}"))
        }
    };
    let (mut left, mut equal) = (count, 0);
    while left > 0 {
        let header = take_varint(&mut bytes).ok_or_else(short)?;
        if header & 1 == 0 {
            let width = (bits as usize).div_ceil(8);
            if width > bytes.len() {
                return Err(short());
            }
            let (value, rest) = bytes.split_at(width);
            bytes = rest;
            let value = value.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
            let run = (header >> 1).min(left);
            equal += if check(value)? { run } else { 0 };
            // A run of nothing would never end.
            left -= if run == 0 { return Err("an empty run".to_owned()) } else { run };
        } else {
            let groups = header >> 1;
            let run = groups.saturating_mul(8).min(left);
            let needed = run.saturating_mul(u64::from(bits)).div_ceil(8);
            if run == 0 || needed > bytes.len() as u64 {
                return Err(short());
            }
            for i in 0..run {
                equal += u64::from(check(unpack(bytes, i * u64::from(bits), bits))?);
            }
            let packed = usize::try_from(groups.saturating_mul(u64::from(bits))).unwrap_or(usize::MAX);
            bytes = bytes.get(packed..).unwrap_or_default();
            left -= run;
        }
    }
    Ok(equal)
}

/// `bits` bits from bit `at` on, the lowest first.
fn unpack(bytes: &[u8], at: u64, bits: u32) -> u64 {
    let (byte, shift) = ((at / 8) as usize, (at % 8) as u32);
    let window = bytes.get(byte..).unwrap_or_default().iter().take(5);
    let value = window.rev().fold(0_u64, |v, b| v << 8 | u64::from(*b));
    (value >> shift) & ((1_u64 << bits) - 1)
}

/// An unsigned number of seven bits a byte, the lowest first.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_groups_are_walked_alike() {
        // The example of Encodings.md: 0 to 7 in three bits, packed as 10001000 11000110 11111010.
        let packed = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(walk(&packed, 3, 8, 8, 5), Ok(1));
        assert_eq!(walk(&packed, 3, 8, 7, 5), Err("a value 7 of 7".into()));
        // A run of five times 2, then the packed group.
        let mixed = [&[10, 2][..], &packed].concat();
        assert_eq!(walk(&mixed, 3, 13, 8, 2), Ok(6));
        assert_eq!(walk(&mixed, 3, 14, 8, 2), Err("runs that end early".into()));
    }

    #[test]
    fn damaged_runs_are_refused() {
        for bytes in [&[][..], &[0x80], &[2], &[0, 1], &[3, 1], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]] {
            assert!(walk(bytes, 9, 3, 400, 0).is_err(), "{bytes:?}");
        }
        assert_eq!(walk(&[8], 0, 4, 1, 0), Ok(4), "no bits: every value is 0");
    }

    #[test]
    fn indices_of_32_bits_are_unpacked_across_bytes() {
        assert_eq!(unpack(&[0b1000_0000, 0xff, 0xff, 0xff, 0x7f, 0xff], 7, 32), u64::from(u32::MAX));
    }

    #[test]
    fn plain_texts_must_lie_inside_of_their_page() {
        let text = [2, 0, 0, 0, b'a', b'b', 9, 0, 0, 0];
        assert_eq!(Kind::Sized.check_plain(&text, 1), Ok(2));
        assert!(Kind::Sized.check_plain(&text, 2).is_err());
        assert!(Kind::Bits.check_plain(&[0], 8).is_ok());
        assert!(Kind::Bits.check_plain(&[0], 9).is_err());
    }
}
