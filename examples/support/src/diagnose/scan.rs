//! Every baud rate, every id.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use so101_hal::bus::{Bus, BusOptions, ServoBus};
use so101_hal::registers::BaudRate;
use so101_hal::serial::SerialPort;
use so101_hal::{Clock, EmulatedServos, ServoId};

use crate::error::{Error, Result};
use crate::hardware::{ArmArgs, Where};

/// Who answered at a baud rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heard {
    /// The rate.
    pub baud: u32,
    /// The ids that answered, damaged replies included.
    pub ids: Vec<u8>,
}

/// Which ids are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    /// 0 to 20.
    Near,
    /// 0 to 253.
    All,
}

impl Ids {
    const fn last(self) -> u8 {
        match self {
            Self::Near => 20,
            Self::All => 253,
        }
    }
}

/// How long a reply is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// As in operation.
    Whole,
    /// A ping is answered within 2 ms, or not at all.
    Short,
}

impl Patience {
    fn options(self) -> BusOptions {
        let mut options = BusOptions::default();
        if self == Self::Short {
            options.reply_timeout = Duration::from_millis(8);
            options.read_retries = 0;
        }
        options
    }
}

/// What buses are opened on.
pub(super) enum Source {
    Emulated(EmulatedServos, Arc<dyn Clock>),
    Port(String),
}

impl Source {
    pub(super) fn open(arm: &ArmArgs, faults: &[String]) -> Result<Self> {
        match arm.place()? {
            Where::Port(path) => Ok(Self::Port(path)),
            Where::Emulated => {
                let open = super::open_arm(arm)?;
                let servos = open.servos.ok_or_else(|| Error::Usage("no emulated servos".to_owned()))?;
                crate::preflight::program::follower_registers(&servos)?;
                crate::preflight::program::spoil(&servos, faults)?;
                Ok(Self::Emulated(servos, open.clock))
            }
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Emulated(..) => "emulated".to_owned(),
            Self::Port(path) => path.clone(),
        }
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Emulated(_, clock) => Arc::clone(clock),
            Self::Port(_) => Arc::new(so101_hal::SystemClock::new()),
        }
    }

    pub(super) fn bus(&mut self, baud: BaudRate, patience: Patience) -> Result<Box<dyn ServoBus>> {
        let options = patience.options();
        Ok(match self {
            Self::Emulated(servos, _) => Box::new(Bus::with_options(servos.port(), options)),
            Self::Port(path) => Box::new(Bus::with_options(SerialPort::open_at(path, baud)?, options)),
        })
    }
}

/// Pings all ids at all rates. The emulated line has one rate.
pub(super) fn every_rate(source: &mut Source, ids: Ids) -> Result<Vec<Heard>> {
    let rates: &[BaudRate] = match source {
        Source::Emulated(..) => &[BaudRate::M1],
        Source::Port(_) => BaudRate::ALL,
    };
    let mut all = Vec::new();
    for baud in rates {
        let mut bus = source.bus(*baud, Patience::Short)?;
        all.push(Heard { baud: baud.bits_per_second(), ids: at_rate(bus.as_mut(), ids)? });
    }
    Ok(all)
}

fn at_rate(bus: &mut dyn ServoBus, ids: Ids) -> Result<Vec<u8>> {
    let mut heard = Vec::new();
    for id in 0..=ids.last() {
        let servo = ServoId::new(id)?;
        let mut answered = false;
        // A reply that gets lost once is no missing servo; most ids have none, and are asked once.
        for _ in 0..if ServoId::ARM.contains(&servo) { 3 } else { 1 } {
            // Damaged answers count: something is there.
            answered = !so101_hal::bus::scan(bus, [servo])?.is_empty();
            if answered {
                break;
            }
        }
        if answered {
            heard.push(id);
        }
    }
    Ok(heard)
}
