//! The strategy of `NetworkPolicy`. Policies are stored for the network daemon that enforces them.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::check::{each, one_of, port_or_name};
use super::meta::{first_generation, next_generation};
use super::{Strategy, selector};
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::tree::{at, default_to, has, int, list, list_mut, set, text, texts};

const TYPES: [&str; 2] = ["Ingress", "Egress"];
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
/// The answer to every write: nobody should believe that a policy protects before a daemon enforces it.
const WARNING: &str =
    "Kennel stores network policies and does not enforce them: run a network daemon that does";

/// The rules of both directions: the field of the rules, and that of their peers.
const RULES: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

#[derive(Debug)]
pub struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn default(&self, object: &mut Value) {
        if list(object, "spec.policyTypes").is_empty() {
            let mut types = vec![json!(TYPES[0])];
            if !list(object, "spec.egress").is_empty() {
                types.push(json!(TYPES[1]));
            }
            set(object, "spec.policyTypes", types.into());
        }
        for (rules, _) in RULES {
            for rule in list_mut(&mut object["spec"], rules) {
                for port in list_mut(rule, "ports") {
                    default_to(port, "protocol", PROTOCOLS[0]);
                }
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        next_generation(new, old, &["spec"]);
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        let (spec, path) = (at(object, "spec"), Path::new("spec"));
        let pods = at(spec, "podSelector");
        selector::collect(&mut errors, pods, &path.child("podSelector"), false);
        for (rules, peers) in RULES {
            for (rule, path) in each(spec, &path, rules) {
                for (port, path) in each(rule, &path, "ports") {
                    check_port(&mut errors, port, &path);
                }
                for (peer, path) in each(rule, &path, peers) {
                    check_peer(&mut errors, peer, &path);
                }
            }
        }
        let at_types = path.child("policyTypes");
        if list(spec, "policyTypes").len() > TYPES.len() {
            let words = "may not specify more than two policyTypes";
            errors.invalid(&at_types, at(spec, "policyTypes"), words);
            return errors;
        }
        for (i, kind) in texts(spec, "policyTypes").enumerate() {
            one_of(&mut errors, &at_types.index(i), kind, &TYPES);
        }
        errors
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Errors {
        self.validate_create(new)
    }

    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        vec![WARNING.to_owned()]
    }
}

fn check_port(errors: &mut Errors, port: &Value, path: &Path) {
    let protocol = text(port, "protocol");
    one_of(errors, &path.child("protocol"), protocol, &PROTOCOLS);
    let number = at(port, "port");
    if !number.is_null() {
        port_or_name(errors, &path.child("port"), number);
    }
    let Some(end) = int(port, "endPort") else {
        return;
    };
    let at_end = path.child("endPort");
    match number {
        Value::Number(start) => {
            if start.as_i64().is_some_and(|start| end < start) {
                errors.invalid(&at_end, end, "must be greater than or equal to `port`");
            }
            errors.invalid_each(&at_end, end, names::is_valid_port_num(end));
        }
        Value::Null => {
            errors.invalid(
                &at_end,
                end,
                "may not be specified when `port` is not specified",
            );
        }
        _ => errors.invalid(
            &at_end,
            end,
            "may not be specified when `port` is non-numeric",
        ),
    }
}

fn check_peer(errors: &mut Errors, peer: &Value, path: &Path) {
    let selectors = ["podSelector", "namespaceSelector"];
    for field in selectors {
        selector::collect(errors, at(peer, field), &path.child(field), false);
    }
    let selects = selectors.iter().any(|field| has(peer, field));
    let block = at(peer, "ipBlock");
    if !block.is_null() {
        check_block(errors, block, &path.child("ipBlock"));
    }
    match (selects, block.is_null()) {
        (false, true) => errors.required(path, "must specify a peer"),
        (true, false) => {
            errors.forbidden(path, "may not specify both ipBlock and another peer");
        }
        _ => {}
    }
}

fn check_block(errors: &mut Errors, block: &Value, path: &Path) {
    let at_cidr = path.child("cidr");
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        return errors.required(&at_cidr, "");
    }
    let Some(whole) = names::parse_cidr(cidr) else {
        return errors.invalid_each(&at_cidr, cidr, names::cidr(cidr));
    };
    for (i, except) in texts(block, "except").enumerate() {
        let at_except = path.child("except").index(i);
        match names::parse_cidr(except) {
            None => errors.invalid_each(&at_except, except, names::cidr(except)),
            Some(part) if !contains(whole, part) => {
                let words = format!("must be a strict subset of `cidr` \"{cidr}\"");
                errors.invalid(&at_except, except, &words);
            }
            Some(_) => {}
        }
    }
}

/// Whether `part` is within `whole`, and smaller.
fn contains(whole: (IpAddr, u8), part: (IpAddr, u8)) -> bool {
    let shift = |width: u8| u32::from(width.saturating_sub(whole.1));
    let same_prefix = match (whole.0, part.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (u64::from(a.to_bits()) >> shift(32)) == (u64::from(b.to_bits()) >> shift(32))
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let prefix = |bits: u128| bits.checked_shr(shift(128)).unwrap_or(0);
            prefix(a.to_bits()) == prefix(b.to_bits())
        }
        _ => false,
    };
    same_prefix && part.1 > whole.1
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_create, created};
    use super::*;

    fn policy(spec: Value) -> Value {
        let mut object = json!({"metadata": {"name": "p", "namespace": "d"}});
        object["spec"] = spec;
        object
    }

    #[test]
    fn types_and_protocols_have_defaults() {
        let made = created(
            &NetworkPolicy,
            &policy(json!({"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]})),
        );
        assert_eq!(made["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(made["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
        let made = created(&NetworkPolicy, &policy(json!({"podSelector": {}})));
        assert_eq!(made["spec"]["policyTypes"], json!(["Ingress"]));
    }

    #[test]
    fn peers_and_ports_are_checked() {
        let check = |rule: Value, expected: &[&str]| {
            let spec = json!({"podSelector": {}, "ingress": [rule]});
            check_create(&NetworkPolicy, &policy(spec), expected);
        };
        check(
            json!({"from": [{"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                "ports": [{"port": "web"}, {"port": 80, "endPort": 90}]}),
            &[],
        );
        check(
            json!({"from": [{}, {"podSelector": {}, "ipBlock": {"cidr": "x"}}]}),
            &[
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                "spec.ingress[0].from[1].ipBlock.cidr: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
            ],
        );
        check(
            json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "10.0.0.0/8"]}}]}),
            &[
                "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr` \"10.0.0.0/8\"",
                "spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr` \"10.0.0.0/8\"",
            ],
        );
        check(
            json!({"ports": [{"port": 80, "endPort": 70}, {"endPort": 7}, {"protocol": "ICMP"}]}),
            &[
                "spec.ingress[0].ports[0].endPort: Invalid value: 70: must be greater than or equal to `port`",
                "spec.ingress[0].ports[1].endPort: Invalid value: 7: may not be specified when `port` is not specified",
                "spec.ingress[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: \"TCP\", \"UDP\", \"SCTP\"",
            ],
        );
    }
}
