//! One transaction at a time on a port.

use core::time::Duration;

use super::incoming::Incoming;
use super::servos::{Doubt, Servos, probe_block, undoubted};
use super::{BusOptions, BusStats, MAX_SYNC_IDS, ReplyFault, SyncReplies};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::port::Port;
use crate::protocol::{Block, MAX_PACKET, OVERHEAD, Request, ServoId};
use crate::registers::PRESENT_POSITION;

/// A byte at 1 Mbaud, start and stop bit included.
const BYTE_TIME: Duration = Duration::from_micros(10);

#[derive(Debug)]
pub(super) struct Line<P> {
    pub(super) port: P,
    pub(super) options: BusOptions,
    pub(super) stats: BusStats,
    servos: Servos,
    incoming: Incoming,
    wire: Wire,
    input: Input,
    echo: Echo,
    /// Who sent the last reply that was taken, of how many bytes, and when it came.
    last_reply: Option<(ServoId, usize, Timestamp)>,
}

/// What to ask, first and again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask<'r> {
    /// One servo, the same request each time.
    One(&'r Request<'r>),
    /// A block of all servos that have not answered yet.
    Several(Block),
}

impl Ask<'_> {
    /// The block that is read, if one is.
    const fn block(&self) -> Option<Block> {
        match self {
            Self::One(Request::Read(_, block)) | Self::Several(block) => Some(*block),
            Self::One(_) => None,
        }
    }
}

/// Whether somebody may still be sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Silent,
    MayBeBusy,
}

/// What may lie in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Anything.
    Unknown,
    /// Nothing, or a copy of the last reply, from this servo: the last transaction brought all it should and no more.
    AtMostACopyOf(ServoId),
}

/// Whether the adapter sends back what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Unknown,
    Absent,
    Present,
}

impl<P: Port> Line<P> {
    pub(super) fn new(port: P, options: BusOptions) -> Self {
        Self {
            port,
            options,
            stats: BusStats::default(),
            servos: Servos::new(),
            incoming: Incoming::new(),
            wire: Wire::Silent,
            input: Input::Unknown,
            echo: Echo::Unknown,
            last_reply: None,
        }
    }

    /// Sends a request that nobody answers.
    pub(super) fn tell(&mut self, request: &Request<'_>) -> Result<()> {
        let mut packet = [0; MAX_PACKET];
        let len = request.encode(&mut packet)?;
        self.forget_positions_that_change(request);
        self.drain_if_busy()?;
        if self.echo != Echo::Absent {
            self.input = Input::Unknown;
            // Its echo may be as long as a reply of the servo.
            if let Request::Write(target, ..) | Request::RegWrite(target, ..) | Request::Action(target) =
                request
                && let Ok(id) = ServoId::new(target.id())
            {
                self.servos.expect(id, len - OVERHEAD, self.port.now());
            }
        }
        self.stats.requests += 1;
        self.port.write_all(&packet[..len])
    }

    /// Sends a write whose reply nobody waits for: it comes all the same, and must not be taken for a later one's.
    pub(super) fn tell_unheard(&mut self, request: &Request<'_>, id: ServoId) -> Result<()> {
        self.tell(request)?;
        self.servos.expect(id, 0, self.port.now());
        self.wire = Wire::MayBeBusy;
        self.input = Input::Unknown;
        Ok(())
    }

    /// Asks, and asks those again that gave no usable reply.
    pub(super) fn ask(&mut self, replies: &mut SyncReplies, retries: u8, ask: Ask<'_>) -> Result<()> {
        for attempt in 0..=retries {
            replies.wait_again();
            let block = self.settle_doubts(replies, ask.block())?;
            if replies.waiting() == 0 {
                break;
            }
            self.stats.retries += u64::from(attempt > 0);
            match (ask, block) {
                (Ask::One(Request::Read(id, _)), Some(block)) => {
                    self.exchange(&Request::Read(*id, block), replies)?;
                }
                (Ask::One(request), _) => self.exchange(request, replies)?,
                (Ask::Several(whole), block) => {
                    let mut asked = [ServoId::ARM[0]; MAX_SYNC_IDS];
                    let mut n = 0;
                    for (place, id) in asked.iter_mut().zip(replies.waiting_ids()) {
                        *place = id;
                        n += 1;
                    }
                    self.exchange(&Request::SyncRead(block.unwrap_or(whole), &asked[..n]), replies)?;
                }
            }
            self.judge(replies, ask.block());
            if replies.is_complete() || self.is_undecided() {
                break;
            }
        }
        replies.set_received_at(self.port.now());
        Ok(())
    }

    /// The last request has brought nothing but a packet equal to it: its echo, or its reply.
    pub(super) const fn is_undecided(&self) -> bool {
        self.incoming.seen.lookalike
    }

    /// Asks a servo for something that only the newest request can be answered by, when a reply of `len` bytes could
    /// be an overdue one. With the answer everything before it is through, for a servo answers in order.
    pub(super) fn settle_doubt(&mut self, id: ServoId, len: usize) -> Result<Result<(), ReplyFault>> {
        let window = self.options.quarantine_window;
        let probe = match self.servos.doubt(id, len, self.port.now(), window) {
            Doubt::None => return Ok(Ok(())),
            Doubt::Wait => {
                self.stats.not_asked += 1;
                return Ok(Err(ReplyFault::Quarantined));
            }
            Doubt::Probe(probe) => probe,
        };
        self.stats.barriers += 1;
        let request = Request::Read(id, probe_block(probe));
        let mut replies = SyncReplies::new();
        replies.begin(&[id], probe.into());
        self.exchange(&request, &mut replies)?;
        Ok(match replies.get(0) {
            // The id register comes first.
            Some((_, Ok(reply))) if reply.data.first().is_some_and(|first| *first != id.get()) => {
                self.servos.expect(id, probe.into(), self.port.now());
                Err(ReplyFault::Damaged)
            }
            Some((_, Ok(_))) => Ok(()),
            Some((_, Err(fault))) => Err(fault),
            None => Err(ReplyFault::Missing),
        })
    }

    /// Opens the port again.
    pub(super) fn reopen(&mut self) -> Result<()> {
        self.input = Input::Unknown;
        self.echo = Echo::Unknown;
        self.last_reply = None;
        self.servos.forget_positions();
        self.port.reopen()
    }

    /// Makes sure that no reply to come can be taken for an overdue one: by asking for a few bytes more, or with a
    /// barrier. The block to ask for.
    fn settle_doubts(&mut self, replies: &mut SyncReplies, block: Option<Block>) -> Result<Option<Block>> {
        if self.servos.are_clear() {
            return Ok(block);
        }
        let (now, window) = (self.port.now(), self.options.quarantine_window);
        let servos = &mut self.servos;
        // Those that are left alone for now do not count.
        let mut doubtful = |len| {
            replies.waiting_ids().any(|id| matches!(servos.doubt(id, len, now, window), Doubt::Probe(_)))
        };
        let longer = block.and_then(|block| undoubted(block, &mut doubtful));
        replies.await_len(longer.or(block).map_or(0, Block::len_bytes));
        for place in 0..replies.len() {
            let Some(id) = replies.waiting_at(place) else { continue };
            if let Err(fault) = self.settle_doubt(id, replies.awaited_len())? {
                replies.give_up(place, fault);
            }
        }
        Ok(longer.or(block))
    }

    /// One transaction with one deadline.
    fn exchange(&mut self, request: &Request<'_>, replies: &mut SyncReplies) -> Result<()> {
        let sent = self.send(request, replies)?;
        let expected = replies.waiting() * (OVERHEAD + replies.awaited_len());
        let wire = BYTE_TIME * u32::try_from(sent + expected).unwrap_or(u32::MAX);
        let deadline = self.port.now() + wire + self.options.reply_timeout;
        self.receive(deadline, replies)?;
        for id in replies.answered_ids() {
            self.servos.settle(id);
        }
        if replies.waiting() == 0 {
            self.wire = Wire::Silent;
        }
        let is_exact = self.incoming.was_exact(replies);
        if let (true, Some(last)) = (is_exact && replies.len() > 1, replies.id_at(replies.len() - 1)) {
            self.input = Input::AtMostACopyOf(last);
        }
        if self.incoming.seen.echo {
            self.echo = Echo::Present;
        } else if self.echo == Echo::Unknown && replies.is_complete() && !self.incoming.seen.lookalike {
            self.echo = Echo::Absent;
        }
        Ok(())
    }

    /// Sends a request once nothing is on its way that could be taken for its replies; the packet's length.
    fn send(&mut self, request: &Request<'_>, replies: &SyncReplies) -> Result<usize> {
        let len = request.encode(self.incoming.sent_mut())?;
        self.forget_positions_that_change(request);
        self.drain_if_busy()?;
        let first = replies.waiting_ids().next();
        let copy_of = match self.input {
            Input::AtMostACopyOf(id) if replies.waiting() > 1 && first != Some(id) => Some(id),
            _ => None,
        };
        if copy_of.is_none() {
            self.let_a_copy_pass(replies)?;
        }
        if copy_of.is_none() || !self.servos.are_clear() {
            self.port.discard_input()?;
        }
        let longest = self.servos.longest_overdue();
        self.incoming.begin(len, replies.awaited_len(), longest, copy_of.map(ServoId::get));
        // Until every reply is in, and also when the port fails half way, one may still come.
        self.wire = Wire::MayBeBusy;
        self.input = Input::Unknown;
        let now = self.port.now();
        for id in replies.waiting_ids() {
            self.servos.expect(id, replies.awaited_len(), now);
            // The echo of this request may be as late as the reply, and looks like one.
            if replies.is_for_one() {
                self.servos.expect(id, len - OVERHEAD, now);
            }
        }
        self.stats.requests += 1;
        self.port.write_all(&self.incoming.sent_mut()[..len])?;
        Ok(len)
    }

    fn receive(&mut self, deadline: Timestamp, replies: &mut SyncReplies) -> Result<()> {
        let mut chunk = [0; MAX_PACKET];
        while replies.waiting() > 0 {
            let n = self.port.read(&mut chunk, deadline)?.min(MAX_PACKET);
            if n == 0 {
                self.stats.timeouts += 1;
                self.incoming.end(replies, &mut self.stats);
                break;
            }
            self.incoming.take(&chunk[..n], replies, &mut self.stats);
            // An adapter that has never sent anything back: more likely the reply. It is asked in another way.
            if self.incoming.seen.lookalike && self.echo != Echo::Present {
                break;
            }
        }
        if let Some((id, len)) = self.incoming.last_accepted(replies) {
            self.last_reply = Some((id, len, self.port.now()));
        }
        Ok(())
    }

    /// Sends back into doubt what no servo can have reached since it was last seen.
    fn judge(&mut self, replies: &mut SyncReplies, block: Option<Block>) {
        let (Some(rule), Some(block)) = (self.options.plausibility, block) else { return };
        let Some(offset) = PRESENT_POSITION.address.checked_sub(block.address) else { return };
        let offset = usize::from(offset);
        let now = self.port.now();
        for place in 0..replies.len() {
            let Some((id, data)) = replies.unjudged_at(place) else { continue };
            let Some(bytes) = data.get(offset..offset + 2) else { return };
            let Ok(ticks) = PRESENT_POSITION.decode(bytes) else { continue };
            if self.servos.believe(id, ticks, now, &rule) {
                replies.approve(place);
            } else {
                self.stats.implausible += 1;
                replies.fail(place, ReplyFault::Implausible);
                self.servos.expect(id, replies.awaited_len(), now);
            }
        }
    }

    /// After a write to these registers a position means something else, or may jump.
    fn forget_positions_that_change(&mut self, request: &Request<'_>) {
        let changes = |address: u8| address <= crate::registers::TORQUE_ENABLE.address;
        match request {
            Request::Write(target, address, _) | Request::RegWrite(target, address, _)
                if changes(*address) =>
            {
                match ServoId::new(target.id()) {
                    Ok(id) => self.servos.forget_position(id),
                    Err(_) => self.servos.forget_positions(),
                }
            }
            Request::SyncWrite(address, rows) if changes(*address) => {
                for row in *rows {
                    self.servos.forget_position(row.id);
                }
            }
            Request::Reset(id) | Request::Reboot(id) => self.servos.forget_position(*id),
            Request::Action(_) => self.servos.forget_positions(),
            _ => {}
        }
    }

    /// A reply that comes twice could have its second copy taken for the next reply of the same servo and length:
    /// waits for as long as a copy would take.
    fn let_a_copy_pass(&mut self, replies: &SyncReplies) -> Result<()> {
        let Some((id, len, at)) = self.last_reply else { return Ok(()) };
        if len != replies.awaited_len() || !replies.waiting_ids().any(|waiting| waiting == id) {
            return Ok(());
        }
        let passed = at + BYTE_TIME * (2 * u32::try_from(OVERHEAD + len).unwrap_or(0));
        let mut chunk = [0; MAX_PACKET];
        while self.port.now() < passed {
            if self.port.read(&mut chunk, passed)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Reads until the wire was silent for a while, but not for ever.
    fn drain_if_busy(&mut self) -> Result<()> {
        if self.wire == Wire::Silent {
            return Ok(());
        }
        self.stats.quarantines += 1;
        self.input = Input::Unknown;
        let end = self.port.now() + self.options.reply_timeout + self.options.quarantine_silence;
        let mut chunk = [0; MAX_PACKET];
        loop {
            let silence = self.port.now() + self.options.quarantine_silence;
            if self.port.read(&mut chunk, silence)? == 0 || self.port.now() >= end {
                self.wire = Wire::Silent;
                return Ok(());
            }
        }
    }
}
