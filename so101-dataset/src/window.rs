//! Windows over the rows of an episode: what a policy sees and what it shall do next.
//!
//! The meaning is that of LeRobot's `delta_timestamps`: a list of times relative to a row for each feature that is
//! wanted at several. Times before the episode's first row or after its last one repeat that row, and are flagged as
//! padding.

mod spec;

pub use spec::{DEFAULT_TOLERANCE_S, DeltaTimestamps, WindowSpec};

use std::sync::Arc;

use ndarray::{ArrayViewD, IxDyn};

use crate::error::{Error, Result};
use crate::features::{DType, Feature};
use crate::reader::store::ColumnStore;
use crate::reader::{Dataset, EpisodeRow, Values};

/// Windows at every row of a dataset.
///
/// ```no_run
/// use std::sync::Arc;
/// use so101_dataset::Dataset;
/// use so101_dataset::window::{WindowSpec, Windows};
/// let set = Arc::new(Dataset::open("outputs/push_left")?);
/// // The next 50 actions at each row.
/// let spec = WindowSpec::new().with_steps("action", 0..50);
/// let windows = Windows::new(set, &spec)?;
/// let window = windows.get(17)?;
/// let actions = window.column("action").and_then(|c| c.view_f32());
/// assert_eq!(actions.map(|a| a.shape().to_vec()), Some(vec![50, 6]));
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[derive(Debug)]
pub struct Windows {
    store: ColumnStore,
    columns: Vec<Wanted>,
    pictures: Vec<WantedPictures>,
    /// Place of `task_index` among the columns of the store.
    task: usize,
}

/// A feature of the tables.
#[derive(Debug)]
struct Wanted {
    name: Arc<str>,
    shape: Vec<usize>,
    dtype: DType,
    /// Steps relative to the row; `None` = the row alone.
    steps: Option<Vec<i64>>,
}

#[derive(Debug)]
struct WantedPictures {
    name: Arc<str>,
    steps: Option<Vec<i64>>,
}

/// One feature in a window.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WindowColumn {
    /// Name of the feature.
    pub name: Arc<str>,
    /// Shape of one step's value, `[1]` for a scalar.
    pub shape: Vec<usize>,
    /// The values of all steps, one after another.
    pub values: Values,
    /// Whether each step lies outside of the episode; `None` for a feature that is wanted at the row alone.
    pub is_pad: Option<Vec<bool>>,
}

/// Which pictures of a camera belong to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowPictures {
    /// Name of the feature.
    pub name: Arc<str>,
    /// Number of each picture within its episode.
    pub frames: Vec<u64>,
    /// Whether each step lies outside of the episode; `None` for a camera that is wanted at the row alone.
    pub is_pad: Option<Vec<bool>>,
}

/// What belongs to one row.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// Global number of the row.
    pub index: u64,
    /// Number of the episode.
    pub episode: u64,
    /// Number of the row in its episode.
    pub frame: u64,
    /// Number of the task; its text is in [`Dataset::tasks`].
    pub task_index: u64,
    /// Features of the tables, in the order of the dataset.
    pub columns: Vec<WindowColumn>,
    /// Cameras, in the order of the dataset.
    pub pictures: Vec<WindowPictures>,
}

impl Window {
    /// The feature of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&WindowColumn> {
        self.columns.iter().find(|c| &*c.name == name)
    }
}

impl WindowColumn {
    /// Shape of all values: the number of steps first where the feature has several.
    #[must_use]
    pub fn full_shape(&self) -> Vec<usize> {
        let steps = self.is_pad.as_ref().map(Vec::len);
        steps.into_iter().chain(self.shape.iter().copied()).collect()
    }

    /// The values as an array of [`Self::full_shape`], where they are float32.
    #[must_use]
    pub fn view_f32(&self) -> Option<ArrayViewD<'_, f32>> {
        let Values::F32(values) = &self.values else { return None };
        ArrayViewD::from_shape(IxDyn(&self.full_shape()), values).ok()
    }

    /// The values as an array of [`Self::full_shape`], where they are integers.
    #[must_use]
    pub fn view_i64(&self) -> Option<ArrayViewD<'_, i64>> {
        let Values::I64(values) = &self.values else { return None };
        ArrayViewD::from_shape(IxDyn(&self.full_shape()), values).ok()
    }
}

impl Windows {
    /// Windows over this dataset. Features that `spec` does not name come at the row alone, as in LeRobot; see
    /// [`WindowSpec::only`].
    ///
    /// # Errors
    /// [`Error::NoSuchFeature`] for a name that the dataset does not have.
    pub fn new(set: Arc<Dataset>, spec: &WindowSpec) -> Result<Self> {
        let features = &set.info().features;
        spec.check(features, set.root())?;
        let mut columns = Vec::new();
        let mut pictures = Vec::new();
        for (name, feature) in features.iter().filter(|(name, _)| spec.wants(name)) {
            let steps = spec.steps(name).map(<[i64]>::to_vec);
            let name: Arc<str> = name.into();
            if feature.dtype == DType::Video {
                pictures.push(WantedPictures { name, steps });
            } else {
                let Feature { dtype, shape, .. } = feature.clone();
                columns.push(Wanted { name, shape, dtype, steps });
            }
        }
        let mut names: Vec<String> = columns.iter().map(|c| c.name.to_string()).collect();
        let task = names.iter().position(|n| n == "task_index").unwrap_or(names.len());
        if task == names.len() {
            names.push("task_index".to_owned());
        }
        Ok(Self { store: ColumnStore::new(set, names), columns, pictures, task })
    }

    /// The dataset.
    #[must_use]
    pub fn dataset(&self) -> &Arc<Dataset> {
        self.store.set()
    }

    /// Rows of the dataset, each of which has a window.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.dataset().info().total_frames
    }

    /// Whether the dataset has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window at a global row.
    ///
    /// # Errors
    /// [`Error::NoSuchRow`], and errors of the data files, which are decoded when they are needed for the first time.
    pub fn get(&self, index: u64) -> Result<Window> {
        let mut window = Window::default();
        self.read(index, &mut window)?;
        Ok(window)
    }

    /// The window at a global row, into the buffers of another one of these windows: only texts and images are
    /// allocated anew.
    ///
    /// # Errors
    /// As [`Self::get`]; `window` is then of no use.
    pub fn read(&self, index: u64, window: &mut Window) -> Result<()> {
        let set = self.dataset();
        let no_row = || Error::NoSuchRow { row: index, rows: self.len(), path: set.root().to_owned() };
        let episode = set.episode_of(index).ok_or_else(no_row)?;
        let (file, row) = self.store.place(index).ok_or_else(no_row)?;
        window.index = index;
        window.episode = episode.episode;
        window.frame = index - episode.from_index;
        let task = self.store.column(file, self.task)?.as_i64().and_then(|v| v.get(row));
        window.task_index = task.and_then(|t| u64::try_from(*t).ok()).unwrap_or(0);
        self.prepare(window);
        for (number, (wanted, out)) in self.columns.iter().zip(&mut window.columns).enumerate() {
            let column = self.store.column(file, number)?;
            let width = wanted.width();
            out.values.clear();
            match (&wanted.steps, &mut out.is_pad) {
                (Some(steps), Some(pad)) => {
                    pad.clear();
                    copy_steps(column.values(), width, (row, index), episode, steps, &mut out.values, pad);
                }
                _ => out.values.extend_from(column.values(), row * width..(row + 1) * width),
            }
        }
        for (wanted, out) in self.pictures.iter().zip(&mut window.pictures) {
            out.frames.clear();
            match (&wanted.steps, &mut out.is_pad) {
                (Some(steps), Some(pad)) => {
                    pad.clear();
                    for step in steps {
                        let (at, is_pad) = clamped(index, *step, episode);
                        out.frames.push(at - episode.from_index);
                        pad.push(is_pad);
                    }
                }
                _ => out.frames.push(window.frame),
            }
        }
        Ok(())
    }

    /// Gives a window the columns of these windows, unless it has them.
    fn prepare(&self, window: &mut Window) {
        let fits = window.columns.len() == self.columns.len()
            && window.pictures.len() == self.pictures.len()
            && window.columns.iter().zip(&self.columns).all(|(a, b)| Arc::ptr_eq(&a.name, &b.name))
            && window.pictures.iter().zip(&self.pictures).all(|(a, b)| Arc::ptr_eq(&a.name, &b.name));
        if fits {
            return;
        }
        let flags = |steps: &Option<Vec<i64>>| steps.as_ref().map(|s| Vec::with_capacity(s.len()));
        let column = |w: &Wanted| WindowColumn {
            name: Arc::clone(&w.name),
            shape: w.shape.clone(),
            values: Values::empty(&w.dtype),
            is_pad: flags(&w.steps),
        };
        let pictures = |w: &WantedPictures| WindowPictures {
            name: Arc::clone(&w.name),
            frames: Vec::new(),
            is_pad: flags(&w.steps),
        };
        window.columns = self.columns.iter().map(column).collect();
        window.pictures = self.pictures.iter().map(pictures).collect();
    }
}

impl Wanted {
    fn width(&self) -> usize {
        match self.dtype {
            DType::String | DType::Image | DType::Video | DType::Other(_) => 1,
            _ => self.shape.iter().product(),
        }
    }
}

/// The row `step` after `index`, kept inside of the episode, and whether it had to be.
fn clamped(index: u64, step: i64, episode: &EpisodeRow) -> (u64, bool) {
    let wanted = i128::from(index) + i128::from(step);
    let (first, last) = (episode.from_index, episode.to_index.saturating_sub(1));
    let inside = wanted.clamp(i128::from(first), i128::from(last));
    (u64::try_from(inside).unwrap_or(first), inside != wanted)
}

/// Copies the values of all steps, neighbours together.
fn copy_steps(
    column: &Values,
    width: usize,
    (row, index): (usize, u64),
    episode: &EpisodeRow,
    steps: &[i64],
    out: &mut Values,
    pad: &mut Vec<bool>,
) {
    let file_first = index - row as u64;
    let mut run: Option<std::ops::Range<usize>> = None;
    for step in steps {
        let (at, is_pad) = clamped(index, *step, episode);
        pad.push(is_pad);
        // An episode lies in one file.
        let at = usize::try_from(at - file_first).unwrap_or(row);
        match &mut run {
            Some(range) if range.end == at => range.end += 1,
            _ => {
                if let Some(range) = run.replace(at..at + 1) {
                    out.extend_from(column, range.start * width..range.end * width);
                }
            }
        }
    }
    if let Some(range) = run {
        out.extend_from(column, range.start * width..range.end * width);
    }
}

#[cfg(test)]
mod tests;
