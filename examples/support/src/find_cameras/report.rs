//! The result of `find_cameras`: pictures, a sheet of them, a text and a JSON.

use std::fmt::Write as _;
use std::path::Path;

use so101_hal::Frame;
use so101_hal::camera::framing::Reference;

use super::FindCamerasArgs;
use super::look::Seen;
use crate::contact_sheet::ContactSheet;
use crate::error::{Error, Result};

/// Saves the pictures of all cameras, and one sheet with all of them.
pub(super) fn save(seen: &[Seen], args: &FindCamerasArgs) -> Result<()> {
    let frames: Vec<(&str, &Frame)> =
        seen.iter().filter_map(|s| Some((s.config.name.as_str(), s.frame.as_ref()?))).collect();
    if frames.is_empty() {
        return Ok(());
    }
    let io = |what, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { what, path, source }
    };
    std::fs::create_dir_all(&args.out).map_err(io("create folder", &args.out))?;
    let mut sheet = ContactSheet::new(1);
    for (name, frame) in frames {
        let png = args.out.join(format!("{name}.png"));
        let size = frame.size();
        image::save_buffer(&png, frame.rgb(), size.width, size.height, image::ColorType::Rgb8)
            .map_err(|source| Error::Picture { path: png, source })?;
        if let Some(jpeg) = frame.jpeg() {
            let path = args.out.join(format!("{name}.jpg"));
            std::fs::write(&path, jpeg).map_err(io("write picture", &path))?;
        }
        if args.save_reference {
            Reference::of(name, frame).save(&args.out.join(format!("{name}.pgm")))?;
        }
        sheet.add_row(name, &[frame]);
    }
    sheet.save(&args.out.join("sheet.png"))
}

/// All of it for programs.
pub(super) fn json(seen: &[Seen]) -> Result<String> {
    serde_json::to_string_pretty(seen).map_err(|e| Error::Io {
        what: "write the result to",
        path: "stdout".into(),
        source: e.into(),
    })
}

/// A paragraph for each camera.
pub(super) fn text(seen: &[Seen]) -> String {
    let mut text = String::new();
    for s in seen {
        if !text.is_empty() {
            text.push('\n');
        }
        camera(&mut text, s);
    }
    text.truncate(text.trim_end().len());
    text
}

fn camera(text: &mut String, s: &Seen) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}: {}", s.config.name, s.config.source);
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "  {label:<10} {value}");
    };
    if let Some(info) = &s.info {
        let ids = [&info.vid, &info.pid, &info.serial].map(|id| id.as_deref().unwrap_or("-"));
        line("device", format!("{} {} (usb {}:{} serial {})", info.path, info.name, ids[0], ids[1], ids[2]));
    }
    for format in &s.formats {
        let sizes: Vec<String> = format
            .sizes
            .iter()
            .map(|size| {
                let rates: Vec<String> = size.fps.iter().map(|r| format!("{r:.0}")).collect();
                format!("{} at {}", size.size, rates.join("/"))
            })
            .collect();
        line("offers", format!("{} {}", format.fourcc, sizes.join(", ")));
    }
    if let Some(error) = &s.error {
        line("error", error.clone());
    }
    if let Some(device) = &s.device {
        line("picture", format!("{} {}", device.format, s.config.size));
        let controls: Vec<String> = device.controls.iter().map(ToString::to_string).collect();
        if !controls.is_empty() {
            line("controls", controls.join("; "));
        }
        let refused: Vec<&str> = device.refused().map(|c| c.name).collect();
        if !refused.is_empty() {
            line("NOT LOCKED", refused.join(", "));
        }
    }
    if let Some(pace) = &s.pace {
        line(
            "rate",
            format!(
                "{:.2} Hz, jitter {:.1} ms, {} lost, {} damaged of {}",
                pace.fps,
                1e3 * pace.jitter.as_secs_f64(),
                pace.dropped,
                s.damaged,
                pace.frames
            ),
        );
    }
    if let Some(f) = &s.figures {
        line(
            "light",
            format!(
                "mean luma {:.0}, black {:.1} %, white {:.1} %",
                f.mean_luma,
                100.0 * f.clipped.low,
                100.0 * f.clipped.high
            ),
        );
        line("focus", format!("{:.0}", f.focus));
    }
    if let Some(f) = &s.framing {
        let sure = if f.is_certain() { "" } else { ", not certain: another scene, or nothing to see" };
        line("framing", format!("{:+.1}, {:+.1} px, correlation {:.2}{sure}", f.dx_px, f.dy_px, f.ncc));
    }
}
