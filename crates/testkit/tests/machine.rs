//! The machines that tests of the agent stand on: they start, they hold what was asked for, and nothing of
//! them is left.

use kennel_testkit::machine::{Containerd, Image, possible};

#[test]
fn a_containerd_runs_an_image_made_here_and_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    let containerd = Containerd::start();
    let image = Image::new("kennel.test/hello:1")
        .file("/greeting", "hello\n")
        .entrypoint(&["/bin/cat", "/greeting"]);
    containerd.import(&image);
    let root = containerd.directory().join("runc");
    let output = containerd
        .ctr()
        .args(["run", "--rm", "--runc-root"])
        .arg(root)
        .args([image.name(), "hello"])
        .output()
        .expect("ctr runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");

    let (directory, network) = (
        containerd.directory().to_owned(),
        containerd.network().name().to_owned(),
    );
    drop(containerd);
    assert!(!directory.exists(), "its files are gone");
    let namespace = std::path::Path::new("/run/netns").join(network);
    assert!(!namespace.exists(), "its network is gone");
}
