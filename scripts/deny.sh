#!/bin/sh
# Checks licences, banned crates and sources of all dependencies against deny.toml, with a cargo-deny that is installed
# into .tools/ when there is none. Advisories are left out: their database is not on crates.io.
set -eu
cd "$(dirname "$0")/.."

VERSION=0.20.2
TOOL=.tools/cargo-deny/bin/cargo-deny

if command -v cargo-deny >/dev/null; then
    TOOL=cargo-deny
elif [ ! -x "$TOOL" ]; then
    echo "deny: building cargo-deny $VERSION from crates.io, once" >&2
    # Neither optimised code nor debug information is worth its compile time for a check of seconds.
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --locked --debug --root .tools/cargo-deny --version "$VERSION" cargo-deny
fi
"$TOOL" --log-level error --workspace check --hide-inclusion-graph licenses bans sources
