//! Key-values of the arrow schema that pyarrow keeps in a parquet footer under `ARROW:schema`.
//!
//! The value is base64 of an encapsulated IPC message: a flatbuffer `Message` (arrow's Message.fbs) whose header is a
//! `Schema` (Schema.fbs) with a list of `KeyValue`. Only that list is read, with every offset checked: the full decoder
//! of arrow panics on damaged bytes.

/// Field numbers in the flatbuffer tables.
const MESSAGE_HEADER: usize = 2;
const SCHEMA_METADATA: usize = 2;
const PAIR_KEY: usize = 0;
const PAIR_VALUE: usize = 1;
/// Most key-values that are looked at.
const MAX_PAIRS: usize = 4096;

/// The value of `key` in the schema's key-values.
pub(super) fn find(encoded: &str, key: &str) -> Option<String> {
    let bytes = decode_base64(encoded)?;
    // A continuation mark, which old writers leave out, and the length of the message.
    let start = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let buffer = Buffer { bytes: bytes.get(start..)? };
    let message = buffer.follow(0)?;
    let schema = buffer.follow(buffer.field(message, MESSAGE_HEADER)?)?;
    let list = buffer.follow(buffer.field(schema, SCHEMA_METADATA)?)?;
    let pairs = usize::try_from(buffer.u32(list)?).ok()?.min(MAX_PAIRS);
    let pair_of = |i: usize| buffer.follow(list.checked_add(4 + 4 * i)?);
    let found = (0..pairs).filter_map(pair_of).find(|p| buffer.text(*p, PAIR_KEY) == Some(key))?;
    buffer.text(found, PAIR_VALUE).map(str::to_owned)
}

/// A flatbuffer.
struct Buffer<'a> {
    bytes: &'a [u8],
}

impl<'a> Buffer<'a> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Where the offset at `at` leads.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(self.u32(at)?).ok()?)
    }

    /// Where field number `field` of a table lies, by the table's list of offsets.
    fn field(&self, table: usize, field: usize) -> Option<usize> {
        let back = isize::try_from(i32::from_le_bytes(self.array(table)?)).ok()?;
        let offsets = table.checked_add_signed(back.checked_neg()?)?;
        let u16_at = |at: usize| self.array(at).map(|b| usize::from(u16::from_le_bytes(b)));
        let slot = 4 + 2 * field;
        if slot + 2 > u16_at(offsets)? {
            return None;
        }
        let offset = u16_at(offsets.checked_add(slot)?)?;
        if offset == 0 { None } else { table.checked_add(offset) }
    }

    fn text(&self, table: usize, field: usize) -> Option<&'a str> {
        let at = self.follow(self.field(table, field)?)?;
        let length = usize::try_from(self.u32(at)?).ok()?;
        let start = at.checked_add(4)?;
        core::str::from_utf8(self.bytes.get(start..start.checked_add(length)?)?).ok()
    }
}

/// RFC 4648, section 4.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut bits) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        group = (group << 6 | u32::from(value)) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((group >> bits) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn encoded() -> String {
        let pairs: HashMap<String, String> = [("pandas", "{\"é\": 1}"), ("huggingface", "{}")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let schema = Schema::new_with_metadata(vec![Field::new("task", DataType::Utf8, true)], pairs);
        parquet::arrow::encode_arrow_schema(&Arc::new(schema))
    }

    #[test]
    fn the_key_values_of_a_schema_are_found() {
        let encoded = encoded();
        assert_eq!(find(&encoded, "pandas").as_deref(), Some("{\"é\": 1}"));
        assert_eq!(find(&encoded, "huggingface").as_deref(), Some("{}"));
        assert_eq!(find(&encoded, "other"), None);
    }

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        for (text, bytes) in
            [("", &b""[..]), ("Zg==", b"f"), ("Zm8=", b"fo"), ("Zm9vYmFy", b"foobar"), ("+/8", b"\xfb\xff")]
        {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(decode_base64("Zm9v YmFy"), None);
    }

    proptest::proptest! {
        #[test]
        fn damaged_schemas_are_survived(
            edits in proptest::collection::vec((0_usize..4096, proptest::prelude::any::<u8>()), 1..6),
            cut in 0_usize..2000,
        ) {
            let mut bytes = decode_base64(&encoded()).unwrap();
            for (at, byte) in edits {
                let n = bytes.len();
                bytes[at % n] = byte;
            }
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
            let mut text = String::new();
            for group in bytes.chunks(3) {
                let n = group.iter().fold(0_u32, |v, b| v << 8 | u32::from(*b)) << (8 * (3 - group.len()));
                (0..=group.len()).for_each(|i| text.push(alphabet[(n >> (18 - 6 * i) & 63) as usize]));
            }
            let _ = (find(&text, "pandas"), find(&text, ""));
        }
    }
}
