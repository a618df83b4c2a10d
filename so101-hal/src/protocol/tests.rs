use alloc::format;
use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

type Owned = (u8, u8, Vec<u8>);

/// Everything the parser finds when the stream comes in pieces of `piece` bytes and then ends.
fn parse(stream: &[u8], piece: usize) -> (Vec<Owned>, Vec<FrameFault>) {
    let mut parser = FrameParser::new();
    let (mut packets, mut faults) = (vec![], vec![]);
    for bytes in stream.chunks(piece) {
        assert_eq!(parser.push(bytes), bytes.len());
        drain(&mut parser, &mut packets, &mut faults);
    }
    parser.finish();
    drain(&mut parser, &mut packets, &mut faults);
    assert_eq!(parser.next_packet(), None);
    (packets, faults)
}

fn drain(parser: &mut FrameParser, packets: &mut Vec<Owned>, faults: &mut Vec<FrameFault>) {
    while let Some(item) = parser.next_packet() {
        match item {
            Ok(p) => packets.push((p.id, p.code, p.params.to_vec())),
            Err(fault) => faults.push(fault),
        }
    }
}

fn status(id: u8, alarms: u8, data: &[u8]) -> Vec<u8> {
    let mut out = [0; MAX_PACKET];
    let n = encode_status(ServoId::new(id).unwrap(), Alarms::from_bits(alarms), data, &mut out).unwrap();
    out[..n].to_vec()
}

/// An independent definition of a valid packet that starts at `at`.
fn valid_at(stream: &[u8], at: usize) -> Option<usize> {
    let s = &stream[at..];
    if s.len() < 6 || s[0] != 0xff || s[1] != 0xff || s[2] == 0xff || s[3] < 2 {
        return None;
    }
    let total = s[3] as usize + 4;
    if total > 250 || total > s.len() {
        return None;
    }
    let sum: u32 = s[2..total].iter().map(|b| u32::from(*b)).sum();
    (sum % 256 == 255).then_some(total)
}

#[test]
fn broadcast_and_beyond_are_no_servo_ids() {
    assert_eq!(ServoId::new(253).unwrap().get(), 253);
    for id in [254, 255] {
        assert!(matches!(ServoId::new(id), Err(Error::ServoId { id: got }) if got == id));
    }
}

#[test]
fn alarms_print_their_names_and_keep_reserved_bits() {
    for (bits, text) in [
        (0, "none"),
        (0x01, "voltage"),
        (0x2d, "voltage+heat+current+overload"),
        (0x02, "angle"),
        (0x90, "reserved bits 0x90"),
        (0x60, "overload+reserved bits 0x40"),
    ] {
        assert_eq!(Alarms::from_bits(bits).to_string(), text);
    }
    assert_eq!((Alarms::HEAT | Alarms::VOLTAGE).names().collect::<Vec<_>>(), ["voltage", "heat"]);
}

#[test]
fn a_request_that_does_not_fit_is_refused_and_a_fitting_one_fills_the_buffer() {
    let id = ServoId::ARM[0];
    let data = [7; MAX_PARAMS];
    let mut out = [0; 300];
    assert!(matches!(
        Request::Write(id.into(), 1, &data).encode(&mut out),
        Err(Error::PacketLength { needed: 251, room: 250 })
    ));
    assert_eq!(Request::Write(id.into(), 1, &data[1..]).encode(&mut out).unwrap(), MAX_PACKET);
    assert!(matches!(
        Request::Ping(Target::All).encode(&mut out[..5]),
        Err(Error::PacketLength { needed: 6, room: 5 })
    ));
}

#[test]
fn rows_of_different_length_are_refused() {
    let rows = [SyncRow { id: ServoId::ARM[0], data: &[1, 2] }, SyncRow { id: ServoId::ARM[1], data: &[1] }];
    let got = Request::SyncWrite(42, &rows).encode(&mut [0; 64]);
    assert!(matches!(got, Err(Error::SyncRows { id: 2, expected: 2, got: 1 })));
}

#[test]
fn a_damaged_packet_is_one_fault_and_the_next_one_is_found() {
    let mut stream = status(3, 0, &[0x00, 0x08]);
    *stream.last_mut().unwrap() ^= 0x5a;
    let computed = status(3, 0, &[0x00, 0x08]).pop().unwrap();
    stream.extend(status(4, 0x20, &[1, 2]));
    for piece in [1, 3, 64] {
        let (packets, faults) = parse(&stream, piece);
        assert_eq!(packets, [(4, 0x20, vec![1, 2])]);
        assert_eq!(faults, [FrameFault::Checksum { id: 3, computed, received: computed ^ 0x5a }]);
    }
}

#[test]
fn a_length_out_of_bounds_is_a_fault() {
    let mut parser = FrameParser::with_max_params(2);
    parser.push(&[0xff, 0xff, 1, 1, 0xff, 0xff, 2, 5, 0, 0, 0, 0, 0]);
    assert_eq!(parser.next_packet(), Some(Err(FrameFault::Length { id: 1, len: 1 })));
    assert_eq!(parser.next_packet(), Some(Err(FrameFault::Length { id: 2, len: 5 })));
    assert_eq!(parser.next_packet(), None);
}

#[test]
fn what_waits_behind_a_false_header_comes_out_at_the_end() {
    let mut parser = FrameParser::new();
    parser.push(&[0xff, 0xff, 0x01, 0xf0]);
    parser.push(&status(2, 0, &[9]));
    assert_eq!(parser.next_packet(), None);
    parser.finish();
    assert_eq!(parser.next_packet(), Some(Ok(Packet { id: 2, code: 0, params: &[9] })));
    assert_eq!(parser.next_packet(), None);
    assert_eq!(parser.skipped(), 4);
}

fn byte() -> impl Strategy<Value = u8> {
    // Header bytes far more often than chance would have them.
    prop_oneof![3 => Just(0xff_u8), 2 => 0..8_u8, 5 => any::<u8>()]
}

proptest! {
    #[test]
    fn every_reply_survives_the_way_through_bytes(
        id in 0..=253_u8, alarms: u8, data in prop::collection::vec(any::<u8>(), 0..=MAX_PARAMS), piece in 1..64_usize,
    ) {
        let (packets, faults) = parse(&status(id, alarms, &data), piece);
        prop_assert_eq!((packets, faults), (vec![(id, alarms, data)], vec![]));
    }

    #[test]
    fn every_request_survives_the_way_through_bytes(
        id in 0..=253_u8, address: u8, len: u8, data in prop::collection::vec(any::<u8>(), 1..20), ids in 1..8_u8,
    ) {
        let one = ServoId::new(id)?;
        let ids: Vec<ServoId> = (0..ids).map(|i| ServoId::new(i * 31)).collect::<Result<_>>()?;
        let rows: Vec<SyncRow<'_>> = ids.iter().map(|id| SyncRow { id: *id, data: &data }).collect();
        let block = Block::new(address, len);
        let mut with_address = vec![address];
        with_address.extend(&data);
        let sync_read: Vec<u8> = [address, len].into_iter().chain(ids.iter().map(|id| id.get())).collect();
        let mut sync_write = vec![address, data.len() as u8];
        for id in &ids {
            sync_write.push(id.get());
            sync_write.extend(&data);
        }
        for (request, to, params) in [
            (Request::Ping(one.into()), id, vec![]),
            (Request::Ping(Target::All), 254, vec![]),
            (Request::Read(one, block), id, vec![address, len]),
            (Request::Write(Target::All, address, &data), 254, with_address.clone()),
            (Request::RegWrite(one.into(), address, &data), id, with_address),
            (Request::Action(Target::All), 254, vec![]),
            (Request::Reset(one), id, vec![]),
            (Request::Reboot(one), id, vec![]),
            (Request::SyncRead(block, &ids), 254, sync_read),
            (Request::SyncWrite(address, &rows), 254, sync_write),
        ] {
            let mut out = [0; MAX_PACKET];
            let n = request.encode(&mut out)?;
            prop_assert_eq!(n, request.encoded_len());
            let (packets, faults) = parse(&out[..n], 7);
            prop_assert_eq!(Instruction::from_code(out[4]), Some(request.instruction()));
            prop_assert_eq!((packets, faults), (vec![(to, request.instruction() as u8, params)], vec![]));
        }
    }

    #[test]
    fn a_valid_packet_inside_any_noise_is_found(
        before in prop::collection::vec(byte(), 0..120), after in prop::collection::vec(byte(), 0..120),
        id in 0..=253_u8, alarms: u8, data in prop::collection::vec(byte(), 0..20), piece in 1..40_usize,
    ) {
        let packet = status(id, alarms, &data);
        let stream = [&before[..], &packet, &after].concat();
        // Noise that happens to be a valid packet which reaches into ours is one in 256 headers; nothing could tell.
        let overlapped = (0..before.len()).any(|at| valid_at(&stream, at).is_some_and(|n| at + n > before.len()));
        prop_assume!(!overlapped);
        prop_assert!(parse(&stream, piece).0.contains(&(id, alarms, data)));
    }

    #[test]
    fn what_the_parser_yields_does_not_depend_on_how_the_bytes_arrive(
        stream in prop::collection::vec(byte(), 0..400), piece in 1..100_usize,
    ) {
        prop_assert_eq!(parse(&stream, piece), parse(&stream, 250));
    }
}

#[test]
fn ten_thousand_random_streams_yield_only_packets_that_are_in_them() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut found = 0;
    for _ in 0..10_000 {
        let len = random() % 300;
        // Small bytes and headers, so that many streams hold packets by chance.
        let stream: Vec<u8> = (0..len)
            .map(|_| match random() % 4 {
                0 | 1 => 0xff,
                2 => (random() % 6) as u8,
                _ => random() as u8,
            })
            .collect();
        let (packets, _) = parse(&stream, 1 + (random() % 50) as usize);
        for (id, code, params) in packets {
            found += 1;
            let mut bytes = vec![0xff, 0xff, id, params.len() as u8 + 2, code];
            bytes.extend(&params);
            let sum = checksum(&bytes[2..]);
            bytes.push(sum);
            assert!(stream.windows(bytes.len()).any(|w| w == bytes), "{}", format!("{bytes:02x?}"));
        }
    }
    assert!(found > 100, "only {found} packets in all streams");
}
