//! Every kind there and back, with every field.

use fastrand::Rng;
use kennel_server::protobuf::transcode;
use kennel_server::schema::{self, Type};
use kennel_test_support::with_seeds;
use serde_json::{Value, json};

use super::encoder::{self, Style, message, put_bytes, put_varint};
use super::{random, same, type_named, without_empty, without_zeros};

/// The kinds that clients send bodies of, and others that the table has.
fn kinds() -> impl Iterator<Item = &'static Type> {
    schema::types().iter().copied().filter(|ty| ty.is_kind)
}

fn conformed(ty: &'static Type, tree: &Value) -> Value {
    let (mut tree, mut unknown) = (tree.clone(), Vec::new());
    schema::conform(ty, &mut tree, &mut unknown)
        .unwrap_or_else(|why| panic!("{}: {why} in {tree}", ty.name));
    assert_eq!(unknown, Vec::<String>::new(), "{}", ty.name);
    tree
}

fn decoded(ty: &'static Type, bytes: &[u8]) -> Value {
    let tree = transcode(ty, bytes);
    conformed(ty, &tree.unwrap_or_else(|why| panic!("{}: {why}", ty.name)))
}

#[test]
fn every_field_of_every_kind_arrives() {
    assert!(kinds().count() > 35);
    for ty in kinds() {
        let object = random::full(ty);
        assert_eq!(conformed(ty, &object), object, "{}: not canonical", ty.name);
        for style in [Style::Go, Style::Sparse, Style::Newer] {
            let bytes = message(ty, &object, style);
            same(&decoded(ty, &bytes), &object, ty.name);
        }
    }
}

#[test]
fn any_fields_of_every_kind_arrive() {
    with_seeds([0x6b38_7300], any_fields_arrive);
}

fn any_fields_arrive(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for ty in kinds() {
        for _ in 0..60 {
            let object = random::any(&mut rng, ty);
            let expected = conformed(ty, &object);
            for style in [Style::Sparse, Style::Newer] {
                let found = decoded(ty, &message(ty, &object, style));
                same(&found, &expected, ty.name);
            }
            let found = decoded(ty, &message(ty, &object, Style::Go));
            same(&without_zeros(&found), &without_zeros(&expected), ty.name);
        }
    }
}

#[test]
fn a_message_may_come_in_pieces() {
    with_seeds([1], comes_in_pieces);
}

fn comes_in_pieces(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let ty = type_named("core.v1.Pod");
    for _ in 0..50 {
        let mut halves = [json!({"metadata": {}, "spec": {}}), json!({"spec": {}})];
        let object = random::full(ty);
        for (name, value) in object["spec"].as_object().unwrap() {
            halves[rng.usize(..2)]["spec"][name] = value.clone();
        }
        halves[1]["metadata"] = object["metadata"].clone();
        let mut bytes = message(ty, &halves[0], Style::Sparse);
        bytes.extend(message(ty, &halves[1], Style::Sparse));
        let found = decoded(ty, &bytes);
        assert_eq!(found["spec"], object["spec"]);
        assert_eq!(found["metadata"], object["metadata"]);
    }
}

/// What a scalar message of the given bytes is decoded to, as a condition's time.
fn time(bytes: &[u8]) -> Result<Value, String> {
    let ty = type_named("core.v1.PodCondition");
    let mut condition = Vec::new();
    put_bytes(&mut condition, 4, bytes);
    let mut tree = transcode(ty, &condition).map_err(|error| error.to_string())?;
    schema::conform(ty, &mut tree, &mut Vec::new()).map_err(|error| error.to_string())?;
    Ok(tree["lastTransitionTime"].take())
}

fn seconds_and_nanos(seconds: i64, nanos: i64) -> Vec<u8> {
    let mut out = vec![8];
    put_varint(&mut out, seconds.cast_unsigned());
    out.push(16);
    put_varint(&mut out, nanos.cast_unsigned());
    out
}

#[test]
fn zero_times_are_no_times() {
    assert_eq!(time(b""), Ok(Value::Null));
    assert_eq!(time(&seconds_and_nanos(0, 0)), Ok(Value::Null));
    // Go's own zero, year one, is none either.
    assert_eq!(
        time(&seconds_and_nanos(-62_135_596_800, 0)),
        Ok(Value::Null)
    );
    assert_eq!(
        time(&seconds_and_nanos(1, 0)),
        Ok(json!("1970-01-01T00:00:01Z"))
    );
    assert_eq!(
        time(&seconds_and_nanos(0, 999_999_999)),
        Ok(json!("1970-01-01T00:00:00Z"))
    );
    assert_eq!(
        time(&seconds_and_nanos(-1, 0)),
        Ok(json!("1969-12-31T23:59:59Z"))
    );
    for seconds in [253_402_300_800, -62_167_219_201, i64::MAX, i64::MIN] {
        time(&seconds_and_nanos(seconds, 0)).unwrap_err();
    }
}

#[test]
fn zero_is_absent_unless_go_could_tell_them_apart() {
    let check = |ty: &str, tree: Value, expected: Value| {
        let ty = type_named(ty);
        let bytes = encoder::message(ty, &tree, Style::Go);
        assert_eq!(without_empty(&decoded(ty, &bytes)), expected);
    };
    check(
        "apps.v1.DaemonSetSpec",
        json!({"selector": {"matchLabels": {"a": ""}}, "revisionHistoryLimit": 0, "minReadySeconds": 0}),
        json!({"selector": {"matchLabels": {"a": ""}}, "revisionHistoryLimit": 0}),
    );
    check(
        "core.v1.Toleration",
        json!({"key": "", "operator": "Exists", "tolerationSeconds": 0}),
        json!({"operator": "Exists", "tolerationSeconds": 0}),
    );
    check(
        "core.v1.PersistentVolumeClaimSpec",
        json!({"storageClassName": ""}),
        json!({"storageClassName": ""}),
    );
    check(
        "core.v1.ServicePort",
        json!({}),
        json!({"port": 0, "targetPort": 0}),
    );
    check("core.v1.EnvVar", json!({}), json!({"name": ""}));
}
