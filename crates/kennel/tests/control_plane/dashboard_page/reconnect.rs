//! The page says when it is not up to date, and connects again by itself.

use kennel_browser::Browser;
use serde_json::json;

use super::accessibility::barriers;
use super::fixture::{Page, picture, wait_for_count};
use crate::why::fixture::{Fixture as Cluster, KENNEL};

fn check_barriers(browser: &Browser, what: &str) {
    let found = barriers(browser);
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn a_server_that_comes_back_is_followed_again() {
    let Some(page) = Page::open(4, &[("stages", "100%")], &[]) else {
        return;
    };
    page.show_agent();
    page.wait_for_count("new", 4);
    page.browser.until_text(".light", "live");
    let Page {
        rollout,
        browser,
        dashboard: _dashboard,
    } = page;
    let Cluster {
        kennel, kubectl, ..
    } = rollout.cluster;
    let _kennel = kennel.crash_and_come_back_after(|| {
        browser.until_text(".light", "not up to date");
        browser.until_text(".banner", "The cluster's API does not answer");
        let stale = "return document.querySelector('main').hasAttribute('data-stale');";
        assert_eq!(browser.run(stale, &[]), true);
        picture(&browser, "not_up_to_date");
        browser.press_button("History");
        let failed = "return document.querySelector('.history .failure') !== null;";
        browser.until("the history cannot be read", failed, &[]);
    });
    browser.until_text(".light", "live");
    // What could not be read is read now.
    browser.until_text(".revision-list", "#1");
    // And it follows what happens then.
    let selector = r#"{"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "sim-1"}}}}}"#;
    kubectl.run(&["patch", "ds", "agent", "-p", selector]).ok();
    wait_for_count(&browser, "not eligible", 3);
}

#[test]
fn a_node_stays_in_view_and_under_the_focus_while_the_server_is_away() {
    let Some(page) = Page::open(2, &[("stages", "100%")], &[]) else {
        return;
    };
    page.go("#/node/sim-1");
    page.browser.until_text(".node-view tbody", "agent");
    // Somebody is about to follow the link to the DaemonSet.
    let focus = "document.querySelector('.node-view tbody a').focus();";
    page.browser.run(focus, &[]);
    let focused = "return document.activeElement.getAttribute('href');";
    assert_eq!(page.browser.run(focused, &[]), "#/ds/default/agent");
    let Page {
        rollout,
        browser,
        dashboard: _dashboard,
    } = page;
    let Cluster {
        kennel, kubectl, ..
    } = rollout.cluster;
    let _kennel = kennel.crash_and_come_back_after(|| {
        browser.until_text(".light", "not up to date");
        browser.until_text(".banner", "The cluster's API does not answer");
        assert!(browser.text(".node-view tbody").contains("agent"));
    });
    browser.until_text(".light", "live");
    // What changes then is shown, and does not take the focus away.
    kubectl
        .run(&["taint", "node", "sim-1", "dedicated=db:NoSchedule"])
        .ok();
    browser.until_text(".node-view", "dedicated=db:NoSchedule");
    assert_eq!(browser.run(focused, &[]), "#/ds/default/agent");

    // A node that is gone is no longer shown, and shown again once it is back.
    kubectl.run(&["delete", "node", "sim-1"]).ok();
    browser.until_text(".node-view .failure", "\"sim-1\" not found");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "sim-1"}});
    // Its agent may have been faster.
    let _created = kubectl.run_with_input(&["create", "-f", "-"], &node.to_string());
    browser.until_text(".node-view", "Conditions");
}

#[test]
fn a_dashboard_that_has_ended_is_named() {
    let Some(page) = Page::open(3, &[("stages", "100%")], &[]) else {
        return;
    };
    page.show_agent();
    page.wait_for_count("new", 3);
    let Page {
        rollout,
        dashboard,
        browser,
    } = page;
    let host = dashboard.host().to_owned();
    drop(dashboard);
    browser.until_text(".light", "offline");
    browser.until_text(".banner", "kennel dashboard does not answer");
    check_barriers(&browser, "a dashboard that has ended");
    // Another one on the same port does not know this session.
    let kubeconfig = rollout.cluster.kennel.kubeconfig();
    let mut command = std::process::Command::new(KENNEL);
    command.args(["dashboard", "--no-open", "--listen", &host, "--kubeconfig"]);
    let again = kennel_testkit::Dashboard::of(command.arg(kubeconfig));
    browser.until_text(".light", "signed out");
    browser.until_text(".banner", "Open the address that kennel dashboard printed");
    check_barriers(&browser, "signed out");
    // Its own address leads to the same page.
    browser.open(again.address());
    browser.until_text(".light", "live");
}
