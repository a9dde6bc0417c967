//! Tests of encryption at rest.

use super::*;

const OBJECT_KEY: &str = "/registry/secrets/default/s";

fn ring(keys: &[u8], is_identity: bool) -> Keyring {
    let key = |&byte: &u8| {
        let secret = [byte; KEY_BYTES];
        Key {
            id: id_of(&secret),
            name: format!("key {byte}"),
            cipher: RandomizedNonceKey::new(&AES_256_GCM, &secret).unwrap(),
        }
    };
    Keyring {
        keys: keys.iter().map(key).collect(),
        is_identity,
        name: String::new(),
    }
}

fn sealed(ring: &Keyring) -> Bytes {
    ring.seal(OBJECT_KEY, b"{secret}").unwrap().into()
}

#[test]
fn sealed_values_are_unreadable_and_open_again() {
    let ring = ring(&[1], false);
    let (one, other) = (sealed(&ring), sealed(&ring));
    assert_ne!(one, other, "nonces are never used twice");
    assert!(!one.windows(6).any(|w| w == b"secret"));
    assert_eq!(one.len(), HEADER_BYTES + 8 + 16);
    let opened = ring.open(OBJECT_KEY, one).unwrap();
    assert_eq!(
        (&opened.value[..], opened.is_current),
        (&b"{secret}"[..], true)
    );
    assert_eq!(ring.seal("/registry/configmaps/default/s", b"{}"), None);
    assert_eq!(ring.seal("/registry/secretservices/a", b"{}"), None);
}

#[test]
fn the_first_key_writes_and_every_key_reads() {
    let check = |reader: Keyring, writer: Option<Keyring>, is_current| {
        let stored = writer.map_or(Bytes::from_static(b"{secret}"), |ring| sealed(&ring));
        let opened = reader.open(OBJECT_KEY, stored).unwrap();
        assert_eq!(&opened.value[..], b"{secret}");
        assert_eq!(opened.is_current, is_current, "{reader:?}");
    };
    check(ring(&[1], false), Some(ring(&[1], false)), true);
    check(ring(&[2, 1], false), Some(ring(&[1], false)), false);
    check(ring(&[1, 2], false), Some(ring(&[1], false)), true);
    check(ring(&[1], true), Some(ring(&[1], false)), false);
    check(ring(&[1], false), None, false);
    check(ring(&[1], true), None, true);
    check(Keyring::empty(), None, true);
    assert_eq!(ring(&[1], true).seal(OBJECT_KEY, b"{}"), None);
}

#[test]
fn values_that_do_not_open_say_why() {
    let stored = sealed(&ring(&[1], false));
    let id = HEXLOWER.encode(&id_of(&[1; KEY_BYTES]));
    let missing = format!(
        "the value is encrypted with key id {id}, which the file of --encryption-key-file does not have; \
         add that key again"
    );
    for reader in [ring(&[2], false), Keyring::empty()] {
        assert_eq!(
            reader
                .open(OBJECT_KEY, stored.clone())
                .unwrap_err()
                .to_string(),
            missing
        );
    }
    let changed = "cannot decrypt the value with key \"key 1\": its bytes were changed or belong to \
                   another object; restore it from a backup";
    let reader = ring(&[1], false);
    let elsewhere = reader.open("/registry/secrets/default/other", stored.clone());
    assert_eq!(elsewhere.unwrap_err().to_string(), changed);
    let unknown = reader.open(OBJECT_KEY, Bytes::from_static(b"\x02future"));
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .starts_with("the value is neither JSON nor encrypted")
    );
    for at in 1 + ID_BYTES..stored.len() {
        let mut bytes = stored.to_vec();
        bytes[at] ^= 1;
        assert_eq!(
            reader
                .open(OBJECT_KEY, bytes.into())
                .unwrap_err()
                .to_string(),
            changed,
            "{at}"
        );
    }
    for length in [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 15] {
        assert!(
            reader.open(OBJECT_KEY, stored.slice(..length)).is_err(),
            "{length}"
        );
    }
}
