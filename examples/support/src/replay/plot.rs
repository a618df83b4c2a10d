//! The picture of a replay: a panel a joint with the commanded, the recorded and the simulated curve over time.

mod canvas;

use so101_hal::{Degrees, JointId, JointVector};

use super::report::{JointReport, Report, unit_name, value};
use crate::error::{Error, Result};
use canvas::{Canvas, Ink, Rect, TEXT_HEIGHT, text_width};

const WIDTH: usize = 1400;
const COLUMNS: usize = 2;
const ROWS: usize = 3;
const PANEL_HEIGHT: usize = 302;
/// Above the panels: title and legend.
const HEAD: usize = 76;
/// Around the axes of a panel: tick labels, title.
const LEFT: usize = 78;
const RIGHT: usize = 22;
const TOP: usize = 34;
const BOTTOM: usize = 40;

const PAPER: [u8; 3] = [255, 255, 255];
const BLACK: [u8; 3] = [30, 32, 36];
const GREY: [u8; 3] = [110, 114, 122];
const GRID: [u8; 3] = [226, 228, 232];
/// The wide curves lie below: where all three agree, each is still seen.
const COMMANDED: Ink = Ink { rgb: [160, 196, 240], width: 7.5 };
const RECORDED: Ink = Ink { rgb: [240, 140, 40], width: 4.2 };
const SIMULATED: Ink = Ink { rgb: [20, 60, 40], width: 1.6 };

/// The smallest height of a panel in degrees or percent: a joint at rest is a line, no noise.
const LEAST_SPAN: f64 = 4.0;

/// Writes the picture where the report says.
///
/// # Errors
/// [`Error::Picture`], [`Error::Io`].
pub(super) fn save(report: &Report) -> Result<()> {
    let path = &report.png;
    let png = draw(report).to_png().map_err(|source| Error::Picture { path: path.clone(), source })?;
    std::fs::write(path, png).map_err(|source| Error::Io { what: "write plot", path: path.clone(), source })
}

fn draw(report: &Report) -> Canvas {
    let mut canvas = Canvas::new(WIDTH, HEAD + ROWS * PANEL_HEIGHT, PAPER);
    head(&mut canvas, report);
    let width = WIDTH / COLUMNS;
    for (i, joint) in report.joints.iter().enumerate() {
        let (column, row) = (i % COLUMNS, i / COLUMNS);
        let axes = Rect {
            left: column * width + LEFT,
            top: HEAD + row * PANEL_HEIGHT + TOP,
            width: width - LEFT - RIGHT,
            height: PANEL_HEIGHT - TOP - BOTTOM,
        };
        panel(&mut canvas, report, joint, axes);
    }
    canvas
}

fn head(canvas: &mut Canvas, report: &Report) {
    let name = report.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let (rig, scene) = (&report.rig, report.surroundings());
    let assumed = if report.unit.is_assumed() { ", assumed calibration" } else { "" };
    let title = format!("replay of {name}, episode {}: rig {rig}, {scene}{assumed}", report.episode);
    canvas.text(&title, [LEFT, 16], BLACK);
    let mut left = LEFT;
    for (label, ink) in [("commanded", COMMANDED), ("recorded", RECORDED), ("simulated", SIMULATED)] {
        let y = 46.0 + TEXT_HEIGHT as f32 / 2.0;
        canvas.curve(&[[left as f32, y], [left as f32 + 44.0, y]], ink, Rect::of(canvas));
        canvas.text(label, [left + 56, 46], BLACK);
        left += 56 + text_width(label) + 40;
    }
    canvas.text("figures: RMS, commanded / recorded against simulated", [left + 20, 46], GREY);
}

fn panel(canvas: &mut Canvas, report: &Report, joint: &JointReport, axes: Rect) {
    let trace = &report.trace;
    let id = joint.joint;
    let duration_s = (trace.simulated.len().max(2) - 1) as f64 / f64::from(trace.fps.max(1));
    let all = [&trace.commanded, &trace.recorded, &trace.simulated].into_iter().flatten();
    let (low, high) = span(all.map(|q| value(q, id)));
    let scale = Scale { low, high, duration_s, axes };
    for tick in ticks(low, high, 7) {
        let y = scale.y(tick);
        canvas.horizontal(axes, y, GRID);
        let label = number(tick);
        let left = axes.left.saturating_sub(12 + text_width(&label));
        canvas.text(&label, [left, (y as usize).saturating_sub(TEXT_HEIGHT / 2)], GREY);
    }
    for tick in ticks(0.0, duration_s, 8) {
        let x = scale.x(tick);
        canvas.vertical(axes, x, GRID);
        let label = number(tick);
        let left = (x as usize).saturating_sub(text_width(&label) / 2);
        let label = if tick == 0.0 { format!("{label} s") } else { label };
        canvas.text(&label, [left, axes.bottom() + 10], GREY);
    }
    canvas.frame(axes, GREY);
    let unit = unit_name(id);
    canvas.text(&format!("{id} / {unit}"), [axes.left, axes.top - 24], BLACK);
    let figures = format!("{:.2} / {:.2} {unit}", joint.commanded.rms, joint.recorded.rms);
    canvas.text(&figures, [axes.right() - text_width(&figures), axes.top - 24], GREY);
    // An action is drawn where its effect is looked at: one period after it was sent.
    canvas.curve(&scale.points(&trace.commanded, id, trace.fps, 1), COMMANDED, axes);
    canvas.curve(&scale.points(&trace.recorded, id, trace.fps, 0), RECORDED, axes);
    canvas.curve(&scale.points(&trace.simulated, id, trace.fps, 0), SIMULATED, axes);
}

/// From time and joint value to pixels.
struct Scale {
    low: f64,
    high: f64,
    duration_s: f64,
    axes: Rect,
}

impl Scale {
    fn x(&self, at_s: f64) -> f32 {
        (self.axes.left as f64 + at_s / self.duration_s * (self.axes.width - 1) as f64) as f32
    }

    fn y(&self, value: f64) -> f32 {
        let share = (value - self.low) / (self.high - self.low);
        (self.axes.bottom() as f64 - 1.0 - share * (self.axes.height - 1) as f64) as f32
    }

    /// The curve of a joint whose row `i` belongs to control period `i + late`.
    fn points(&self, rows: &[JointVector<Degrees>], joint: JointId, fps: u32, late: usize) -> Vec<[f32; 2]> {
        let at_s = |i: usize| (i + late) as f64 / f64::from(fps.max(1));
        rows.iter().enumerate().map(|(i, q)| [self.x(at_s(i)), self.y(value(q, joint))]).collect()
    }
}

/// The values with some air, and with a height that is no amplifier of noise.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low > high {
        return (0.0, LEAST_SPAN);
    }
    let half = ((high - low) * 0.54).max(LEAST_SPAN / 2.0);
    let middle = f64::midpoint(low, high);
    (middle - half, middle + half)
}

/// Round numbers between `low` and `high`, at most `most` and at least a third of that.
fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    let decade = 10.0_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|m| m * decade).find(|s| *s >= rough).unwrap_or(10.0 * decade);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).max(-1.0) as usize + 1;
    (0..count).map(|i| (first + i as f64) * step).collect()
}

fn number(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::report::tests::wave;

    fn count(canvas: &Canvas, rgb: [u8; 3], panel: usize) -> usize {
        let (column, row) = (panel % COLUMNS, panel / COLUMNS);
        let width = WIDTH / COLUMNS;
        let of = |x: usize, y: usize| canvas.pixel(column * width + x, HEAD + row * PANEL_HEIGHT + y) == rgb;
        (TOP..PANEL_HEIGHT - BOTTOM).map(|y| (LEFT..width - RIGHT).filter(|&x| of(x, y)).count()).sum()
    }

    #[test]
    fn every_panel_shows_all_three_curves_even_where_they_agree() {
        let canvas = draw(&wave());
        for panel in 0..6 {
            for ink in [COMMANDED, RECORDED, SIMULATED] {
                assert!(count(&canvas, ink.rgb, panel) > 150, "panel {panel}, {ink:?}");
            }
        }
    }

    #[test]
    fn ticks_are_round_inside_and_not_too_many() {
        for (low, high, most, want) in [
            (-13.0, 57.0, 5, vec![0.0, 20.0, 40.0]),
            (0.0, 12.4, 8, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]),
            (-1.0, 3.0, 5, vec![-1.0, 0.0, 1.0, 2.0, 3.0]),
            (5.0, 5.0, 5, vec![]),
        ] {
            assert_eq!(ticks(low, high, most), want);
        }
        assert_eq!([-0.0, 0.5, -20.0, 0.25, 100.0].map(number), ["0", "0.5", "-20", "0.25", "100"]);
    }

    #[test]
    fn a_joint_at_rest_and_no_values_have_a_panel_too() {
        assert_eq!(span([3.0, 3.0].into_iter()), (1.0, 5.0));
        assert_eq!(span(std::iter::empty()), (0.0, LEAST_SPAN));
    }

    #[test]
    fn the_file_is_a_png_of_the_drawing() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = wave();
        report.png = dir.path().join("plot.png");
        save(&report).unwrap();
        let image = image::open(&report.png).unwrap().to_rgb8();
        assert_eq!((image.width() as usize, image.height() as usize), (WIDTH, HEAD + ROWS * PANEL_HEIGHT));
        report.png = dir.path().join("no/folder.png");
        assert!(save(&report).unwrap_err().one_line().contains("no/folder.png"));
    }
}
