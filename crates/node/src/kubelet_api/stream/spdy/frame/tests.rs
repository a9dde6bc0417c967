use kennel_test_support::with_seeds;

use super::*;

fn encode(frames: &[Frame]) -> BytesMut {
    let (mut compressor, mut out) = (HeaderCompressor::new(), BytesMut::new());
    for frame in frames {
        frame.write(&mut compressor, &mut out);
    }
    out
}

fn decode(mut bytes: &[u8]) -> Result<Vec<Frame>, SpdyError> {
    let (mut decompressor, mut frames) = (HeaderDecompressor::new(), Vec::new());
    while let Some((head, rest)) = bytes.split_first_chunk() {
        let head = Head::parse(*head)?;
        let (Head::Data { length, .. } | Head::Control { length, .. }) = head;
        let (body, rest) = rest.split_at_checked(length).ok_or(SpdyError::Short(0))?;
        bytes = rest;
        frames.push(match head {
            Head::Data { id, fin, .. } => Frame::Data {
                id,
                fin,
                bytes: Bytes::copy_from_slice(body),
            },
            Head::Control { kind, fin, .. } => Frame::parse(kind, fin, body, &mut decompressor)?,
        });
    }
    Ok(frames)
}

fn every_kind() -> Vec<Frame> {
    let headers = |kind: &str| Headers::default().with("streamtype", kind);
    vec![
        Frame::Open {
            id: 1,
            headers: headers("error"),
            fin: true,
        },
        Frame::Open {
            id: 3,
            headers: headers("stdout"),
            fin: false,
        },
        Frame::Reply {
            id: 1,
            headers: Headers::default(),
            fin: false,
        },
        Frame::Headers {
            id: 3,
            headers: headers("x"),
            fin: true,
        },
        Frame::Reset {
            id: 3,
            status: REFUSED_STREAM,
        },
        Frame::Ping(7),
        Frame::Window {
            id: 1,
            delta: 65_536,
        },
        Frame::Data {
            id: 1,
            bytes: Bytes::from_static(b"hello"),
            fin: false,
        },
        Frame::Data {
            id: 1,
            bytes: Bytes::new(),
            fin: true,
        },
        Frame::GoAway { last: 3 },
    ]
}

#[test]
fn frames_survive_encoding() {
    let frames = every_kind();
    assert_eq!(decode(&encode(&frames)).unwrap(), frames);
}

#[test]
fn encoded_frames_match_the_specification() {
    let check = |frame: Frame, bytes: &[u8]| {
        assert_eq!(encode(std::slice::from_ref(&frame)), bytes, "{frame:?}");
    };
    check(Frame::Ping(5), &[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 5]);
    check(
        Frame::Reset { id: 9, status: 1 },
        &[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 1],
    );
    check(
        Frame::GoAway { last: 1 },
        &[0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0],
    );
    check(
        Frame::Window { id: 1, delta: 256 },
        &[0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 1, 0],
    );
    let data = Frame::Data {
        id: 5,
        bytes: Bytes::from_static(b"ab"),
        fin: true,
    };
    check(data, &[0, 0, 0, 5, 1, 0, 0, 2, b'a', b'b']);
}

/// A block compressed by zlib itself: another deflate than ours, the same headers.
#[test]
fn headers_compressed_by_spdystream_are_decoded() {
    let mut body = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    body.extend_from_slice(&[
        0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0xe5, 0x0e, 0x70, 0x3a, 0x2b, 0x29, 0x4a, 0x4d,
        0xcc, 0x85, 0x16, 0x25, 0xac, 0xa9, 0xa0, 0x80, 0x86, 0x14, 0xcb, 0x45, 0xa0, 0x24, 0xcc,
        0x64, 0x61, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
    ]);
    let frame = Frame::parse(SYN_STREAM, false, &body, &mut HeaderDecompressor::new()).unwrap();
    let headers = Headers::default()
        .with("streamtype", "error")
        .with("port", "80");
    assert_eq!(
        frame,
        Frame::Open {
            id: 1,
            headers,
            fin: false
        }
    );
}

#[test]
fn settings_and_unknown_types_are_ignored() {
    let settings = [
        0x80, 3, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0xff, 0xff,
    ];
    assert_eq!(decode(&settings).unwrap(), [Frame::Other]);
    assert_eq!(
        decode(&[0x80, 3, 0, 99, 0, 0, 0, 1, 0]).unwrap(),
        [Frame::Other]
    );
}

#[test]
fn bad_heads_are_refused() {
    let other_version = [0x80, 2, 0, 6, 0, 0, 0, 4];
    assert!(matches!(
        Head::parse(other_version),
        Err(SpdyError::Version(2))
    ));
    let long = [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff];
    assert!(matches!(Head::parse(long), Err(SpdyError::Long(_))));
}

#[test]
fn garbled_frames_never_panic() {
    let good = encode(&every_kind());
    with_seeds([31], |seed| garble_frames(&good, seed));
}

fn garble_frames(good: &[u8], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let mut bytes = good.to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(..=bytes.len()));
        drop(decode(&bytes));
    }
    for length in 0..4000 {
        let noise: Vec<u8> = (0..length % 200).map(|_| random.u8(..)).collect();
        for kind in 0..12 {
            drop(Frame::parse(
                kind,
                false,
                &noise,
                &mut HeaderDecompressor::new(),
            ));
        }
    }
}
