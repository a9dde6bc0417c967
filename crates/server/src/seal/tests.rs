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
        ..Keyring::default()
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

/// The key of an `EncryptionConfiguration` with the name `key 1`.
#[test]
fn values_on_etcd_have_the_form_of_kube_apiserver() {
    use std::collections::BTreeSet;
    let on_etcd = |keys: &[u8]| EtcdForm::new(ring(keys, false), BTreeSet::new());
    let stored = on_etcd(&[1]).seal(OBJECT_KEY, b"{secret}").unwrap();
    let header = b"k8s:enc:aesgcm:v1:key 1:";
    assert!(stored.starts_with(header));
    assert_eq!(stored.len(), header.len() + NONCE_LEN + 8 + 16);
    let (nonce, sealed) = stored[header.len()..].split_at(NONCE_LEN);
    let cipher = RandomizedNonceKey::new(&AES_256_GCM, &[1; KEY_BYTES]).unwrap();
    let nonce = Nonce::try_assume_unique_for_key(nonce).unwrap();
    let mut buffer = sealed.to_vec();
    let opened = cipher.open_in_place(nonce, Aad::from(OBJECT_KEY), &mut buffer);
    assert_eq!(opened.unwrap(), b"{secret}");

    let stored = Bytes::from(stored);
    let check = |seal: &dyn Seal, is_current: bool| {
        let opened = seal.open(OBJECT_KEY, stored.clone()).unwrap();
        assert_eq!(&opened.value[..], b"{secret}");
        assert_eq!(opened.is_current, is_current);
    };
    check(&on_etcd(&[1]), true);
    check(&on_etcd(&[2, 1]), false);
    // A database that it was moved to.
    check(&ring(&[1], false), false);
    let own = on_etcd(&[1]).open(OBJECT_KEY, sealed_by_own(&[1])).unwrap();
    assert!(!own.is_current, "the own form is rewritten on etcd");

    let said = |keys: &[u8], key: &str, stored: &Bytes| {
        let refused = on_etcd(keys).open(key, stored.clone());
        refused.unwrap_err().to_string()
    };
    let other = header.map(|byte| if byte == b'y' { b'z' } else { byte });
    let renamed = [&other[..], &stored[header.len()..]].concat();
    check_renamed(&on_etcd(&[2, 1]), &renamed);
    let missing = said(&[2], OBJECT_KEY, &stored);
    assert!(missing.contains("the key \"key 1\""), "{missing}");
    let moved = said(&[1], "/registry/secrets/default/other", &stored);
    assert!(
        moved.starts_with("cannot decrypt the value with key \"key 1\""),
        "{moved}"
    );
    assert!(said(&[1], OBJECT_KEY, &stored.slice(..header.len() + 5)).contains("truncated"));
    let provider = Bytes::from_static(b"k8s:enc:kms:v2:name:x");
    assert!(said(&[1], OBJECT_KEY, &provider).contains("provider \"kms\""));
}

fn check_renamed(seal: &dyn Seal, stored: &[u8]) {
    let opened = seal
        .open(OBJECT_KEY, Bytes::copy_from_slice(stored))
        .unwrap();
    assert_eq!(&opened.value[..], b"{secret}");
}

fn sealed_by_own(keys: &[u8]) -> Bytes {
    sealed(&ring(keys, false))
}
