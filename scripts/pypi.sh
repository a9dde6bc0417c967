#!/bin/sh
# scripts/pypi.sh SUMS DIRECTORY: fetches the files that SUMS lists, in the format of sha256sum, from PyPI (or from the
# index that PIP_INDEX_URL names) into DIRECTORY, and checks them.
set -eu

sums=$(readlink -f "$1")
INDEX=${PIP_INDEX_URL:-https://pypi.org/simple}
cd "$2"
while read -r _ file; do
    # requests_oauthlib-2.0.0-py2.py3-none-any.whl is a file of the project requests-oauthlib.
    project=$(echo "${file%%-*}" | tr 'A-Z_' 'a-z-')
    curl -fsSL --retry 3 "${INDEX%/}/$project/" >index
    link=$(grep -o "href=\"[^\"]*/$file" index | head -n 1)
    [ -n "$link" ] || { echo "pypi: ${INDEX##*@} has no $file" >&2; exit 1; }
    curl -fsSL --retry 3 -o "$file" "${link#href=\"}"
done <"$sums"
rm -f index
sha256sum -c --quiet "$sums" >&2
