//! A page of another origin, in a browser that has the dashboard's cookie, reads and changes nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use super::fixture::Page;

/// A site that serves one empty page until the test ends.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let body = "<!doctype html><title>other</title><body>other</body>";
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
            if socket.read(&mut request).is_ok() {
                drop(socket.write_all(answer.as_bytes()));
            }
        }
    });
    format!("http://{address}/")
}

/// Tries everything that a script can try; returns what it got to see. The ports differ, so that cookies are sent all the same:
/// both are of one site.
const ATTACK: &str = "const target = arguments[0];
    const path = `${target}/api/daemonsets/default/agent/rollout`;
    const body = JSON.stringify({verb: 'promote'});
    const seen = [];
    const attempt = async (name, act) => {
        try { seen.push(`${name}: ${await act()}`); } catch { seen.push(`${name}: refused`); }
    };
    const send = (options) => fetch(path, {method: 'POST', credentials: 'include', body, ...options});
    await attempt('read', async () => (await fetch(`${target}/api/session`, {credentials: 'include'})).text());
    await attempt('cors', async () => (await send({headers: {'Content-Type': 'application/json'}})).text());
    await attempt('simple', async () => (await send({mode: 'no-cors'})).type);
    await attempt('plain', async () => (await send({mode: 'no-cors', headers: {'Content-Type': 'text/plain'}})).type);
    await attempt('stream', () => new Promise((resolve, reject) => {
        const source = new EventSource(`${target}/api/overview`, {withCredentials: true});
        source.onerror = reject;
        source.addEventListener('overview', (event) => resolve(event.data));
    }));
    await attempt('script', () => new Promise((resolve, reject) => {
        const script = document.createElement('script');
        script.src = `${target}/api/session`;
        script.onload = () => resolve('loaded');
        script.onerror = reject;
        document.body.append(script);
    }));
    const frame = document.createElement('iframe');
    frame.src = target;
    document.body.append(frame);
    const form = document.createElement('form');
    Object.assign(form, {method: 'post', action: path, enctype: 'text/plain', target: 'sink'});
    const field = document.createElement('input');
    Object.assign(field, {name: '{\"verb\":\"promote\",\"reason\":\"', value: '\"}'});
    form.append(field);
    const sink = document.createElement('iframe');
    sink.name = 'sink';
    const sent = new Promise((resolve) => { sink.onload = resolve; });
    document.body.append(sink, form);
    form.submit();
    await sent;
    return seen;";

#[test]
fn another_origin_reads_and_changes_nothing() {
    let Some(page) = Page::open(3, &[("stages", "1 manual, 100%")], &["--allow-changes"]) else {
        return;
    };
    let browser = &page.browser;
    page.rollout.apply("2");
    page.show_agent();
    browser.until_text(".title", "waits for promotion");
    let dashboard = format!("http://{}", page.dashboard.host());

    browser.open(&site());
    let seen = browser.run(ATTACK, &[json!(dashboard)]);
    let expected = json!([
        "read: refused",
        "cors: refused",
        "simple: refused",
        "plain: refused",
        "stream: refused",
        "script: refused",
    ]);
    assert_eq!(seen, expected);
    // The cookie still works for whoever opens the page itself, and nothing was promoted.
    browser.open(&format!("{dashboard}/#/ds/default/agent"));
    browser.until_text(".title", "waits for promotion");
    let set = page.rollout.cluster.kubectl.get(&["ds", "agent"]).unwrap();
    let annotations = &set["metadata"]["annotations"];
    assert!(
        annotations["rollout.kennel.dev/promote"].is_null(),
        "{annotations}"
    );
    assert_eq!(page.rollout.nodes_with("2").len(), 1);
}
