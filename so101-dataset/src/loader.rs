//! Batches of windows for training: a seeded, resumable order, read by several threads ahead of time.

mod order;
mod sampler;

pub use sampler::{EpisodeMargins, Sampler, SamplerState};

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::window::{Window, Windows};

/// How a [`Loader`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoaderOptions {
    /// Windows of a batch.
    pub batch: usize,
    /// Threads that read.
    pub workers: usize,
    /// Batches that are ready before they are asked for.
    pub prefetch: usize,
}

impl Default for LoaderOptions {
    /// 8 windows a batch, two threads, four batches ahead.
    fn default() -> Self {
        Self { batch: 8, workers: 2, prefetch: 4 }
    }
}

impl LoaderOptions {
    /// Another number of windows a batch.
    #[must_use]
    pub const fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// Another number of threads.
    #[must_use]
    pub const fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
}

/// What a thread does to each window, such as decoding its pictures; runs in the loader's threads.
pub type Prepare<T> = dyn Fn(Window) -> Result<T> + Send + Sync;

/// Batches of windows, in the order of a [`Sampler`] whatever the number of threads.
///
/// It goes on from epoch to epoch for ever; [`Loader::state`] tells where to resume after the batches that were taken.
///
/// ```no_run
/// use std::sync::Arc;
/// use so101_dataset::Dataset;
/// use so101_dataset::loader::{Loader, LoaderOptions, Sampler};
/// use so101_dataset::window::{WindowSpec, Windows};
/// let set = Arc::new(Dataset::open("outputs/push_left")?);
/// let sampler = Sampler::new(&set, 42);
/// let windows = Windows::new(set, &WindowSpec::new().with_steps("action", 0..50))?;
/// let mut loader = Loader::new(Arc::new(windows), sampler, LoaderOptions::default())?;
/// for _ in 0..1000 {
///     let batch = loader.next_batch()?; // eight windows
///     assert_eq!(batch.len(), 8);
/// }
/// let resume_here = loader.state(); // serialisable
/// # let _ = resume_here;
/// # Ok::<(), so101_dataset::Error>(())
/// ```
pub struct Loader<T = Window> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
    /// Number of the batch that is handed out next.
    next: u64,
    /// Where the sampler stands after the batches that were handed out.
    sampler: Sampler,
    batch: usize,
}

impl<T> core::fmt::Debug for Loader<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Loader")
            .field("next", &self.next)
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

struct Shared<T> {
    windows: Arc<Windows>,
    prepare: Box<Prepare<T>>,
    prefetch: u64,
    batch: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Draws the rows of the next batch that a thread takes on.
    sampler: Sampler,
    /// Number of that batch.
    taken: u64,
    /// Number of the batch that is handed out next.
    wanted: u64,
    ready: BTreeMap<u64, Result<Vec<T>>>,
    stopped: bool,
}

impl Loader<Window> {
    /// Batches of windows as they are.
    ///
    /// # Errors
    /// [`Error::EmptySampler`] when there is no row to draw, [`Error::Io`] when no thread can be started.
    pub fn new(windows: Arc<Windows>, sampler: Sampler, options: LoaderOptions) -> Result<Self> {
        Self::with_prepare(windows, sampler, options, Ok)
    }
}

impl<T: Send + 'static> Loader<T> {
    /// Batches of what `prepare` makes of each window.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn with_prepare(
        windows: Arc<Windows>,
        sampler: Sampler,
        options: LoaderOptions,
        prepare: impl Fn(Window) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Self> {
        if sampler.is_empty() {
            return Err(Error::EmptySampler { path: windows.dataset().root().to_owned() });
        }
        let batch = options.batch.max(1);
        let shared = Arc::new(Shared {
            windows,
            prepare: Box::new(prepare),
            prefetch: options.prefetch.max(1) as u64,
            batch,
            state: Mutex::new(State {
                sampler: sampler.clone(),
                taken: 0,
                wanted: 0,
                ready: BTreeMap::new(),
                stopped: false,
            }),
            changed: Condvar::new(),
        });
        let mut loader = Self { shared, threads: Vec::new(), next: 0, sampler, batch };
        for number in 0..options.workers.max(1) {
            let shared = Arc::clone(&loader.shared);
            let thread = std::thread::Builder::new()
                .name(format!("dataset-load-{number}"))
                .spawn(move || shared.work())
                .map_err(|e| Error::io("start a thread to read", loader.root(), e))?;
            loader.threads.push(thread);
        }
        Ok(loader)
    }

    fn root(&self) -> std::path::PathBuf {
        self.shared.windows.dataset().root().to_owned()
    }

    /// The next batch. Waits until it is there.
    ///
    /// # Errors
    /// What reading one of its windows returned; [`Error::Io`] after a panic in what prepares windows. The loader goes on
    /// with the batch behind it, as long as it has threads.
    pub fn next_batch(&mut self) -> Result<Vec<T>> {
        let mut state = self.shared.lock();
        let batch = loop {
            if let Some(batch) = state.ready.remove(&self.next) {
                break batch;
            }
            if self.threads.iter().all(JoinHandle::is_finished) {
                return Err(self.shared.ended());
            }
            let waited = self.shared.changed.wait_timeout(state, std::time::Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        self.next += 1;
        state.wanted = self.next;
        drop(state);
        self.shared.changed.notify_all();
        for _ in 0..self.batch {
            self.sampler.next_row();
        }
        batch
    }

    /// Where a sampler has to be resumed to go on after the batches that were taken, whatever was read ahead.
    #[must_use]
    pub fn state(&self) -> SamplerState {
        self.sampler.state()
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut rows = Vec::with_capacity(self.batch);
        loop {
            let mut state = self.lock();
            while !state.stopped && state.taken >= state.wanted.saturating_add(self.prefetch) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.stopped {
                return;
            }
            let number = state.taken;
            state.taken += 1;
            rows.clear();
            rows.extend((0..self.batch).filter_map(|_| state.sampler.next_row()));
            drop(state);
            let unless_it_panics = Lost { shared: self, number };
            let batch = rows.iter().map(|row| (self.prepare)(self.windows.get(*row)?)).collect();
            drop(unless_it_panics);
            self.lock().ready.insert(number, batch);
            self.changed.notify_all();
        }
    }

    fn ended(&self) -> Error {
        let why = "some or all of its threads have ended, after a panic in what prepares windows";
        Error::io("load", self.windows.dataset().root(), std::io::Error::other(why))
    }
}

/// The batch that a thread works on: when it panics, the batch is an error, or it would be waited for for ever.
struct Lost<'a, T> {
    shared: &'a Shared<T>,
    number: u64,
}

impl<T> Drop for Lost<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = self.shared.ended();
            self.shared.lock().ready.insert(self.number, Err(error));
            self.shared.changed.notify_all();
        }
    }
}

impl<T> Drop for Loader<T> {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
