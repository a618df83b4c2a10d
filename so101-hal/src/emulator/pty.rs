//! Emulated servos behind a pseudo-terminal: for other programs, such as LeRobot, a serial port like any other.
//!
//! A pseudo-terminal takes any baud rate and forgets none: servos whose register 6 says another rate than the client
//! has set do not hear it. Exclusive use (`TIOCEXCL`) would outlive a client here, since the terminal never closes, so
//! it is lifted; the lock (`flock`) that clients take beside it works as on a real port.

mod place;

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::port::BAUD;
use super::{EmulatedPort, EmulatedServos};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::port::Port as _;

use place::Place;

/// How long a look at the line lasts when nothing happens: the time within which it ends and notices a plug.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// The kernel wakes a sleeper this much late; the rest of a short wait is spent awake.
const AWAKE: core::time::Duration = core::time::Duration::from_micros(120);

/// A running front end; dropping it closes the port and removes the link.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::emulator::pty::PtyFrontEnd;
/// use so101_hal::{EmulatedServos, EmulatorOptions, SystemClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(SystemClock::new()), EmulatorOptions::default());
/// let front_end = PtyFrontEnd::serve(servos, None)?;
/// println!("connect to {}", front_end.path());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct PtyFrontEnd {
    path: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PtyFrontEnd {
    /// Serves the servos, which should live on a [`SystemClock`](crate::SystemClock). With a `link`, a symbolic link of
    /// this name leads to the port, also to the new one after [`EmulatedServos::unplug`] and `replug`. A link that a
    /// killed process has left behind is taken over.
    ///
    /// # Errors
    /// [`Error::Pty`] when there is no pseudo-terminal, when somebody else serves at `link`, or when something is there
    /// that is no link to a terminal.
    pub fn serve(servos: EmulatedServos, link: Option<&Path>) -> Result<Self> {
        let shown = |link: &Path| link.display().to_string();
        let place =
            link.map(|link| Place::take(link).map_err(|e| pty_error("take the place of", &shown(link), e)));
        let place = place.transpose()?;
        let terminal = Terminal::open()?;
        let path = link.map_or_else(|| terminal.path.clone(), shown);
        if let Some(place) = &place {
            place.point_to(&terminal.path).map_err(|e| pty_error("link", &path, e))?;
        }
        let over = Arc::new(AtomicBool::new(false));
        let port = servos.port();
        let line = Line { servos, place, over: Arc::clone(&over) };
        let thread = std::thread::Builder::new()
            .name("emulated-bus".to_owned())
            .spawn(move || line.run(terminal, port))
            .map_err(|e| pty_error("start", &path, e))?;
        Ok(Self { path, over, thread: Some(thread) })
    }

    /// The path to connect to: the link, or the terminal itself as it was at first.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for PtyFrontEnd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Both ends of a pseudo-terminal.
struct Terminal {
    master: OwnedFd,
    /// Kept open: without anybody at this end, reading from the other one is an error.
    slave: OwnedFd,
    path: String,
    /// The rate that it was left at; a client that has not changed it takes it for the servos' usual one.
    untouched: u32,
}

impl Terminal {
    fn open() -> Result<Self> {
        let fail = |doing, e: Errno| pty_error(doing, "/dev/ptmx", e.into());
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).map_err(|e| fail("open", e))?;
        // A client that reads nothing must not stop the line.
        rustix::fs::fcntl_setfl(&master, OFlags::NONBLOCK).map_err(|e| fail("set up", e))?;
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).map_err(|e| fail("set up", e))?;
        grantpt(&master).map_err(|e| fail("open", e))?;
        unlockpt(&master).map_err(|e| fail("open", e))?;
        let name = ptsname(&master, alloc::vec::Vec::new()).map_err(|e| fail("name", e))?;
        let path = name.to_string_lossy().into_owned();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(path.as_str(), flags, Mode::empty()).map_err(|e| fail("open", e))?;
        let mut raw = tcgetattr(&slave).map_err(|e| fail("set up", e))?;
        raw.make_raw();
        tcsetattr(&slave, OptionalActions::Now, &raw).map_err(|e| fail("set up", e))?;
        // Some kernels refuse this rate on a pseudo-terminal, where it has no effect anyway.
        if raw.set_speed(BAUD).is_ok() {
            let _ = tcsetattr(&slave, OptionalActions::Now, &raw);
        }
        let untouched = tcgetattr(&slave).map_or(BAUD, |t| t.output_speed());
        Ok(Self { master, slave, path, untouched })
    }

    /// The rate that a client talks at.
    fn baud(&self) -> u32 {
        let set = tcgetattr(&self.slave).map_or(self.untouched, |t| t.output_speed());
        if set == self.untouched { BAUD } else { set }
    }
}

/// What the thread works on.
struct Line {
    servos: EmulatedServos,
    place: Option<Place>,
    over: Arc<AtomicBool>,
}

impl Line {
    fn run(self, terminal: Terminal, mut port: EmulatedPort) {
        let mut terminal = Some(terminal);
        let mut buffer = [0; 1024];
        while !self.over.load(Ordering::Acquire) {
            match &terminal {
                // Whatever goes wrong is the client's business; the line goes on, unless it was unplugged.
                Some(open) => {
                    if serve_once(open, &mut port, &mut buffer).is_err() || !self.servos.is_plugged_in() {
                        // Both ends close, so that clients get errors.
                        terminal = None;
                        self.place.iter().for_each(Place::clear);
                    }
                }
                None => {
                    terminal = self.open_again(&mut port);
                    if terminal.is_none() {
                        let _ = poll(&mut [], Some(&LOOK));
                    }
                }
            }
        }
    }

    fn open_again(&self, port: &mut EmulatedPort) -> Option<Terminal> {
        port.reopen().ok()?;
        let terminal = Terminal::open().ok()?;
        if let Some(place) = &self.place {
            place.point_to(&terminal.path).ok()?;
        }
        Some(terminal)
    }
}

/// Waits for a request or for the next reply's time, and carries bytes from one side to the other.
fn serve_once(terminal: &Terminal, port: &mut EmulatedPort, buffer: &mut [u8]) -> Result<()> {
    let wait = port.next_arrival().map_or(LOOK, |at| until(at, port.now()));
    let master = terminal.master.as_fd();
    let ready = poll(&mut [PollFd::new(&master, PollFlags::IN)], Some(&wait)).unwrap_or(0);
    let _ = rustix::termios::ioctl_tiocnxcl(&terminal.slave);
    if ready > 0
        && let Ok(n) = rustix::io::read(&terminal.master, &mut *buffer)
        && let Some(bytes) = buffer.get(..n)
    {
        let baud = terminal.baud();
        if baud != port.baud() {
            port.set_baud(baud);
        }
        port.write_all(bytes)?;
    }
    loop {
        let now = port.now();
        let n = port.read(buffer, now)?;
        let mut rest = buffer.get(..n).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        while let Ok(sent @ 1..) = rustix::io::write(&terminal.master, rest) {
            rest = rest.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
        }
    }
}

/// How long to sleep until `at`, without coming late.
fn until(at: Timestamp, now: Timestamp) -> Timespec {
    let left = at.since(now).saturating_sub(AWAKE);
    let nanos = i64::try_from(left.as_nanos()).unwrap_or(LOOK.tv_nsec).min(LOOK.tv_nsec);
    Timespec { tv_sec: 0, tv_nsec: nanos }
}

fn pty_error(doing: &'static str, path: &str, source: std::io::Error) -> Error {
    Error::Pty { doing, path: path.to_string(), source: Box::new(source) }
}

#[cfg(test)]
mod tests;
