//! Server-side apply as kubectl users meet it: `crates/server/tests/data/apply-walk.json` is a walk of commands and requests.
//! All of them are made in order and compared: a third with what was recorded with a cluster of Kubernetes v1.36, the others
//! with `apply-walk-unrecorded.json`, which says where its answers come from.

use kennel_testkit::{Access, Answer, Kennel, Kubectl, Version};
use serde_json::{Value, json};

/// How many steps there are, and how many of them were recorded with a cluster, so that none can be lost unseen.
const STEPS: usize = 88;
const RECORDED: usize = 28;

const NAMESPACE: &str = "apply-walk";

/// One walk: a kubectl and a connection to the same server.
struct Walk {
    kubectl: Kubectl,
    access: Access,
}

impl Walk {
    /// Makes a step and returns what there is to compare.
    fn step(&self, step: &Value) -> String {
        if let Some(object) = step["managedFields of"].as_str() {
            return self.managed_fields(object);
        }
        if let Some(request) = step["request"].as_str() {
            return self.request(request, step);
        }
        let arguments = step["kubectl"].as_array().expect("a step does something");
        let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
        let input = match &step["stdin"] {
            Value::Null => String::new(),
            manifest => manifest.to_string(),
        };
        let arguments = [&arguments[..], &["-n", NAMESPACE]].concat();
        let Answer { stdout, stderr, .. } = self.kubectl.run_with_input(&arguments, &input);
        let stdout = if arguments[0] == "diff" {
            changed_lines(&stdout)
        } else {
            stdout
        };
        match stderr.as_str() {
            "" => stdout,
            stderr => format!("{stdout}[stderr]\n{stderr}"),
        }
    }

    /// The managers of an object without times.
    fn managed_fields(&self, object: &str) -> String {
        let shown = self.kubectl.run(&[
            "get",
            object,
            "-n",
            NAMESPACE,
            "-o",
            "json",
            "--show-managed-fields",
        ]);
        let object: Value = serde_json::from_str(&shown.ok()).unwrap();
        let mut entries = object["metadata"]["managedFields"].clone();
        for entry in entries.as_array_mut().into_iter().flatten() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.to_string()
    }

    /// A failure as its Status; an object as its kind and its managers.
    fn request(&self, request: &str, step: &Value) -> String {
        let (method, path) = request.split_once(' ').unwrap();
        let content_type = step["contentType"].as_str().unwrap();
        let body = step["body"].as_str().unwrap();
        let mut wire = self.access.open().unwrap();
        let reply = wire
            .ask(method, path, content_type, body.as_bytes())
            .unwrap()
            .json();
        if reply["kind"] != "Status" {
            let entries = reply["metadata"]["managedFields"].as_array().unwrap();
            let name = |entry: &Value| json!([entry["manager"], entry["operation"]]);
            let mut managers: Vec<Value> = entries.iter().map(name).collect();
            managers.sort_by_key(Value::to_string);
            return json!({"kind": reply["kind"], "managers": managers}).to_string();
        }
        let fields = ["code", "details", "kind", "message", "reason"];
        let status: Value = fields
            .map(|name| (name, reply[name].clone()))
            .into_iter()
            .collect();
        status.to_string()
    }
}

/// The lines of a diff that differ: the others have times and the names of temporary files.
fn changed_lines(diff: &str) -> String {
    let is_header = |line: &str| line.starts_with("---") || line.starts_with("+++");
    let lines = diff
        .lines()
        .filter(|line| line.starts_with(['-', '+']) && !is_header(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Recordings have runs of blanks folded; JSON is compared as a value. Managers are ordered by when they wrote, which was not
/// recorded, so they are compared in the order of their text.
fn comparable(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut items)) if items.iter().all(|item| !item["manager"].is_null()) => {
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Ok(value) => value,
        Err(_) => Value::from(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// What a step must print: as recorded, or else as in the file of the others.
fn expected(step: &Value, unrecorded: &Value) -> Value {
    if let Some(recorded) = step["kubectl_prints"].as_str() {
        return comparable(recorded);
    }
    let name = step["step"].as_str().unwrap();
    let known = unrecorded["steps"].get(name);
    match known.unwrap_or_else(|| panic!("nothing is known of {name}")) {
        Value::String(text) => comparable(text),
        value => comparable(&value.to_string()),
    }
}

#[test]
fn every_step_ends_as_it_ends_with_kubernetes() {
    let kennel = Kennel::server(env!("CARGO_BIN_EXE_kennel"));
    let walk = Walk {
        kubectl: Kubectl::new(Version::V1_36, &kennel.kubeconfig()),
        access: Access::admin(kennel.address(), &kennel.data_dir()),
    };
    walk.kubectl.run(&["create", "namespace", NAMESPACE]).ok();
    let steps = include_str!("../../../server/tests/data/apply-walk.json");
    let steps: Vec<Value> = serde_json::from_str(steps).expect("the walk is JSON");
    assert_eq!(steps.len(), STEPS);
    let unrecorded = include_str!("../../../server/tests/data/apply-walk-unrecorded.json");
    let unrecorded: Value = serde_json::from_str(unrecorded).expect("the answers are JSON");
    let recorded = steps
        .iter()
        .filter(|step| !step["kubectl_prints"].is_null());
    assert_eq!(recorded.count(), RECORDED);
    let mut differences = Vec::new();
    for step in &steps {
        let (printed, expected) = (comparable(&walk.step(step)), expected(step, &unrecorded));
        if printed != expected {
            let name = step["step"].as_str().unwrap();
            differences.push(format!("{name}\n- {expected}\n+ {printed}\n"));
        }
    }
    let count = differences.len();
    assert!(count == 0, "{count} differ:\n{}", differences.join("\n"));
}
