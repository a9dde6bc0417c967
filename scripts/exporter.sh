#!/bin/sh
# Puts Debian's node exporter below .tools, for the tests that run a real daemon on real nodes. The package is
# fetched and unpacked, not installed: its service would listen on this machine. Once it is there, this script
# needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

TARGET=.tools/node-exporter
PACKAGE=prometheus-node-exporter

[ -x "$TARGET" ] && exit 0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p .tools
echo "exporter: fetching package $PACKAGE" >&2
# apt drops its rights to download, and needs a directory that it can enter.
chmod 0755 "$WORK"
(cd "$WORK" && apt-get -q download "$PACKAGE" >&2) || {
    [ "$(id -u)" = 0 ] && apt-get -q update >&2
    (cd "$WORK" && apt-get -q download "$PACKAGE" >&2)
}
dpkg-deb -x "$WORK/$PACKAGE"_*.deb "$WORK/unpacked"
install -m 0755 "$WORK/unpacked/usr/bin/$PACKAGE" "$TARGET.new"
mv -f "$TARGET.new" "$TARGET"
