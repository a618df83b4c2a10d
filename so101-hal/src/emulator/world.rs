//! All servos on the line, and what they do with a request.

use alloc::vec::Vec;
use core::time::Duration;

use super::EmulatorOptions;
use super::fault::{Dice, Fault, FaultRule, happens, spoil};
use super::motion::STEP_S;
use super::servo::{MEMORY, Servo};
use crate::clock::Timestamp;
use crate::protocol::{BROADCAST_ID, Instruction, MAX_PACKET, Packet, encode_status};

const STEP: Duration = Duration::from_millis(1);
const _: () = assert!(STEP_S == 0.001);

/// How long bytes take on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireTiming {
    /// No time at all: only faults delay.
    #[default]
    Instant,
    /// Ten bits a byte at the line's baud rate, and each servo's return delay (register 7) before its reply.
    AtBaud,
}

pub(super) struct World {
    pub(super) servos: [Servo; 6],
    pub(super) faults: Vec<FaultRule>,
    pub(super) transactions: u64,
    /// The servos have no supply.
    pub(super) dark: bool,
    /// The adapter's plug: `None` while it is out.
    pub(super) plug: Option<u64>,
    /// Times that the adapter was plugged in.
    plugged: u64,
    wire: WireTiming,
    /// In a sync read nobody answers behind a servo that does not.
    waits_for_missing: bool,
    dice: Dice,
    start: Timestamp,
    /// Steps of motion since `start`.
    steps: u64,
    /// The reply being made, kept for its capacity.
    reply: Vec<u8>,
}

/// Takes replies with the time that comes before them.
pub(super) trait Wire {
    /// `gap` is the pause on the wire before the reply, `delay` how late it comes at least.
    fn put(&mut self, gap: Duration, delay: Duration, bytes: &[u8]);
}

impl World {
    pub(super) fn new(servos: [Servo; 6], start: Timestamp, options: &EmulatorOptions) -> Self {
        Self {
            servos,
            faults: Vec::new(),
            transactions: 0,
            dark: false,
            plug: Some(0),
            plugged: 0,
            wire: options.wire,
            waits_for_missing: !options.habits.answers_behind_a_missing_servo,
            dice: Dice::new(options.seed),
            start,
            steps: 0,
            reply: Vec::with_capacity(2 * MAX_PACKET),
        }
    }

    /// How bytes travel.
    pub(super) const fn wire_timing(&self) -> WireTiming {
        self.wire
    }

    pub(super) fn unplug(&mut self) {
        self.plug = None;
    }

    pub(super) fn replug(&mut self) {
        if self.plug.is_none() {
            self.plugged += 1;
            self.plug = Some(self.plugged);
        }
    }

    /// The adapter sends back what it was given, if a fault says so.
    pub(super) fn echo(&mut self, request: &[u8], wire: &mut dyn Wire) {
        if happens(&self.faults, &mut self.dice, Fault::Echo, None) {
            wire.put(Duration::ZERO, Duration::ZERO, request);
        }
    }

    /// Moves all servos to `now`. Steps lie on a grid that does not depend on when somebody looks.
    pub(super) fn advance_to(&mut self, now: Timestamp) {
        let due = u64::try_from(now.since(self.start).as_nanos() / STEP.as_nanos()).unwrap_or(u64::MAX);
        if due > self.steps {
            let steps = due - self.steps;
            self.steps = due;
            self.servos.iter_mut().for_each(|servo| servo.advance(steps));
        }
    }

    /// Carries out a request sent at this baud rate; the replies go to `wire` in the order of the bus.
    pub(super) fn handle(&mut self, request: &Packet<'_>, baud: u32, wire: &mut dyn Wire) {
        self.transactions += 1;
        if self.dark {
            return;
        }
        match (request.instruction(), request.params) {
            (Some(Instruction::SyncRead), [address, len, ids @ ..]) => {
                self.sync_read((*address, *len), ids, baud, wire);
            }
            (Some(Instruction::SyncWrite), [address, len, rows @ ..]) => {
                for row in rows.chunks_exact(usize::from(*len) + 1) {
                    let [id, data @ ..] = row else { continue };
                    self.servos
                        .iter_mut()
                        .filter(|servo| servo.id() == *id && servo.hears(baud))
                        .for_each(|servo| servo.write(*address, data));
                }
            }
            (Some(instruction), params) => {
                let is_broadcast = request.id == BROADCAST_ID;
                let hears = |servo: &Servo| servo.hears(baud) && (is_broadcast || servo.id() == request.id);
                let collides = !is_broadcast && self.servos.iter().filter(|servo| hears(servo)).count() > 1;
                let mut has_answered = false;
                for i in 0..self.servos.len() {
                    if !hears(&self.servos[i]) {
                        continue;
                    }
                    // Of those that talk at once one stands for all.
                    if let Some((address, len)) = self.one(i, instruction, params, is_broadcast)
                        && !(collides && has_answered)
                    {
                        has_answered = true;
                        self.answer(i, address, len, collides, wire);
                    }
                }
            }
            (None, _) => {}
        }
    }

    /// The replies of the listed servos, one after another; two that share an id talk at once.
    fn sync_read(&mut self, (address, len): (u8, u8), ids: &[u8], baud: u32, wire: &mut dyn Wire) {
        let mut order = [0; MAX_PACKET];
        let order = &mut order[..ids.len().min(MAX_PACKET)];
        order.copy_from_slice(&ids[..order.len()]);
        for i in 1..order.len() {
            if happens(&self.faults, &mut self.dice, Fault::Swap, Some(order[i - 1])) {
                order.swap(i - 1, i);
            }
        }
        for id in order {
            let hears = |servo: &Servo| servo.hears(baud) && servo.id() == *id;
            let Some(i) = self.servos.iter().position(hears) else {
                if self.waits_for_missing {
                    return;
                }
                continue;
            };
            let collides = self.servos.iter().filter(|servo| hears(servo)).count() > 1;
            self.answer(i, address, len, collides, wire);
        }
    }

    /// What a request makes servo `i` do; the block that it answers with, if it answers.
    fn one(
        &mut self,
        i: usize,
        instruction: Instruction,
        params: &[u8],
        is_broadcast: bool,
    ) -> Option<(u8, u8)> {
        let servo = &mut self.servos[i];
        match (instruction, params) {
            (Instruction::Ping, _) => return Some((0, 0)),
            (Instruction::Read, [address, len]) if !is_broadcast => return Some((*address, *len)),
            (Instruction::Write, [address, data @ ..]) if !data.is_empty() => servo.write(*address, data),
            (Instruction::RegWrite, [address, data @ ..]) if !data.is_empty() => servo.keep(*address, data),
            (Instruction::Action, _) => servo.act(),
            (Instruction::Reset, _) => servo.reset(),
            (Instruction::Reboot, _) => servo.power_on(),
            _ => return None,
        }
        (!is_broadcast && servo.answers_writes()).then_some((0, 0))
    }

    /// A reply of servo `i` with `len` bytes of its memory, fewer at the end of the memory.
    fn answer(&mut self, i: usize, address: u8, len: u8, collides: bool, wire: &mut dyn Wire) {
        let servo = &self.servos[i];
        let Some(id) = servo.servo_id() else { return };
        let first = usize::from(address).min(MEMORY);
        let data = &servo.memory()[first..(first + usize::from(len)).min(MEMORY)];
        let mut packet = [0; MAX_PACKET];
        let Ok(n) = encode_status(id, servo.alarms(), data, &mut packet) else { return };
        self.reply.clear();
        self.reply.extend_from_slice(&packet[..n]);
        if collides {
            // Two drivers on one wire, a bit apart: a low level wins.
            self.reply.iter_mut().for_each(|byte| *byte &= (*byte >> 1) | 0x80);
        }
        let mischief = spoil(&self.faults, &mut self.dice, id.get(), &mut self.reply);
        let gap = match self.wire {
            WireTiming::Instant => Duration::ZERO,
            WireTiming::AtBaud => Duration::from_micros(servo.return_delay_us()),
        };
        wire.put(gap, mischief.delay, &self.reply);
        if mischief.browns_out {
            self.servos[i].brown_out();
        }
    }
}
