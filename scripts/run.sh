#!/bin/sh
# Builds Kennel and starts its playground: what `make run` does. Says what it does, and asks for root only where
# something has to be installed. Words given to it go to `kennel playground`:
#
#   scripts/run.sh --auto           the tour without stopping, then the end
#   scripts/run.sh --simulate 1000  many nodes that run nothing
set -eu
cd "$(dirname "$0")/.."

say() { echo "run: $*" >&2; }

# Prints a kubectl for the tour: this machine's, or the one that the tests use.
find_kubectl() {
    command -v kubectl && return
    [ -x .tools/kubectl-1.32 ] || {
        say "no kubectl on PATH: fetching one into .tools (nothing is installed)"
        scripts/kubectls.sh || [ -x .tools/kubectl-1.32 ] || {
            say "install kubectl (https://kubernetes.io/docs/tasks/tools), and try again"
            exit 1
        }
    }
    echo "$PWD/.tools/kubectl-1.32"
}

say "1/4 looking for what the build needs"
command -v cargo >/dev/null || {
    say "cargo is missing; Kennel needs Rust 1.95 or later (https://rustup.rs)"
    exit 1
}
if command -v dpkg-query >/dev/null; then
    scripts/packages.sh build || say "going on without; the build may miss something"
else
    say "no Debian: a C compiler and iproute2 must be there"
fi
say "2/4 looking for kubectl"
KUBECTL=$(find_kubectl)
say "3/4 building (the first time takes some minutes)"
cargo build --locked -p kennel
BINARY=${CARGO_TARGET_DIR:-target}/debug/kennel
say "4/4 starting the playground: $BINARY playground"
[ "$(id -u)" = 0 ] ||
    say "for nodes with networks of their own, as root: sudo $BINARY playground --kubectl $KUBECTL"
exec "$BINARY" playground --kubectl "$KUBECTL" "$@"
