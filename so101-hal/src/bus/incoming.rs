//! Bytes that come in, sorted: the own request's echo, replies, everything else.

use super::{BusStats, SyncReplies};
use crate::protocol::{FrameFault, FrameParser, MAX_PACKET, OVERHEAD, ServoId};

#[derive(Debug)]
pub(super) struct Incoming {
    parser: FrameParser,
    /// The request as it was sent.
    sent: [u8; MAX_PACKET],
    sent_len: usize,
    /// Bytes at the front of the input that are those of the request; `None` = they are not, or the echo is through.
    echoed: Option<usize>,
    pub(super) seen: Seen,
}

/// What one transaction has brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// A packet was the request's echo for certain.
    pub(super) echo: bool,
    /// A packet was equal to the request, and could have been the reply just as well.
    pub(super) lookalike: bool,
    bytes: usize,
    accepted: usize,
    last_place: Option<usize>,
    /// Anything but replies in the order of the request.
    odd: bool,
    /// A servo whose reply closed the last transaction; first in this one, it would be that one's copy.
    copy_of: Option<u8>,
}

impl Incoming {
    pub(super) const fn new() -> Self {
        Self {
            parser: FrameParser::new(),
            sent: [0; MAX_PACKET],
            sent_len: 0,
            echoed: None,
            seen: Seen {
                echo: false,
                lookalike: false,
                bytes: 0,
                accepted: 0,
                last_place: None,
                odd: false,
                copy_of: None,
            },
        }
    }

    /// Room for the next request.
    pub(super) const fn sent_mut(&mut self) -> &mut [u8; MAX_PACKET] {
        &mut self.sent
    }

    /// The request of `len` bytes is about to be sent. Replies have `reply_len` bytes of data, nothing has more than
    /// `longest`.
    pub(super) fn begin(&mut self, len: usize, reply_len: usize, longest: usize, copy_of: Option<u8>) {
        self.sent_len = len.min(MAX_PACKET);
        self.echoed = Some(0);
        self.seen = Seen { copy_of, ..Seen::default() };
        self.parser.clear();
        // No longer than what can come: a false header can then not hold back a whole reply behind it for long.
        self.parser.set_max_params(longest.max(reply_len));
        self.parser.expect_replies(reply_len);
    }

    /// Takes bytes in the order in which they came.
    pub(super) fn take(&mut self, bytes: &[u8], replies: &mut SyncReplies, stats: &mut BusStats) {
        self.seen.bytes += bytes.len();
        let mut rest = bytes;
        if let Some(matched) = self.echoed {
            let request = &self.sent[matched..self.sent_len];
            let same = request.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            rest = &bytes[same..];
            if matched + same == self.sent_len {
                self.echoed = None;
                self.note_echo(replies, stats);
            } else if rest.is_empty() {
                self.echoed = Some(matched + same);
                return;
            } else {
                self.echoed = None;
                self.parser.push(&self.sent[..matched + same]);
                self.sort(replies, stats);
            }
        }
        self.parser.push(rest);
        self.sort(replies, stats);
    }

    /// Nothing more will come.
    pub(super) fn end(&mut self, replies: &mut SyncReplies, stats: &mut BusStats) {
        if let Some(matched) = self.echoed.take() {
            self.parser.push(&self.sent[..matched]);
        }
        self.parser.finish();
        self.sort(replies, stats);
    }

    /// The replies came in the order of the request, all of them, and nothing else.
    pub(super) fn was_exact(&self, replies: &SyncReplies) -> bool {
        let expected = self.seen.accepted * (OVERHEAD + replies.awaited_len());
        !self.seen.odd && self.seen.accepted == replies.len() && self.seen.bytes == expected
    }

    /// The servo of the newest reply, and its bytes of data.
    pub(super) fn last_accepted(&self, replies: &SyncReplies) -> Option<(ServoId, usize)> {
        Some((replies.id_at(self.seen.last_place?)?, replies.awaited_len()))
    }

    fn note_echo(&mut self, replies: &SyncReplies, stats: &mut BusStats) {
        self.seen.odd = true;
        let is_like_a_reply = self.sent_len == OVERHEAD + replies.awaited_len() && replies.asks(self.sent[2]);
        if is_like_a_reply {
            self.seen.lookalike = true;
        } else {
            self.seen.echo = true;
            stats.echoes += 1;
        }
    }

    /// Puts the packets that have come into their places.
    fn sort(&mut self, replies: &mut SyncReplies, stats: &mut BusStats) {
        loop {
            self.parser.set_last(replies.waiting() <= 1);
            match self.parser.next_packet() {
                None => return,
                Some(Ok(packet)) => {
                    let had_echo = self.seen.echo || self.seen.lookalike;
                    if !had_echo && packet.is_same_as(&self.sent[..self.sent_len]) {
                        self.note_echo(replies, stats);
                        continue;
                    }
                    let is_copy = self.seen.accepted == 0 && self.seen.copy_of == Some(packet.id);
                    match if is_copy { None } else { replies.accept(&packet) } {
                        Some(place) => {
                            self.seen.odd |= self.seen.last_place.is_some_and(|last| last > place);
                            self.seen.last_place = Some(place);
                            self.seen.accepted += 1;
                        }
                        None => {
                            self.seen.odd = true;
                            stats.unexpected += 1;
                        }
                    }
                }
                Some(Err(fault)) => {
                    self.seen.odd = true;
                    stats.damaged += 1;
                    match fault {
                        FrameFault::Checksum { id, .. } | FrameFault::Ambiguous { id } => replies.damaged(id),
                        FrameFault::Length { .. } => {}
                    }
                }
            }
        }
    }
}
