//! The mp4 files: presence, index, and every picture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::report::{Findings, Place};
use super::{Subject, Videos, rules};
use crate::features::Feature;
use crate::mp4::Mp4Index;

/// LeRobot's tolerance on the time of a picture, in seconds.
const TIME_TOLERANCE_S: f64 = 1e-4;
/// More pictures than this between key frames make random access slow.
const LARGE_KEY_GAP: u64 = 60;

/// Means of the decoded pictures by feature.
pub(super) type CameraMeans = BTreeMap<String, PictureMeans>;

/// Means of the decoded pictures of one feature.
#[derive(Default)]
pub(super) struct PictureMeans {
    /// By position in the table of episodes; only episodes of which every picture was decoded.
    pub(super) episodes: BTreeMap<usize, Sums>,
}

impl PictureMeans {
    /// The mean over all episodes.
    pub(super) fn whole(&self) -> [f64; 3] {
        let mut all = Sums::default();
        for sums in self.episodes.values() {
            all.pictures += sums.pictures;
            for (a, b) in all.channels.iter_mut().zip(sums.channels) {
                *a += b;
            }
        }
        all.mean()
    }
}

/// Sums of the means of pictures, by channel, in [0, 1].
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pictures: u64,
    channels: [f64; 3],
}

impl Sums {
    /// The mean of all pictures.
    pub(super) fn mean(&self) -> [f64; 3] {
        self.channels.map(|c| c / self.pictures.max(1) as f64)
    }

    #[cfg(feature = "video")]
    fn add(&mut self, rgb: &[u8]) {
        let mut sums = [0_u64; 3];
        for pixel in rgb.chunks_exact(3) {
            for (sum, value) in sums.iter_mut().zip(pixel) {
                *sum += u64::from(*value);
            }
        }
        let pixels = (rgb.len() / 3).max(1) as f64;
        for (channel, sum) in self.channels.iter_mut().zip(sums) {
            *channel += sum as f64 / pixels / 255.0;
        }
        self.pictures += 1;
    }
}

/// Where one episode's pictures are in a file.
struct Span {
    /// Position in the table of episodes.
    #[cfg_attr(not(feature = "video"), expect(dead_code, reason = "only decoding needs it"))]
    number: usize,
    episode: u64,
    first: u64,
    length: u64,
    from_s: f64,
    to_s: f64,
}

/// Checks all videos.
pub(super) fn check_videos(subject: &Subject<'_>, videos: Videos, findings: &mut Findings) -> CameraMeans {
    let mut means = CameraMeans::new();
    let Some(episodes) = subject.episodes.as_ref().filter(|_| videos != Videos::TablesOnly) else {
        return means;
    };
    let fps = subject.info.fps;
    let mut files: BTreeMap<(&str, PathBuf), Vec<Span>> = BTreeMap::new();
    for (number, row) in episodes.rows.iter().enumerate() {
        for v in &row.videos {
            let Ok(path) = subject.info.video_file(&v.key, v.chunk, v.file) else { continue };
            let (episode, first, length) = (row.episode, v.first_frame(fps), row.length);
            let span = Span { number, episode, first, length, from_s: v.from_s, to_s: v.to_s };
            files.entry((&v.key, subject.root.join(path))).or_default().push(span);
        }
    }
    for ((key, path), mut spans) in files {
        spans.sort_by_key(|s| s.first);
        let mut file = VideoFile { subject, key, path: &path, spans, findings: &mut *findings };
        let Some(index) = file.index() else { continue };
        file.check_index(&index);
        file.check_spans(&index);
        if videos == Videos::Decode {
            file.decode(means.entry(key.to_owned()).or_default());
        }
    }
    means
}

/// One mp4 with the episodes in it.
struct VideoFile<'a> {
    subject: &'a Subject<'a>,
    key: &'a str,
    path: &'a Path,
    spans: Vec<Span>,
    findings: &'a mut Findings,
}

impl VideoFile<'_> {
    fn index(&mut self) -> Option<Mp4Index> {
        let path = self.path;
        if !path.exists() {
            let episodes = self.spans.len();
            let message = format!("the video of {episodes} episodes does not exist");
            self.findings.error(rules::VIDEO_MISSING, Place::file(path), message);
            return None;
        }
        self.findings.figures().video_files += 1;
        match Mp4Index::read(path) {
            Ok(index) => {
                self.findings.figures().pictures += index.samples.len() as u64;
                Some(index)
            }
            Err(e) => {
                self.findings.unreadable(rules::VIDEO_UNREADABLE, Place::file(path), &e);
                None
            }
        }
    }

    fn check_index(&mut self, index: &Mp4Index) {
        let place = Place::file(self.path);
        let rows: u64 = self.spans.iter().map(|s| s.length).sum();
        let pictures = index.samples.len() as u64;
        if pictures != rows {
            let message = format!("{pictures} pictures for {rows} rows");
            self.findings.error(rules::VIDEO_FRAMES, place, message);
        }
        let declared = self.subject.info.features.get(self.key).and_then(Feature::picture_size);
        if let Some(declared) = declared.filter(|d| *d != index.size) {
            let message = format!("pictures of {}, info.json says {declared}", index.size);
            self.findings.error(rules::VIDEO_SIZE, place, message);
        }
        self.check_times(index);
        self.check_key_frames(index);
    }

    fn check_times(&mut self, index: &Mp4Index) {
        let (fps, scale) = (f64::from(self.subject.info.fps), f64::from(index.timescale));
        let mut times_s: Vec<f64> = Vec::with_capacity(index.samples.len());
        for i in 0..index.samples.len() {
            // Without a time it counts as out of time.
            times_s.push(index.pts_ticks(i).map_or(f64::NAN, |t| t as f64 / scale));
        }
        times_s.sort_unstable_by(f64::total_cmp);
        let late = |(k, t): &(usize, f64)| t.is_nan() || (t - *k as f64 / fps).abs() > TIME_TOLERANCE_S;
        let mut wrong = times_s.into_iter().enumerate().filter(late);
        if let Some((k, t)) = wrong.next() {
            let (expected, all) = (k as f64 / fps, 1 + wrong.count());
            let message =
                format!("picture {k} is shown at {t:.6} s, expected {expected:.6} s ({all} pictures)");
            self.findings.error(rules::VIDEO_TIMING, Place::file(self.path), message);
        }
    }

    fn check_key_frames(&mut self, index: &Mp4Index) {
        let pictures = index.samples.len();
        let keys: Vec<usize> = index.key_frames().chain([pictures]).collect();
        if keys.first().is_some_and(|k| *k != 0) {
            self.findings.error(
                rules::VIDEO_KEYGAP,
                Place::file(self.path),
                "the first picture is no key frame",
            );
        }
        let gap =
            keys.windows(2).map(|w| w.last().zip(w.first()).map_or(0, |(b, a)| b - a)).max().unwrap_or(0)
                as u64;
        if gap > LARGE_KEY_GAP {
            let message = format!("{gap} pictures from one key frame to the next make random access slow");
            self.findings.warning(rules::VIDEO_KEYGAP, Place::file(self.path), message);
        }
        let figures = self.findings.figures();
        figures.max_key_gap = figures.max_key_gap.max(gap);
    }

    fn check_spans(&mut self, index: &Mp4Index) {
        let fps = f64::from(self.subject.info.fps);
        let pictures = index.samples.len() as u64;
        let mut at = 0;
        for span in &self.spans {
            let place = Place::episode(self.path, span.episode);
            let end = span.first.saturating_add(span.length);
            if span.first < at || end > pictures || span.from_s < 0.0 {
                let message = format!(
                    "{}: pictures {} to {end} of {pictures}, the episode before ends at {at}",
                    self.key, span.first
                );
                self.findings.error(rules::VIDEO_SPAN, place, message);
            }
            let lasts = span.to_s - span.from_s;
            if (lasts - span.length as f64 / fps).abs() > 0.5 / fps {
                let message =
                    format!("{}: lasts {lasts:.4} s for {} rows at {fps} Hz", self.key, span.length);
                self.findings.error(rules::VIDEO_SPAN, place, message);
            }
            let drift = span.from_s - span.first as f64 / fps;
            if drift.abs() > TIME_TOLERANCE_S {
                let message =
                    format!("{}: from_timestamp {} is {drift:.6} s off a picture", self.key, span.from_s);
                self.findings.warning(rules::VIDEO_SPAN, place, message);
            }
            at = at.max(end);
        }
    }

    #[cfg(not(feature = "video"))]
    fn decode(&mut self, _means: &mut PictureMeans) {
        let place = Place::file(self.path);
        self.findings.info(rules::VIDEO_DECODE, place, "not decoded: built without the feature video");
    }

    #[cfg(feature = "video")]
    fn decode(&mut self, means: &mut PictureMeans) {
        use crate::error::Error;
        use crate::video::VideoReader;

        let mut video = match VideoReader::open(self.path) {
            Ok(video) => video,
            Err(Error::UnsupportedCodec { codec, .. }) => {
                let place = Place::file(self.path);
                self.findings.info(rules::VIDEO_DECODE, place, format!("not decoded: codec {codec}"));
                return;
            }
            Err(e) => {
                self.findings.unreadable(rules::VIDEO_DECODE, Place::file(self.path), &e);
                return;
            }
        };
        let (mut failures, mut first_failure) = (0_u64, None);
        for span in &self.spans {
            let mut sums = Sums::default();
            for picture in span.first..span.first.saturating_add(span.length).min(video.frames()) {
                match video.frame(picture) {
                    Ok(frame) => {
                        sums.add(frame.rgb());
                        self.findings.figures().pictures_decoded += 1;
                    }
                    Err(e) => {
                        failures += 1;
                        first_failure.get_or_insert((span.episode, e));
                    }
                }
            }
            if sums.pictures == span.length {
                means.episodes.insert(span.number, sums);
            }
        }
        if let Some((episode, e)) = first_failure {
            let message = format!("{e} ({failures} pictures)");
            self.findings.error(rules::VIDEO_DECODE, Place::episode(self.path, episode), message);
        }
    }
}
