//! One transaction at a time on a port.

use core::time::Duration;

use super::{BusOptions, BusStats, MAX_SYNC_IDS, SyncReplies};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::port::Port;
use crate::protocol::{Block, FrameFault, FrameParser, MAX_PACKET, OVERHEAD, Request, ServoId};

/// A byte at 1 Mbaud, start and stop bit included.
const BYTE_TIME: Duration = Duration::from_micros(10);

#[derive(Debug)]
pub(super) struct Line<P> {
    pub(super) port: P,
    pub(super) options: BusOptions,
    pub(super) stats: BusStats,
    parser: FrameParser,
    quarantine: Quarantine,
}

/// What to ask, first and again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask<'r> {
    /// One servo, the same request each time.
    One(&'r Request<'r>),
    /// A block of all servos that have not answered yet.
    Several(Block),
}

/// Whether a reply may still come for a request that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quarantine {
    Clear,
    LateRepliesPossible,
}

impl<P: Port> Line<P> {
    pub(super) fn new(port: P, options: BusOptions) -> Self {
        Self {
            port,
            options,
            stats: BusStats::default(),
            parser: FrameParser::new(),
            quarantine: Quarantine::Clear,
        }
    }

    /// Sends a request, once the input is clear of anything that an earlier one may have left; the packet's length.
    pub(super) fn send(&mut self, request: &Request<'_>) -> Result<usize> {
        let mut packet = [0; MAX_PACKET];
        let len = request.encode(&mut packet)?;
        if self.quarantine == Quarantine::LateRepliesPossible {
            self.drain()?;
        }
        self.port.discard_input()?;
        self.parser.clear();
        self.stats.requests += 1;
        self.port.write_all(&packet[..len])?;
        Ok(len)
    }

    /// Asks, and asks those again that gave no usable reply.
    pub(super) fn exchange_with_retries(
        &mut self,
        replies: &mut SyncReplies,
        retries: u8,
        ask: Ask<'_>,
    ) -> Result<()> {
        for attempt in 0..=retries {
            if attempt > 0 {
                self.stats.retries += 1;
                replies.retry();
            }
            match ask {
                Ask::One(request) => self.exchange(request, replies)?,
                Ask::Several(block) => {
                    let mut asked = [ServoId::ARM[0]; MAX_SYNC_IDS];
                    let mut n = 0;
                    for (place, id) in asked.iter_mut().zip(replies.unanswered()) {
                        *place = id;
                        n += 1;
                    }
                    self.exchange(&Request::SyncRead(block, &asked[..n]), replies)?;
                }
            }
            if replies.is_complete() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One transaction with one deadline.
    fn exchange(&mut self, request: &Request<'_>, replies: &mut SyncReplies) -> Result<()> {
        let sent = self.send(request)?;
        // Until every reply is in, and also when the port fails half way, one may still come.
        self.quarantine = Quarantine::LateRepliesPossible;
        let expected = replies.waiting() * (OVERHEAD + replies.block_len());
        let wire = BYTE_TIME * u32::try_from(sent + expected).unwrap_or(u32::MAX);
        let deadline = self.port.now() + wire + self.options.reply_timeout;
        // No longer than a reply: a false header can then never hold back a whole reply behind it.
        self.parser.set_max_params(replies.block_len());
        self.receive(deadline, replies)?;
        if replies.is_complete() {
            self.quarantine = Quarantine::Clear;
        }
        Ok(())
    }

    fn receive(&mut self, deadline: Timestamp, replies: &mut SyncReplies) -> Result<()> {
        let mut chunk = [0; MAX_PACKET];
        loop {
            self.sort(replies);
            if replies.waiting() == 0 {
                return Ok(());
            }
            let n = self.port.read(&mut chunk, deadline)?.min(MAX_PACKET);
            if n == 0 {
                self.stats.timeouts += 1;
                return Ok(());
            }
            self.parser.push(&chunk[..n]);
        }
    }

    /// Puts the packets that have come into their places.
    fn sort(&mut self, replies: &mut SyncReplies) {
        while let Some(item) = self.parser.next_packet() {
            match item {
                Ok(packet) => {
                    if !replies.accept(&packet) {
                        self.stats.unexpected += 1;
                    }
                }
                Err(fault) => {
                    self.stats.damaged += 1;
                    if let FrameFault::Checksum { id, .. } = fault {
                        replies.damaged(id);
                    }
                }
            }
        }
    }

    /// Reads until the wire was silent for a while, but not for ever.
    fn drain(&mut self) -> Result<()> {
        self.stats.quarantines += 1;
        let end = self.port.now() + self.options.reply_timeout + self.options.quarantine_silence;
        let mut chunk = [0; MAX_PACKET];
        loop {
            let silence = self.port.now() + self.options.quarantine_silence;
            if self.port.read(&mut chunk, silence)? == 0 {
                self.quarantine = Quarantine::Clear;
                return Ok(());
            }
            if self.port.now() >= end {
                return Ok(());
            }
        }
    }
}
