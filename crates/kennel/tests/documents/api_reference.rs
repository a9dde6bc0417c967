//! `docs/reference/api.md` lists what the server serves. It is written from the server's own table of
//! resources, and this test holds the two together. `KENNEL_WRITE_DOCS=1` writes the page anew.

use std::fmt::Write;
use std::path::Path;

use kennel_server::registry::{
    CREATE_ONLY, EMPTY, MEASURED, RESOURCES, Resource, Scope, Subresource, UNSERVED,
};
use kennel_types::Verb;

const HEAD: &str = "\
# The API: resources and verbs

Kubernetes v1.36. This page is written from the server's table of resources; a test holds it to it.

*All* verbs are create, delete, deletecollection, get, list, patch, update and watch. Any other verb on
these resources is refused with 405. ServiceCIDR and IPAddress are computed from the server's `--service-cidr` and from the
cluster IPs of services, so they cannot be written. `policy/v1beta1` is another view of the same objects for old clients: its
empty selector selects no pods, that of `policy/v1` all.

| group/version | resource | short | kind | scope | verbs | subresources |
|---|---|---|---|---|---|---|
";

const POSTED_HEAD: &str = "
## Only posted to

Questions and orders: they are answered or carried out, and not kept.

| group/version | resource | kind | scope |
|---|---|---|---|
";

const MEASURED_HEAD: &str = "
## Measured

The API of metrics-server, for `kubectl top`: get and list. The figures come from the agents of the nodes that a request
is about; see [Resource usage](logs-exec-port-forward.md#resource-usage).

| group/version | resource | kind | scope |
|---|---|---|---|
";

const EMPTY_HEAD: &str = "
## Served empty

Upstream's components insist on listing these. They are always empty, are not advertised in discovery,
and refuse writes. `kubectl apply --prune` wants them advertised (`no matches for kind`) unless it is told
what to prune: `--prune-allowlist=core/v1/ConfigMap`, once per kind, or an ApplySet.

| group/version | resource | kind | scope |
|---|---|---|---|
";

const UNSERVED_HEAD: &str = "
## Not served

kubectl and Helm ask which kinds there are before they send an object. Of one that is not served they say
`no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"`, and Helm installs nothing of the chart. Most charts
have a value that leaves such objects out. What is sent nevertheless is answered with 404 or 405 and the words of this table,
and for kinds that it does not have, with this page's name.

| resources | instead |
|---|---|
";

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Namespaced => "namespace",
        Scope::Cluster => "cluster",
    }
}

fn verbs(resource: &Resource) -> String {
    const ALL: [&str; 8] = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    let missing: Vec<&str> = ALL
        .into_iter()
        .filter(|verb| resource.verbs.iter().all(|served| served.as_str() != *verb))
        .collect();
    if missing.is_empty() {
        "all".to_owned()
    } else if missing.contains(&"create") {
        let verbs: Vec<&str> = resource.verbs.iter().map(Verb::as_str).collect();
        verbs.join(", ")
    } else {
        format!("all but {}", missing.join(", "))
    }
}

fn subresources(resource: &Resource) -> String {
    let each = resource.subresources.iter();
    let verbs = |sub: &Subresource| {
        let verbs: Vec<&str> = sub.verbs.iter().map(Verb::as_str).collect();
        verbs.join(", ")
    };
    each.map(|sub| format!("{} ({})", sub.name, verbs(sub)))
        .collect::<Vec<_>>()
        .join("; ")
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn put_small(page: &mut String, group: &str, plural: &str, kind: &str, of: Scope) {
    let scope = scope(of);
    writeln!(page, "| {group} | {plural} | {kind} | {scope} |")
        .expect("a string takes what is written");
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for row in RESOURCES {
        let group = group_version(row.group, row.version);
        let (short, scope) = (row.short_names.join(", "), scope(row.scope));
        let (verbs, subresources) = (verbs(row), subresources(row));
        let (plural, kind) = (row.plural, row.kind);
        writeln!(
            page,
            "| {group} | {plural} | {short} | {kind} | {scope} | {verbs} | {subresources} |"
        )
        .expect("a string takes what is written");
    }
    page.push_str(POSTED_HEAD);
    for row in CREATE_ONLY {
        let group = group_version(row.group, row.version);
        put_small(&mut page, &group, row.plural, row.kind, row.scope);
    }
    page.push_str(MEASURED_HEAD);
    for row in MEASURED {
        let group = group_version(row.group, row.version);
        put_small(&mut page, &group, row.plural, row.kind, row.scope);
    }
    page.push_str(EMPTY_HEAD);
    for row in EMPTY {
        let group = group_version(row.group, row.version);
        put_small(&mut page, &group, row.plural, row.kind, row.scope);
    }
    page.push_str(UNSERVED_HEAD);
    for row in UNSERVED {
        let (plurals, instead) = (row.plurals.join(", "), row.instead);
        writeln!(page, "| {plurals} | {instead} |").expect("a string takes what is written");
    }
    page
}

#[test]
fn the_page_lists_what_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/api.md");
    let page = page();
    if std::env::var_os("KENNEL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == page,
        "docs/reference/api.md is out of date; it should read:\n{page}"
    );
}
