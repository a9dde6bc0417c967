#!/bin/sh
# Installs the Debian packages that building and testing need, and only those that are missing.
# The Rust toolchain is not among them: Debian's is too old.
set -eu

# What is used, and by whom:
#   gcc              the C parts of the build: SQLite, aws-lc, mimalloc (no cmake, no clang needed)
#   libc6-dev        their headers
#   ca-certificates  cargo's downloads
#   strace           the store's test that no write is acknowledged before its sync
#   util-linux       flock, in scripts/kubectls.sh; nsenter and setsid, in the tests of the agent
#   diffutils        kubectl diff, in the sessions
#   bind9-dnsutils   dig, a real resolver for the tests of names
#   sqlite3, curl    what the guides use beside kubectl
#   containerd       the container runtime that the tests of the agent start on sockets of their own
#   runc             what containerd runs containers with
#   containernetworking-plugins  the networks of its pods
#   busybox-static   what the images of the tests are made of
#   iproute2         ip, for network namespaces: a machine each, to the tests
#   libfaketime      a clock that the tests of the agent can set
#   iptables         host ports of pods, by the portmap plugin
PACKAGES="gcc libc6-dev ca-certificates strace util-linux diffutils bind9-dnsutils sqlite3 curl
containerd runc containernetworking-plugins busybox-static iproute2 iptables libfaketime"

missing=
for package in $PACKAGES; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "packages: installing$missing" >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get -q update >&2
    # shellcheck disable=SC2086 # a list of words on purpose
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing >&2
fi

command -v cargo >/dev/null || {
    echo "packages: cargo is missing; Kennel needs Rust 1.95 or later (https://rustup.rs)" >&2
    exit 1
}
