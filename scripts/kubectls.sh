#!/bin/sh
# Puts two real kubectls below .tools, for the tests that speak to Kennel as users do:
#
#   .tools/kubectl-1.20   the one Debian 12 ships
#   .tools/kubectl-1.32   the one Debian 13 ships, or any kubectl >= 1.32 found on this machine
#
# They are fetched as packages, with signatures checked, from the mirror this machine already uses:
# its own source entry is copied with other suites in it. Nothing is installed, and apt's own state is
# not touched: everything happens in a directory that is removed again. Once the two are there, this
# script needs no network and does nothing.
set -eu
cd "$(dirname "$0")/.."

OLD=.tools/kubectl-1.20
NEW=.tools/kubectl-1.32
OLD_SUITE=bookworm OLD_PACKAGE=kubernetes-client
NEW_SUITE=trixie NEW_PACKAGE=kubectl

say() { echo "kubectls: $*" >&2; }
die() { say "$*"; exit 1; }

# Prints the minor version of the kubectl given, or nothing where it is none.
minor_version() {
    "$1" version --client -o json 2>/dev/null |
        sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' | head -n 1
}

is_old() { [ "$(minor_version "$1")" = 20 ]; }
is_new() { minor=$(minor_version "$1"); [ "${minor:-0}" -ge 32 ]; }
both_there() { is_old "$OLD" && is_new "$NEW"; }

# Prints this machine's apt entry for Debian's main archive, with the two suites put into it. The rest
# of the entry (mirror, key, options) stays what it is here.
mirror_entry_deb822() {
    awk -v RS= -v codename="$1" -v suites="$OLD_SUITE $NEW_SUITE" '
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
        awk -v codename="$1" -v old="$OLD_SUITE" -v new="$NEW_SUITE" '
            $1 == "deb" {
                for (i = 2; i < NF; i++) if ($i == codename && $(i + 1) == "main") {
                    entry = ""
                    for (j = 1; j < i; j++) entry = entry $j " "
                    print entry old " main"
                    print entry new " main"
                    exit
                }
            }'
}

# Fetches Debian's package of one suite and unpacks its kubectl to where it is told.
fetch() {
    package=$1 suite=$2 target=$3
    say "fetching package $package of Debian $suite"
    (cd "$WORK/packages" && apt-get $APT_OPTIONS -q download "$package/$suite" >&2) || return 1
    rm -rf "$WORK/unpacked"
    dpkg-deb -x "$WORK/packages/$package"_*.deb "$WORK/unpacked" || return 1
    install -m 0755 "$WORK/unpacked/usr/bin/kubectl" "$target.new" && mv -f "$target.new" "$target"
}

# Prepares apt in a directory of its own, with nothing but the mirror's two suites.
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
link_local_new() {
    candidate=$(command -v kubectl) && is_new "$candidate" || return 1
    say "taking $candidate instead"
    ln -sfn "$(readlink -f "$candidate")" "$NEW"
}

if both_there; then exit 0; fi
mkdir -p .tools
exec 9>.tools/kubectls.lock
flock 9
if both_there; then exit 0; fi

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
prepare_apt || say "the package lists could not be read"
is_old "$OLD" || fetch "$OLD_PACKAGE" "$OLD_SUITE" "$OLD" || true
is_new "$NEW" || fetch "$NEW_PACKAGE" "$NEW_SUITE" "$NEW" || link_local_new || true
is_old "$OLD" || die "no kubectl 1.20: package $OLD_PACKAGE of Debian $OLD_SUITE could not be fetched"
is_new "$NEW" || die "no kubectl >= 1.32, neither from Debian $NEW_SUITE nor on this machine"
say "$OLD and $NEW are ready"
