#!/bin/sh
# Repairs what a machine can repair: format, and the lints that come with a fix.
set -eu
cd "$(dirname "$0")/.."
cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets
cargo fmt
