#!/bin/sh
# Builds Kennel and starts its playground: what `make run` does. Says what it does, and asks for root only where
# something has to be installed. Builds only if something has changed. Words given to it go to `kennel playground`:
#
#   scripts/run.sh --auto           the tour without stopping, then the end
#   scripts/run.sh --simulate 1000  many nodes that run nothing
set -eu
cd "$(dirname "$0")/.."

TARGET=${CARGO_TARGET_DIR:-target}
BINARY=$TARGET/debug/kennel
# When the last build that succeeded began, and how many seconds the last build of everything took.
STAMP=$TARGET/debug/kennel-run.stamp
SECONDS_FILE=$TARGET/debug/kennel-run.seconds
# An estimate of the processor seconds that a build of everything takes, until one was timed.
USUAL_CPU_SECONDS=700

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

check_build_tools() {
    command -v cargo >/dev/null || {
        say "cargo is missing; Kennel needs Rust 1.95 or later (https://rustup.rs)"
        exit 1
    }
    if command -v dpkg-query >/dev/null; then
        scripts/packages.sh build || say "going on without; the build may miss something"
    else
        say "not Debian: a C compiler and iproute2 must be there"
    fi
}

# Says how long the build takes: of the crates that changed a minute at most, of everything as long as the last time.
announce_build() {
    if [ -x "$BINARY" ]; then
        say "3/4 building what has changed (usually less than a minute)"
        return
    fi
    cores=$(nproc 2>/dev/null || echo 1)
    usual=$(cat "$SECONDS_FILE" 2>/dev/null || echo $((USUAL_CPU_SECONDS / cores)))
    say "3/4 building everything, once: usually $(((usual + 59) / 60)) min on this machine's $cores cores"
}

# In a terminal cargo shows a bar with the number of crates; elsewhere a line for every few percent is printed.
build() {
    if [ -t 2 ]; then
        cargo build --locked -p kennel
        return
    fi
    crates=$(cargo tree --locked -p kennel -e normal,build --prefix none 2>/dev/null |
        awk '{ print $1, $2 }' | sort -u | wc -l)
    { cargo build --locked -p kennel 2>&1 && echo 0 >"$STAMP.status" || echo 1 >"$STAMP.status"; } |
        scripts/build-progress.sh "$crates" >&2
    status=$(cat "$STAMP.status")
    rm -f "$STAMP.status"
    return "$status"
}

if scripts/needs-build.sh "$STAMP" "$BINARY" Cargo.toml Cargo.lock crates; then
    say "1/4 looking for what the build needs"
    check_build_tools
    say "2/4 looking for kubectl"
    KUBECTL=$(find_kubectl)
    announce_build
    mkdir -p "$TARGET/debug"
    everything=
    [ -x "$BINARY" ] || everything=yes
    touch "$STAMP.new"
    began=$(date +%s)
    build
    [ -z "$everything" ] || echo $(($(date +%s) - began)) >"$SECONDS_FILE"
    mv "$STAMP.new" "$STAMP"
    step="4/4 "
else
    say "nothing has changed since the last build"
    KUBECTL=$(find_kubectl)
    step=
fi
say "${step}starting the playground: $BINARY playground"
[ "$(id -u)" = 0 ] ||
    say "for nodes with networks of their own, as root: sudo $BINARY playground --kubectl $KUBECTL"
exec "$BINARY" playground --kubectl "$KUBECTL" "$@"
