//! What a server leaves behind: files with the right permissions, and a log that can be searched.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::server_faults::fixture::{CONFIGMAPS, configmap, server};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn secrets_are_for_their_owner_alone() {
    let server = server();
    let data = server.kennel.data_dir();
    for dir in [data.clone(), data.join("pki")] {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
    }
    let mut private = vec![data.join("admin.kubeconfig"), data.join("kennel.db")];
    for key in ["ca", "server", "admin", "service-account"] {
        private.push(data.join(format!("pki/{key}.key")));
    }
    for extra in ["kennel.db-wal", "kennel.db-shm"] {
        private.extend(Some(data.join(extra)).filter(|path| path.exists()));
    }
    for file in private {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn every_request_has_one_line_in_the_log() {
    let server = server();
    let ask = |method: &str, path: &str, body: &[u8]| server.admin.ask(method, path, body).code;
    assert_eq!(ask("POST", CONFIGMAPS, &configmap("seen", "x")), 201);
    assert_eq!(ask("GET", "/api/v1/nodes/absent?pretty=true", b""), 404);
    assert_eq!(ask("POST", CONFIGMAPS, &vec![b' '; 4 << 20]), 413);
    assert_eq!(ask("GET", "/api/v1/nodes/a%0Ab", b""), 404);
    assert_eq!(server.stranger().ask("GET", "/api", b"").code, 401);
    let log = server.kennel.log();
    let line = |words: &str| {
        let found: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
        assert_eq!(found.len(), 1, "{words}: {found:?}");
        found[0].to_owned()
    };
    let tail = "user=kennel-admin agent=wire/1";
    for words in [
        format!("POST {CONFIGMAPS} 201 "),
        "GET /api/v1/nodes/absent?pretty=true 404 ".to_owned(),
        format!("POST {CONFIGMAPS} 413 "),
        "GET /api/v1/nodes/a%0Ab 404 ".to_owned(),
    ] {
        let line = line(&words);
        assert!(line.ends_with(tail), "{line}");
        let took = line
            .split(&words)
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let number = took.strip_suffix("ms").unwrap_or_default();
        assert!(number.parse::<f64>().is_ok(), "{line}");
    }
    let stranger = line("GET /api 401 ");
    assert!(stranger.contains("user=system:anonymous"), "{stranger}");
}
