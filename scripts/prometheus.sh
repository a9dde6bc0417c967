#!/bin/sh
# Puts Debian's node exporter and Prometheus below .tools, for the tests that run a real daemon on real nodes, and
# those that ask a real Prometheus. The packages are fetched and unpacked, not installed: their services would listen
# on this machine. Once they are there, this script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# apt drops its rights to download, and needs a directory that it can enter.
chmod 0755 "$WORK"
mkdir -p .tools

# fetch PACKAGE PROGRAM TARGET
fetch() {
    [ -x "$3" ] && return
    if ! [ -d "$WORK/$1" ]; then
        echo "prometheus: fetching package $1" >&2
        (cd "$WORK" && apt-get -q download "$1" >&2) || {
            [ "$(id -u)" = 0 ] && apt-get -q update >&2
            (cd "$WORK" && apt-get -q download "$1" >&2)
        }
        dpkg-deb -x "$WORK/$1"_*.deb "$WORK/$1"
    fi
    install -m 0755 "$WORK/$1/usr/bin/$2" "$3.new"
    mv -f "$3.new" "$3"
}

fetch prometheus-node-exporter prometheus-node-exporter .tools/node-exporter
fetch prometheus prometheus .tools/prometheus
fetch prometheus promtool .tools/promtool
