//! All servos on the line, and what they do with a request.

use alloc::vec::Vec;
use core::time::Duration;

use super::fault::{Dice, FaultRule, spoil};
use super::motion::STEP_S;
use super::servo::{MEMORY, Servo};
use crate::clock::Timestamp;
use crate::protocol::{BROADCAST_ID, Instruction, MAX_PACKET, Packet, encode_status};

const STEP: Duration = Duration::from_millis(1);
const _: () = assert!(STEP_S == 0.001);

pub(super) struct World {
    pub(super) servos: [Servo; 6],
    pub(super) faults: Vec<FaultRule>,
    pub(super) transactions: u64,
    dice: Dice,
    start: Timestamp,
    /// Steps of motion since `start`.
    steps: u64,
    /// The reply being made, kept for its capacity.
    reply: Vec<u8>,
}

/// Takes replies with the delay that comes before them.
pub(super) trait Wire {
    fn put(&mut self, delay: Duration, bytes: &[u8]);
}

impl World {
    pub(super) fn new(servos: [Servo; 6], start: Timestamp, seed: u64) -> Self {
        Self {
            servos,
            faults: Vec::new(),
            transactions: 0,
            dice: Dice::new(seed),
            start,
            steps: 0,
            reply: Vec::with_capacity(2 * MAX_PACKET),
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

    /// Carries out a request; the replies go to `wire` in the order of the bus.
    pub(super) fn handle(&mut self, request: &Packet<'_>, wire: &mut dyn Wire) {
        self.transactions += 1;
        match (request.instruction(), request.params) {
            (Some(Instruction::SyncRead), [address, len, ids @ ..]) => {
                for id in ids {
                    if let Some(i) = self.servos.iter().position(|servo| servo.id() == *id) {
                        self.answer(i, *address, *len, wire);
                    }
                }
            }
            (Some(Instruction::SyncWrite), [address, len, rows @ ..]) => {
                for row in rows.chunks_exact(usize::from(*len) + 1) {
                    let [id, data @ ..] = row else { continue };
                    if let Some(servo) = self.servos.iter_mut().find(|servo| servo.id() == *id) {
                        servo.write(*address, data);
                    }
                }
            }
            (Some(instruction), params) => {
                for i in 0..self.servos.len() {
                    if request.id == BROADCAST_ID || self.servos[i].id() == request.id {
                        self.one(i, instruction, params, request.id == BROADCAST_ID, wire);
                    }
                }
            }
            (None, _) => {}
        }
    }

    /// A request that servo `i` is addressed by, alone or with all others.
    fn one(
        &mut self,
        i: usize,
        instruction: Instruction,
        params: &[u8],
        is_broadcast: bool,
        wire: &mut dyn Wire,
    ) {
        let servo = &mut self.servos[i];
        match (instruction, params) {
            (Instruction::Ping, _) => return self.answer(i, 0, 0, wire),
            (Instruction::Read, [address, len]) if !is_broadcast => {
                return self.answer(i, *address, *len, wire);
            }
            (Instruction::Write, [address, data @ ..]) if !data.is_empty() => servo.write(*address, data),
            (Instruction::RegWrite, [address, data @ ..]) if !data.is_empty() => servo.keep(*address, data),
            (Instruction::Action, _) => servo.act(),
            (Instruction::Reset, _) => servo.reset(),
            (Instruction::Reboot, _) => servo.power_on(),
            _ => return,
        }
        if !is_broadcast && self.servos[i].answers_writes() {
            self.answer(i, 0, 0, wire);
        }
    }

    /// A reply of servo `i` with `len` bytes of its memory, fewer at the end of the memory.
    fn answer(&mut self, i: usize, address: u8, len: u8, wire: &mut dyn Wire) {
        let servo = &self.servos[i];
        let Some(id) = servo.servo_id() else { return };
        let first = usize::from(address).min(MEMORY);
        let data = &servo.memory()[first..(first + usize::from(len)).min(MEMORY)];
        let mut packet = [0; MAX_PACKET];
        let Ok(n) = encode_status(id, servo.alarms(), data, &mut packet) else { return };
        self.reply.clear();
        self.reply.extend_from_slice(&packet[..n]);
        let delay = spoil(&self.faults, &mut self.dice, id.get(), &mut self.reply);
        wire.put(delay, &self.reply);
    }
}
