//! Whether the H.264 code was built with its assembly.

/// What is known of the assembly in the H.264 library of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SimdReport {
    /// The assembler was there when this crate was built (x86), or none is needed (Arm: the C compiler has it).
    Present,
    /// nasm was missing or its use switched off: encoding and decoding take twice the time.
    Missing,
    /// No assembly exists for this processor, or the codec is not built in.
    NotApplicable,
}

impl core::fmt::Display for SimdReport {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Present => "H.264 with assembly",
            Self::Missing => {
                "H.264 without assembly, at half speed: install nasm, then run \
                 cargo clean -p openh264-sys2 -p so101-dataset and build again"
            }
            Self::NotApplicable => "H.264 without assembly",
        })
    }
}

/// What this crate's build script saw. openh264 drops its assembly without a word where nasm is missing, and tells
/// nobody at run time, so this is the state of the machine at build time: a library compiled before nasm was
/// installed stays slow until it is compiled again.
#[must_use]
pub fn simd_report() -> SimdReport {
    match env!("SO101_H264_ASM") {
        "present" => SimdReport::Present,
        "missing" => SimdReport::Missing,
        _ => SimdReport::NotApplicable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_build_with_the_codec_always_has_its_assembly() {
        if cfg!(all(feature = "video", target_arch = "aarch64")) {
            assert_eq!(simd_report(), SimdReport::Present);
        }
    }

    #[test]
    fn a_build_without_the_codec_has_nothing_to_report() {
        if !cfg!(feature = "video") {
            assert_eq!(simd_report(), SimdReport::NotApplicable);
        }
    }

    #[test]
    fn a_missing_assembler_says_what_to_do_on_one_line() {
        let text = SimdReport::Missing.to_string();
        assert!(text.contains("install nasm") && !text.contains('\n'), "{text}");
    }
}
