//! What must hold for any bytes on the servo bus; shared by the fuzz target and the test that replays its corpus.

extern crate alloc;

use alloc::sync::Arc;
use alloc::vec::Vec;

use so101_hal::bus::{Bus, ServoBus as _, SyncReplies};
use so101_hal::port::ReplayPort;
use so101_hal::protocol::{Alarms, FrameParser, ServoId, checksum};
use so101_hal::registers::TELEMETRY;
use so101_hal::{Clock as _, EmulatedServos, EmulatorOptions, Port, Result, Timestamp, VirtualClock};

/// The first byte says in what pieces the others arrive.
pub(crate) fn check(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let piece = usize::from(*first % 64) + 1;
    let packets = parse(stream, piece);
    assert_eq!(packets, parse(stream, 250), "the packets depend on how the bytes arrive");
    for packet in &packets {
        assert!(stream.windows(packet.len()).any(|w| w == packet), "a packet that is not in the stream");
    }
    ask_servos(stream);
    answer_host(stream, piece);
}

fn parse(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut parser = FrameParser::new();
    let mut packets = Vec::new();
    for bytes in stream.chunks(piece) {
        assert_eq!(parser.push(bytes), bytes.len());
        drain(&mut parser, &mut packets);
    }
    parser.finish();
    drain(&mut parser, &mut packets);
    packets
}

fn drain(parser: &mut FrameParser, packets: &mut Vec<Vec<u8>>) {
    while let Some(item) = parser.next_packet() {
        let Ok(p) = item else { continue };
        packets.push(framed(p.id, p.code, p.params));
    }
}

fn framed(id: u8, code: u8, params: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([0xff, 0xff, id, params.len() as u8 + 2, code]);
    bytes.extend_from_slice(params);
    bytes.push(checksum(&bytes[2..]));
    bytes
}

/// The bytes as requests: raw, and as one request whose checksum is right.
fn ask_servos(stream: &[u8]) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let mut port = servos.port();
    let mut send = |bytes: &[u8]| {
        port.write_all(bytes).expect("an emulated port takes everything");
        clock.sleep_until(clock.now() + core::time::Duration::from_millis(20));
        let mut buffer = [0; 64];
        while port.read(&mut buffer, Timestamp::ZERO).expect("an emulated port never fails") > 0 {}
    };
    send(stream);
    if let [id, code, params @ ..] = stream {
        send(&framed(*id, *code, &params[..params.len().min(240)]));
    }
    assert!(servos.true_ticks().iter().all(|ticks| ticks.is_finite()));
}

/// The bytes as replies to everything that can be asked, and as a recorded session.
fn answer_host(stream: &[u8], piece: usize) {
    let noise = || Noise { clock: VirtualClock::new(), left: stream.to_vec(), piece };
    let mut bus = Bus::new(noise());
    let mut replies = SyncReplies::new();
    bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).expect("noise is no reason to fail");
    for (id, reply) in replies.iter() {
        let Ok(reply) = reply else { continue };
        assert!(is_sent(stream, id, reply.alarms, reply.data), "a reply that was not sent");
    }
    for id in ServoId::ARM {
        let mut data = [0; 2];
        let mut bus = Bus::new(noise());
        if let Ok(alarms) = bus.read(id, 56, &mut data) {
            // A read of two bytes is asked as one of three when it looks like its own reply.
            let ends =
                |skip: usize| wires(stream, id, alarms).any(|d| d.get(skip..skip + 2) == Some(&data[..]));
            assert!(ends(0) || ends(1), "a reply that was not sent");
        }
        let mut bus = Bus::new(noise());
        let (ping, write, reset) = (bus.ping(id), bus.write(id, 40, &[0]), bus.reset(id));
        for alarms in [ping, write, reset].into_iter().flatten() {
            assert!(wires(stream, id, alarms).next().is_some(), "a reply that was not sent");
        }
    }
    if let Ok(text) = core::str::from_utf8(stream)
        && let Ok(port) = ReplayPort::parse(text)
    {
        let _ = Bus::new(port).sync_read(TELEMETRY, &ServoId::ARM, &mut replies);
    }
}

/// Whether a whole reply in the stream begins with these data; a second try asks for a few bytes more.
fn is_sent(stream: &[u8], id: ServoId, alarms: Alarms, data: &[u8]) -> bool {
    wires(stream, id, alarms).any(|sent| sent.starts_with(data))
}

/// The data of every whole reply of a servo in the stream.
fn wires(stream: &[u8], id: ServoId, alarms: Alarms) -> impl Iterator<Item = &[u8]> {
    stream.windows(6).enumerate().filter_map(move |(at, head)| {
        let [0xff, 0xff, of, len, code, _] = *head else { return None };
        let params = usize::from(len).checked_sub(2)?;
        let wire = stream.get(at..at + 6 + params)?;
        let data = &wire[5..5 + params];
        (of == id.get() && code == alarms.bits() && wire == framed(of, code, data)).then_some(data)
    })
}

/// A line that answers every request with what is left of the bytes.
struct Noise {
    clock: VirtualClock,
    left: Vec<u8>,
    piece: usize,
}

impl Port for Noise {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
    fn write_all(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        let n = self.piece.min(buffer.len()).min(self.left.len());
        buffer[..n].copy_from_slice(&self.left[..n]);
        self.left.drain(..n);
        if n == 0 {
            self.clock.sleep_until(deadline);
        }
        Ok(n)
    }
    fn discard_input(&mut self) -> Result<()> {
        Ok(())
    }
}
