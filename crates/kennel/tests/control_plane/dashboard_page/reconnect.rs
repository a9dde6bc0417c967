//! The page says when it is not up to date, and connects again by itself.

use super::fixture::{Page, picture, wait_for_count};
use crate::why::fixture::{Fixture as Cluster, KENNEL};

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
    });
    browser.until_text(".light", "live");
    // And it follows what happens then.
    let selector = r#"{"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "sim-1"}}}}}"#;
    kubectl.run(&["patch", "ds", "agent", "-p", selector]).ok();
    wait_for_count(&browser, "not eligible", 3);
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
    // Another one on the same port does not know this session.
    let kubeconfig = rollout.cluster.kennel.kubeconfig();
    let mut command = std::process::Command::new(KENNEL);
    command.args(["dashboard", "--no-open", "--listen", &host, "--kubeconfig"]);
    let again = kennel_testkit::Dashboard::of(command.arg(kubeconfig));
    browser.until_text(".light", "signed out");
    browser.until_text(".banner", "Open the address that kennel dashboard printed");
    // Its own address leads to the same page.
    browser.open(again.address());
    browser.until_text(".light", "live");
}
