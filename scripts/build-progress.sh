#!/bin/sh
# scripts/build-progress.sh TOTAL: reads cargo's messages, and prints how far the build is, in steps of five percent of
# TOTAL crates. Other messages, such as errors and warnings, are passed through.
#
# For logs and other outputs that are not terminals; in a terminal, cargo shows a bar of its own.
set -eu

awk -v total="$1" '
    / *(Compiling|Checking) [^ ]+ v[0-9]/ {
        crates += 1
        percent = total > 0 ? int(100 * crates / total) : 0
        if (percent > 99) percent = 99      # the last crate is still being compiled
        if (percent >= next_percent) {
            printf "run:   %d %% (%d of about %d crates)\n", percent, crates, total
            fflush()
            next_percent = percent - percent % 5 + 5
        }
        next
    }
    / *(Downloading|Downloaded|Updating|Locking|Finished) / { next }
    { print; fflush() }
'
