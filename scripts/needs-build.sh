#!/bin/sh
# scripts/needs-build.sh STAMP PROGRAM SOURCE…: succeeds if the program has to be built.
#
# It does not if it exists and no source has changed since the time of STAMP, the start of the last build that
# succeeded. This saves `make run` the seconds that cargo needs to find out the same.
set -eu

stamp=$1 program=$2
shift 2
[ -e "$stamp" ] && [ -x "$program" ] || exit 0
# Directories count: a file that was removed changes its directory.
[ -n "$(find "$@" -newer "$stamp" -print -quit)" ]
