//! Packets of the vendor's library, to the bit, in both directions, and from the emulated servos.

use std::sync::Arc;

use serde_json::Value;
use so101_hal::protocol::{
    Block, FrameParser, Instruction, Request, ServoId, SyncRow, Target, encode_status,
};
use so101_hal::{EmulatedServos, EmulatorOptions, Port as _, Ticks, VirtualClock};

struct Exchange {
    op: String,
    tx: Vec<u8>,
    rx: Vec<u8>,
}

fn exchanges() -> Vec<Exchange> {
    let text = include_str!("../fixtures/golden_packets.json");
    let json: Value = serde_json::from_str(text).unwrap();
    let bytes = |v: &Value| {
        let hex = v.as_str().unwrap();
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let list = json["packets"].as_array().unwrap();
    list.iter()
        .map(|p| Exchange { op: p["op"].as_str().unwrap().into(), tx: bytes(&p["tx"]), rx: bytes(&p["rx"]) })
        .collect()
}

/// Id, code and parameters of every packet; anything else in the stream fails the test.
fn packets(stream: &[u8]) -> Vec<(u8, u8, Vec<u8>)> {
    let mut parser = FrameParser::new();
    assert_eq!(parser.push(stream), stream.len());
    let mut out = Vec::new();
    while let Some(item) = parser.next_packet() {
        let p = item.unwrap();
        out.push((p.id, p.code, p.params.to_vec()));
    }
    assert_eq!(parser.skipped(), 0);
    out
}

fn encoded(id: u8, code: u8, params: &[u8]) -> Vec<u8> {
    let one = ServoId::new(id);
    let target = one.as_ref().map_or(Target::All, |id| Target::One(*id));
    let ids: Vec<ServoId>;
    let rows: Vec<SyncRow<'_>>;
    let request = match (Instruction::from_code(code).unwrap(), params) {
        (Instruction::Ping, []) => Request::Ping(target),
        (Instruction::Read, [address, len]) => Request::Read(one.unwrap(), Block::new(*address, *len)),
        (Instruction::Write, [address, data @ ..]) => Request::Write(target, *address, data),
        (Instruction::RegWrite, [address, data @ ..]) => Request::RegWrite(target, *address, data),
        (Instruction::Action, []) => Request::Action(target),
        (Instruction::Reset, []) => Request::Reset(one.unwrap()),
        (Instruction::Reboot, []) => Request::Reboot(one.unwrap()),
        (Instruction::SyncRead, [address, len, list @ ..]) => {
            ids = list.iter().map(|id| ServoId::new(*id).unwrap()).collect();
            Request::SyncRead(Block::new(*address, *len), &ids)
        }
        (Instruction::SyncWrite, [address, len, list @ ..]) => {
            rows = list
                .chunks(usize::from(*len) + 1)
                .map(|row| SyncRow { id: ServoId::new(row[0]).unwrap(), data: &row[1..] })
                .collect();
            Request::SyncWrite(*address, &rows)
        }
        other => panic!("no request for {other:?}"),
    };
    let mut out = [0; 250];
    let n = request.encode(&mut out).unwrap();
    out[..n].to_vec()
}

#[test]
fn every_golden_request_is_read_and_written_to_the_bit() {
    let exchanges = exchanges();
    assert_eq!(exchanges.len(), 18);
    for e in exchanges {
        let [(id, code, params)] = &packets(&e.tx)[..] else { panic!("{}: more than one packet", e.op) };
        assert_eq!(encoded(*id, *code, params), e.tx, "{}", e.op);
    }
}

/// Those that LeRobot never sends, by the formula of the vendor's protocol manual.
#[test]
fn the_other_instructions_are_read_and_written_to_the_bit() {
    for wire in [
        &[0xff, 0xff, 0x01, 0x09, 0x04, 0x2a, 0x00, 0x08, 0x00, 0x00, 0xe8, 0x03, 0xd4][..],
        &[0xff, 0xff, 0xfe, 0x02, 0x05, 0xfa],
        &[0xff, 0xff, 0x00, 0x02, 0x06, 0xf7],
        &[0xff, 0xff, 0x01, 0x02, 0x08, 0xf4],
        // Torque off for all, the emergency stop.
        &[0xff, 0xff, 0xfe, 0x04, 0x03, 0x28, 0x00, 0xd2],
        // Make the present position the middle.
        &[0xff, 0xff, 0x03, 0x04, 0x03, 0x28, 0x80, 0x4d],
    ] {
        let [(id, code, params)] = &packets(wire)[..] else { panic!("{wire:02x?}: not one packet") };
        assert_eq!(encoded(*id, *code, params), wire);
    }
}

#[test]
fn every_golden_reply_is_read_and_written_to_the_bit() {
    for e in exchanges() {
        let mut all: Vec<u8> = Vec::new();
        for (id, code, data) in packets(&e.rx) {
            let mut out = [0; 64];
            let alarms = so101_hal::Alarms::from_bits(code);
            let n = encode_status(ServoId::new(id).unwrap(), alarms, &data, &mut out).unwrap();
            all.extend(&out[..n]);
        }
        assert_eq!(all, e.rx, "{}", e.op);
    }
}

#[test]
fn the_emulated_servos_answer_every_golden_request_with_the_golden_reply() {
    let start = [1, 2, 3, 4, 5, 6].map(|id| Ticks(2048 + 37 * id));
    let mut options = EmulatorOptions::default();
    options.start = start;
    let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), options);
    let mut port = servos.port();
    for e in exchanges() {
        port.discard_input().unwrap();
        port.write_all(&e.tx).unwrap();
        let mut got = [0; 250];
        let now = port.now();
        let n = port.read(&mut got, now).unwrap();
        assert_eq!(got[..n], e.rx, "{}", e.op);
    }
}
