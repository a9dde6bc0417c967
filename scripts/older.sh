#!/bin/sh
# Builds the last release and its Debian package, for the tests that upgrade from it and that run both versions together:
# .tools/older/kennel and .tools/older/kennel.deb, and .tools/older/commit, which names the release's commit.
#
# The source comes from this repository's history. It is built with the current compiler and profile in the directory of the
# other builds, so that most dependencies are built once for both. A clone without that history has no older program: the tests
# that need one are skipped, or fail with CI=true. Once the files are there, this script does nothing.
set -eu
cd "$(dirname "$0")/.."

# The last release. Change both with each release.
VERSION=0.1.0
COMMIT=c4b45484

TARGET=.tools/older
SOURCE=target/older-$VERSION

[ "$(cat "$TARGET/commit" 2>/dev/null)" = "$COMMIT" ] && exit 0
if ! git cat-file -e "$COMMIT^{commit}" 2>/dev/null; then
    echo "older: NO UPGRADE FROM $VERSION IS TESTED: this clone lacks commit $COMMIT (git fetch --unshallow gets it)" >&2
    exit 0
fi
echo "older: building kennel $VERSION ($COMMIT)" >&2
rm -rf "$TARGET" "$SOURCE"
mkdir -p "$TARGET" "$SOURCE"
git archive "$COMMIT" | tar -x -C "$SOURCE"
# Replaces target/debug/kennel and target/debug/xtask; cargo puts the current ones back at their next build.
(cd "$SOURCE" && CARGO_TARGET_DIR=../../target CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 \
    cargo build --locked --quiet --config 'profile.dev.package."*".opt-level=1' --package kennel --package xtask)
cp target/debug/kennel "$TARGET/kennel"
cp target/debug/xtask "$TARGET/xtask"
rm -f target/debug/kennel target/debug/xtask
"$TARGET/xtask" package deb --binary "$TARGET/kennel" --version "$VERSION-1" --compression none --out "$TARGET" >/dev/null
mv "$TARGET"/*.deb "$TARGET/kennel.deb"
rm -rf "$SOURCE" "$TARGET/xtask"
echo "$COMMIT" >"$TARGET/commit"
