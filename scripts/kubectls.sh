#!/bin/sh
# Puts three real kubectls below .tools, for the tests that speak to Kennel as users do:
#
#   .tools/kubectl-1.20   the one Debian 12 ships
#   .tools/kubectl-1.32   the one Debian 13 ships; where that cannot be had, a link to a kubectl >= 1.32 found on this machine
#   .tools/kubectl-1.36   the one Debian 14 will ship, or any kubectl >= 1.36 found on this machine
#
# They are fetched as packages, with signatures checked, from the mirror this machine already uses:
# its own source entry is copied with other suites in it. Nothing is installed, and apt's own state is
# not touched: everything happens in a directory that is removed again. Once the three are there, this
# script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

VERSIONS="1.20 1.32 1.36"
SUITES="bookworm trixie forky"

# Prints where the kubectl of a version comes from: the suite, and the package in it.
source_of() {
    case $1 in
    1.20) echo bookworm kubernetes-client ;;
    1.32) echo trixie kubectl ;;
    1.36) echo forky kubectl ;;
    esac
}

say() { echo "kubectls: $*" >&2; }
die() { say "$*"; exit 1; }

# Prints the minor version of the kubectl given, or nothing where it is none.
minor_version() {
    "$1" version --client -o json 2>/dev/null |
        sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' | head -n 1
}

# is VERSION FILE: it must be that version, but for the newest, which may be newer still.
is() {
    minor=$(minor_version "$2")
    case $1 in
    1.36) [ "${minor:-0}" -ge 36 ] ;;
    *) [ "$minor" = "${1#1.}" ] ;;
    esac
}

# stands_in VERSION FILE: a newer one may be used in place of 1.32.
stands_in() { [ "$1" = 1.32 ] && minor=$(minor_version "$2") && [ "${minor:-0}" -ge 32 ]; }

# The one that stands in is a link. Says so each time: the tests do not run with that version.
is_there() {
    is "$1" ".tools/kubectl-$1" && return 0
    [ -L ".tools/kubectl-$1" ] && stands_in "$1" ".tools/kubectl-$1" &&
        say "kubectl 1.$minor, found on this machine, stands in for kubectl $1"
}
all_there() { for version in $VERSIONS; do is_there "$version" || return 1; done; }

# Prints this machine's apt entry for Debian's main archive, with the suites put into it. The rest
# of the entry (mirror, key, options) stays what it is here.
mirror_entry_deb822() {
    awk -v RS= -v codename="$1" -v suites="$SUITES" '
        $0 ~ "(^|\n)Suites:[^\n]*[ \t]" codename "([ \t\n]|$)" &&
        $0 ~ "(^|\n)Types:[^\n]*[ \t]deb([ \t\n]|$)" &&
        $0 !~ "(^|\n)Enabled:[ \t]*no" {
            sub(/Suites:[^\n]*/, "Suites: " suites)
            sub(/Types:[^\n]*/, "Types: deb")
            sub(/Components:[^\n]*/, "Components: main")
            print; exit
        }' /etc/apt/sources.list.d/*.sources 2>/dev/null
}

mirror_entry_one_line() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        awk -v codename="$1" -v suites="$SUITES" '
            $1 == "deb" {
                for (i = 2; i < NF; i++) if ($i == codename && $(i + 1) == "main") {
                    entry = ""
                    for (j = 1; j < i; j++) entry = entry $j " "
                    count = split(suites, suite, " ")
                    for (j = 1; j <= count; j++) print entry suite[j] " main"
                    exit
                }
            }'
}

# fetch VERSION SUITE PACKAGE: fetches Debian's package and unpacks its kubectl.
fetch() {
    target=.tools/kubectl-$1
    say "fetching package $3 of Debian $2"
    (cd "$WORK/packages" && rm -f ./*.deb && apt-get $APT_OPTIONS -q download "$3/$2" >&2) || return 1
    rm -rf "$WORK/unpacked"
    dpkg-deb -x "$WORK/packages/$3"_*.deb "$WORK/unpacked" || return 1
    install -m 0755 "$WORK/unpacked/usr/bin/kubectl" "$target.new" && mv -f "$target.new" "$target"
}

# Prepares apt in a directory of its own, with nothing but these suites of the mirror.
prepare_apt() {
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mkdir -p "$WORK/state/lists/partial" "$WORK/cache/archives/partial" "$WORK/packages"
    entry=$(mirror_entry_deb822 "$codename")
    list=$WORK/mirror.sources
    if [ -z "$entry" ]; then
        entry=$(mirror_entry_one_line "$codename")
        list=$WORK/mirror.list
    fi
    [ -n "$entry" ] || { say "no apt entry for Debian $codename on this machine"; return 1; }
    printf '%s\n' "$entry" >"$list"
    : >"$WORK/state/status"
    # apt hands downloads to a user of its own, who must get at the directory.
    chmod -R a+rX "$WORK"
    [ "$(id -u)" != 0 ] || chown _apt "$WORK/packages" 2>/dev/null || true
    APT_OPTIONS="-o Dir::Etc::sourcelist=$list -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State=$WORK/state -o Dir::State::status=$WORK/state/status -o Dir::Cache=$WORK/cache \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Languages=none -o Acquire::Retries=3"
    apt-get $APT_OPTIONS -q update >&2
}

# Links this machine's own kubectl where it is new enough.
link_local() {
    candidate=$(command -v kubectl) || return 1
    is "$1" "$candidate" || stands_in "$1" "$candidate" || return 1
    say "taking $candidate as kubectl $1"
    ln -sfn "$(readlink -f "$candidate")" ".tools/kubectl-$1"
}

if all_there; then exit 0; fi
mkdir -p .tools
exec 9>.tools/kubectls.lock
flock 9
if all_there; then exit 0; fi

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
prepare_apt || say "the package lists could not be read"
for version in $VERSIONS; do
    # shellcheck disable=SC2046 # two words on purpose
    is_there "$version" || fetch "$version" $(source_of "$version") || link_local "$version" || true
    is_there "$version" || die "no kubectl $version, neither from Debian ($(source_of "$version")) nor on this machine"
done
say "kubectl $VERSIONS are ready"
