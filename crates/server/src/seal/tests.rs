//! Keys and what they make of values.

use super::*;

const PLACE: &str = "/registry/secrets/default/s";

fn ring(keys: &[u8], is_plain: bool) -> Keyring {
    let key = |&byte: &u8| {
        let secret = [byte; KEY_BYTES];
        Key {
            id: id_of(&secret),
            title: format!("key {byte}"),
            cipher: RandomizedNonceKey::new(&AES_256_GCM, &secret).unwrap(),
        }
    };
    Keyring {
        keys: keys.iter().map(key).collect(),
        is_plain,
        name: String::new(),
    }
}

fn sealed(ring: &Keyring) -> Bytes {
    ring.seal(PLACE, b"{secret}").unwrap().into()
}

#[test]
fn what_is_sealed_is_unreadable_and_opens_again() {
    let ring = ring(&[1], false);
    let (one, other) = (sealed(&ring), sealed(&ring));
    assert_ne!(one, other, "nonces are never used twice");
    assert!(!one.windows(6).any(|w| w == b"secret"));
    assert_eq!(one.len(), HEADER_BYTES + 8 + 16);
    let opened = ring.open(PLACE, one).unwrap();
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
        let opened = reader.open(PLACE, stored).unwrap();
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
    assert_eq!(ring(&[1], true).seal(PLACE, b"{}"), None);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let stored = sealed(&ring(&[1], false));
    let id = hex(&id_of(&[1; KEY_BYTES]));
    let missing = format!(
        "it is encrypted with the key whose id is {id}, which is in no key file that \
         --encryption-key-file names; put that key back"
    );
    for reader in [ring(&[2], false), Keyring::empty()] {
        assert_eq!(
            reader.open(PLACE, stored.clone()).unwrap_err().to_string(),
            missing
        );
    }
    let changed = "it cannot be decrypted with the key \"key 1\", which it names: its bytes were changed, \
                   or are those of another object; restore them from a backup";
    let reader = ring(&[1], false);
    let elsewhere = reader.open("/registry/secrets/default/other", stored.clone());
    assert_eq!(elsewhere.unwrap_err().to_string(), changed);
    let unknown = reader.open(PLACE, Bytes::from_static(b"\x02future"));
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .starts_with("it is neither an object nor encrypted")
    );
    for at in 1 + ID_BYTES..stored.len() {
        let mut bytes = stored.to_vec();
        bytes[at] ^= 1;
        assert_eq!(
            reader.open(PLACE, bytes.into()).unwrap_err().to_string(),
            changed,
            "{at}"
        );
    }
    for length in [1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 15] {
        assert!(
            reader.open(PLACE, stored.slice(..length)).is_err(),
            "{length}"
        );
    }
}
