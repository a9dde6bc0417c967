#!/bin/sh
# Puts the official Python and JavaScript clients of Kubernetes below .tools, for the tests that drive them, and what judges the
# dashboard's page:
#
#   .tools/python-client      the packages kubernetes and jsonschema of PyPI and what they import, for PYTHONPATH
#   .tools/javascript-client  the package @kubernetes/client-node of npm and what it imports, as node_modules
#   .tools/axe                the package axe-core of npm, which finds barriers in pages, as node_modules
#
# scripts/clients lists every archive with its checksum. They are fetched from PyPI and npm (or from the registries that
# PIP_INDEX_URL and npm_config_registry name) and unpacked; nothing is installed, and neither pip nor npm is needed. Once
# they are there, this script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

ROOT=$PWD
REGISTRY=${npm_config_registry:-https://registry.npmjs.org}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p .tools "$WORK/archives" "$WORK/unpacked"

# is_there SUMS TARGET: whether the target was unpacked from this list.
is_there() { cmp -s "$1" "$2/sums"; }

# put SUMS TARGET: what is in the working directory becomes the target.
put() {
    cp "$1" "$WORK/unpacked/sums"
    rm -rf "$2"
    mv "$WORK/unpacked" "$2"
    rm -rf "$WORK/archives"
    mkdir "$WORK/archives" "$WORK/unpacked"
}

python_client() {
    sums=scripts/clients/python.sha256 target=.tools/python-client
    if is_there "$sums" "$target"; then return; fi
    echo "clients: fetching the Python client" >&2
    scripts/pypi.sh "$sums" "$WORK/archives"
    for wheel in "$WORK"/archives/*.whl; do
        (cd "$WORK/unpacked" && busybox unzip -q -o "$wheel")
    done
    # Wheels of PyYAML are for one version of Python each; its sources work with all, more slowly.
    (cd "$WORK/archives" && tar -xzf pyyaml-*.tar.gz && mv pyyaml-*/lib/yaml "$WORK/unpacked/")
    put "$sums" "$target"
}

# npm_packages SUMS TARGET WHAT: packages of npm as node_modules.
npm_packages() {
    sums=$1 target=$2
    if is_there "$sums" "$target"; then return; fi
    echo "clients: fetching $3" >&2
    cd "$WORK/archives"
    while read -r _ file; do
        printf 'url = "%s/%s"\noutput = "%s"\n' "${REGISTRY%/}" "$file" "$file"
    done <"$ROOT/$sums" | curl -fsSL --retry 3 --no-progress-meter --parallel --create-dirs --config -
    sha512sum -c --quiet "$ROOT/$sums" >&2
    # @scope/name/-/name-1.0.0.tgz is the package @scope/name.
    while read -r _ file; do
        package=$WORK/unpacked/node_modules/${file%%/-/*}
        mkdir -p "$package"
        tar -xzf "$file" -C "$package" --strip-components 1 --no-same-owner
    done <"$ROOT/$sums"
    cd "$ROOT"
    put "$sums" "$target"
}

python_client
npm_packages scripts/clients/javascript.sha512 .tools/javascript-client "the JavaScript client"
npm_packages scripts/clients/axe.sha512 .tools/axe "axe-core"
