//! The log of a daemon on a real node.

use kennel_browser::Options;
use kennel_testkit::{Agent, AgentPlan, Dashboard, Deadline, Kennel, Kubectl, Version, eventually};
use serde_json::json;

use super::fixture::{picture, start};
use crate::why::fixture::KENNEL;

#[test]
fn a_log_is_followed() {
    let Some(browser) = start(&Options::default()) else {
        return;
    };
    let kennel = Kennel::start(KENNEL, &["up", "--nodes", "0"]);
    let plan = AgentPlan {
        binary: KENNEL.into(),
        node: "real".to_owned(),
        arguments: vec![
            "--runtime=process".to_owned(),
            // Avoids disk pressure on a machine with a full disk.
            "--eviction-hard=memory.available<1Mi".to_owned(),
            format!("--kubeconfig={}", kennel.kubeconfig().display()),
        ],
    };
    let _agent = Agent::start(plan, None);
    let kubectl = Kubectl::new(Version::V1_32, &kennel.kubeconfig());
    let mut set = crate::why::fixture::daemon_set(json!({}), json!({}));
    let command = "i=0; while :; do i=$((i+1)); echo \"line $i <b>bold</b>\"; sleep 1; done";
    set["spec"]["template"]["spec"] = json!({
        "hostNetwork": true, "hostPID": true, "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "kennel/none", "command": ["/bin/sh", "-c", command]}]});
    kubectl
        .run_with_input(&["apply", "-f", "-"], &set.to_string())
        .ok();
    eventually(Deadline::seconds(90), || {
        // The agent has no serving certificate before somebody approves it.
        for request in kubectl.run(&["get", "csr", "-o", "name"]).ok().lines() {
            let name = request.rsplit('/').next().unwrap();
            kubectl.run(&["certificate", "approve", name]).ok();
        }
        let log = kubectl.run(&["logs", "ds/agent"]);
        log.stdout
            .contains("line 2")
            .then_some(())
            .ok_or(log.stderr)
    });
    let dashboard = Dashboard::start(KENNEL, &kennel.kubeconfig(), &[]);
    browser.open(dashboard.address());
    browser.until_text(".rows", "agent");
    browser.run("location.hash = '#/ds/default/agent?node=real';", &[]);
    browser.press_button("Log");
    browser.until_text(".log", "line 1 <b>bold</b>");
    let lines = "return document.querySelectorAll('.log-line').length;";
    let before = browser.run(lines, &[]).as_u64().unwrap();
    let grown = "return document.querySelectorAll('.log-line').length > arguments[0];";
    browser.until("a line that follows", grown, &[json!(before)]);
    browser.until_text(".log", "Following.");
    picture(&browser, "log");
    browser.press_button("Close the log");
    browser.until(
        "no log",
        "return document.querySelector('.log').hidden;",
        &[],
    );
}
