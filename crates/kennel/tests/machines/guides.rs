//! The pages that people follow are followed here: every block of the kind `console` in the guides and the README
//! is run, and must show what it says. `crates/testkit/src/session` says how blocks are read. (Pages in Chinese have the
//! same blocks; `documents/links.rs` sees to that.)
//!
//! A page names its environment in its first lines:
//!
//! - `<!-- tested: kennel up --simulate 3 -->`: such a control plane runs, and `KUBECONFIG` leads to it.
//! - `<!-- tested: machines server web-1 -->`: machines of these names, as root, with nothing but `kennel` and
//!   `kubectl`. The page's terminal is on the first; `ssh web-1 …` leads to another.
//!
//! In both, `examples` and `deploy` are there, and a block such as `yaml web.yaml` is a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kennel_testkit::machine::{self, Containerd, Image, Lan};
use kennel_testkit::session::{Terminal, page};
use kennel_testkit::{Kennel, Version};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");

/// `kennel` as it is, but for this: machines that build have full disks, which is not what guides are about.
const PROGRAM: &str = r#"case " $* " in
*eviction-hard*|*" --help "*) exec "$KENNEL" "$@" ;;
" agent "*|" up "*) exec "$KENNEL" "$@" --eviction-hard='memory.available<1Mi' ;;
*) exec "$KENNEL" "$@" ;;
esac"#;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn terminal() -> Terminal {
    let mut terminal = Terminal::new(Version::V1_32);
    terminal.set("KENNEL", KENNEL);
    terminal.program("kennel", PROGRAM);
    terminal.program("sudo", "exec \"$@\"");
    for name in ["examples", "deploy"] {
        let target = root().join(name);
        if target.exists() {
            terminal.link(name, &target.canonicalize().unwrap());
        }
    }
    terminal
}

/// Runs all blocks of a page.
fn check(path: &str) {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    play(path, &text, |_| Vec::new());
}

/// The same with this text. `containerds` starts those of its machines.
fn play(path: &str, text: &str, containerds: impl FnOnce(&Lan) -> Vec<Containerd>) {
    let page = page::read(text);
    let environment = page.environment.unwrap_or_default();
    let mut terminal = terminal();
    let words: Vec<&str> = environment.split_whitespace().collect();
    match words[..] {
        ["kennel", ref arguments @ ..] => {
            let kennel = Kennel::start(KENNEL, arguments);
            terminal.set("KUBECONFIG", kennel.kubeconfig());
            terminal.set("KENNEL_DATA_DIR", kennel.data_dir());
            terminal.play(Path::new(path), &page.session);
        }
        ["machines", ref names @ ..] if !names.is_empty() => {
            if !machine::possible() {
                return;
            }
            let lan = Lan::new(names);
            let _containerds = containerds(&lan);
            terminal.go(lan.way(0));
            // Machines have networks of their own, so agents may do what they do for root by default.
            terminal.set("KENNEL_PROXY", "nftables");
            terminal.program("ssh", &lan.ssh());
            terminal.play(Path::new(path), &page.session);
        }
        _ => panic!(
            "{path} does not declare its test environment: <!-- tested: … --> {environment:?}"
        ),
    }
}

/// A test per page, and the list of all of them.
macro_rules! pages {
    ($($name:ident: $path:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            check($path);
        })*

        const PATHS: &[&str] = &[$($path),*];
    };
}

pages!(
    back_up_and_restore: "docs/guides/back-up-and-restore.md",
    certificates: "docs/guides/certificates.md",
    clean_up: "docs/guides/clean-up.md",
    daemonsets: "docs/guides/daemonsets.md",
    debug: "docs/guides/debug.md",
    encryption_at_rest: "docs/guides/encryption-at-rest.md",
    existing_cluster: "docs/guides/existing-cluster.md",
    find_out_why: "docs/guides/find-out-why.md",
    join: "docs/guides/join.md",
    limit_a_namespace: "docs/guides/limit-a-namespace.md",
    dns: "docs/guides/dns.md",
    reach_a_daemon: "docs/guides/reach-a-daemon.md",
    readme: "README.md",
    roll_back: "docs/guides/roll-back.md",
    static_pods: "docs/guides/static-pods.md",
    three_machines: "docs/guides/three-machines.md",
    tolerate_a_taint: "docs/guides/tolerate-a-taint.md",
    update_safely: "docs/guides/update-safely.md",
    wait_for_daemons: "docs/guides/wait-for-daemons.md",
);

/// The page about three machines says itself what is different with containerd.
#[test]
fn three_machines_with_containerd() {
    const WITHOUT: &str = "# leave this out with containerd";
    let path = "docs/guides/three-machines.md";
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let lines = text.lines();
    let changed: Vec<&str> = lines
        .map(|line| if line.contains(WITHOUT) { "" } else { line })
        .collect();
    let image = Image::new("docker.io/library/busybox:1.37");
    play(path, &changed.join("\n"), |lan| lan.containerds(&[image]));
}

/// All pages with blocks that are to be run.
fn with_blocks() -> BTreeSet<String> {
    let guides = std::fs::read_dir(root().join("docs/guides")).unwrap();
    let guides = guides.map(|entry| entry.unwrap().path());
    let english = |path: &PathBuf| !path.to_string_lossy().ends_with(".zh.md");
    let pages = guides.filter(english).chain([root().join("README.md")]);
    let pages: Vec<PathBuf> = pages.collect();
    let runs = |path: &&PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        page::read(&text).blocks > 0
    };
    let name = |path: &PathBuf| {
        let path = path.strip_prefix(root()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    pages.iter().filter(runs).map(name).collect()
}

#[test]
fn pages_that_are_listed_have_blocks() {
    let found = with_blocks();
    let listed = PATHS.iter().map(ToString::to_string);
    let empty: Vec<String> = listed.filter(|path| !found.contains(path)).collect();
    assert!(empty.is_empty(), "nothing is run of {empty:?}");
}

/// A page that nobody has listed is run all the same, only not beside the others.
#[test]
fn pages_that_are_not_listed() {
    let listed = |path: &String| PATHS.contains(&path.as_str());
    for path in with_blocks().iter().filter(|path| !listed(path)) {
        check(path);
    }
}
