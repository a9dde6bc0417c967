#!/bin/sh
# Installs the Debian packages that building (`build`) or testing (`test`, the default) needs, and only those that
# are missing.
# The Rust toolchain is not among them: Debian's is too old.
set -eu

# What building and running need, and who uses it:
#   gcc              the C parts of the build: SQLite, aws-lc, mimalloc (no cmake, no clang needed)
#   libc6-dev        their headers
#   ca-certificates  cargo's downloads
#   util-linux       flock, in scripts/kubectls.sh; nsenter and setsid, in the tests of the agent
#   iproute2         ip, for the networks of the playground's nodes, and of the machines of the tests
#   dpkg-dev         dpkg-shlibdeps, for the dependencies of the Debian package
BUILD="gcc libc6-dev ca-certificates util-linux iproute2 dpkg-dev"

# What only the tests need:
#   strace           the store's test that no write is acknowledged before its sync
#   diffutils        kubectl diff, in the sessions
#   bind9-dnsutils   dig, a real resolver for the tests of names
#   sqlite3, curl    what the guides use beside kubectl; curl also fetches Helm and other clients
#   python3, nodejs  the official Python and JavaScript clients of Kubernetes
#   containerd       the container runtime that the tests of the agent start on sockets of their own
#   runc             what containerd runs containers with
#   containernetworking-plugins  the networks of its pods
#   busybox-static   what the images of the tests are made of
#   libfaketime      a clock that the tests of the agent can set
#   nftables         what the rules of services are, as others read them
#   iptables         host ports of pods, by the portmap plugin
#   systemd          judges the units of the package, and runs them on machines of the tests
#   procps           pgrep, to see what runs there
#   adduser          what the package depends on, to be installed in the tests
#   groff-base       sets the manual pages
#   g++              libFuzzer, for the fuzz targets
#   etcd-server, etcd-client  the other engine of the store
#   chromium, chromium-driver  the browser that opens the dashboard's page
TEST="strace diffutils bind9-dnsutils sqlite3 curl python3 nodejs containerd runc containernetworking-plugins busybox-static libfaketime
nftables iptables systemd procps adduser groff-base g++ etcd-server etcd-client chromium chromium-driver"

case ${1:-test} in
build) PACKAGES=$BUILD ;;
test) PACKAGES="$BUILD $TEST" ;;
*)
    echo "usage: scripts/packages.sh [build|test]" >&2
    exit 2
    ;;
esac

missing=
for package in $PACKAGES; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "packages: installing$missing" >&2
    sudo=
    if [ "$(id -u)" != 0 ]; then
        sudo=sudo
        command -v sudo >/dev/null || {
            echo "packages: missing, and neither root nor sudo to install them; ask somebody to run" >&2
            echo "packages:   apt-get install$missing" >&2
            exit 1
        }
    fi
    $sudo apt-get -q update >&2
    # shellcheck disable=SC2086 # a list of words on purpose
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $missing >&2
fi

command -v cargo >/dev/null || {
    echo "packages: cargo is missing; Kennel needs Rust 1.95 or later (https://rustup.rs)" >&2
    exit 1
}
