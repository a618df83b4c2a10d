//! Emulated servos behind two pseudo-terminals, served by one thread.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use so101_hal::emulator::EmulatedPort;
use so101_hal::{EmulatedServos, EmulatorOptions, Port as _, SystemClock, Ticks};

pub(crate) struct Servos {
    servos: EmulatedServos,
    paths: Vec<String>,
    /// Open, or a terminal would be at its end between two clients.
    _ends: Vec<OwnedFd>,
}

impl Servos {
    /// The thread ends with the process.
    pub(crate) fn start() -> Self {
        let mut options = EmulatorOptions::default();
        options.start = [2100, 2200, 2300, 1900, 1800, 1700].map(Ticks);
        let servos = EmulatedServos::new(Arc::new(SystemClock::new()), options);
        let (mut masters, mut paths, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 {
            let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            grantpt(&master).unwrap();
            unlockpt(&master).unwrap();
            let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
            let end = rustix::fs::open(path.as_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
            masters.push((master, servos.port()));
            paths.push(path);
            ends.push(end);
        }
        std::thread::spawn(move || {
            loop {
                serve(&mut masters);
            }
        });
        Self { servos, paths, _ends: ends }
    }

    pub(crate) fn path(&self, client: usize) -> &str {
        &self.paths[client]
    }

    pub(crate) fn positions(&self) -> Vec<i32> {
        self.servos.true_ticks().iter().map(|ticks| ticks.round() as i32).collect()
    }
}

/// Waits for requests and answers them, all replies to one at once.
fn serve(masters: &mut [(OwnedFd, EmulatedPort)]) {
    let ready: Vec<bool> = {
        let mut polled: Vec<PollFd<'_>> =
            masters.iter().map(|(master, _)| PollFd::new(master, PollFlags::IN)).collect();
        poll(&mut polled, None).unwrap();
        polled.iter().map(|p| p.revents().contains(PollFlags::IN)).collect()
    };
    for ((master, port), _) in masters.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
        let mut request = [0; 256];
        let n = rustix::io::read(&*master, &mut request).unwrap();
        port.write_all(&request[..n]).unwrap();
        let mut replies = [0; 512];
        let mut len = 0;
        loop {
            let now = port.now();
            match port.read(&mut replies[len..], now).unwrap() {
                0 => break,
                n => len += n,
            }
        }
        let mut left = &replies[..len];
        while !left.is_empty() {
            let n = rustix::io::write(&*master, left).unwrap();
            left = &left[n..];
        }
    }
}
