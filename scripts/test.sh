#!/bin/sh
# Everything that must hold before a change lands: format, lints, dependencies, documentation, fuzz targets, all tests.
# Writes nothing but target/ and .tools/. The last line counts: "N passed, N failed, N skipped".
# With CI=true (set by .ci/run) a test that cannot run here fails instead of being skipped.
set -eu
cd "$(dirname "$0")/.."

LOG=$(mktemp)
KENNEL_SKIPPED_TESTS=$(mktemp)
export KENNEL_SKIPPED_TESTS
trap 'rm -f "$LOG" "$KENNEL_SKIPPED_TESTS"' EXIT
passed=0 failed=0

finish() {
    skipped=$(sort -u "$KENNEL_SKIPPED_TESTS" | wc -l)
    echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] || exit 1
    exit 0
}

# Runs one step that either holds or stops everything.
gate() {
    name=$1
    shift
    echo "== $name" >&2
    "$@" && return
    echo "test: stopped, because this failed: $name" >&2
    failed=$((failed + 1))
    finish
}

# Runs a test runner with its output shown and kept in $LOG; its exit status is left in $status.
run_logged() {
    echo "== $1" >&2
    shift
    { "$@" 2>&1 && echo 0 >"$LOG.status" || echo $? >"$LOG.status"; } | tee "$LOG"
    status=$(cat "$LOG.status")
    rm -f "$LOG.status"
}

# Adds what the last runner counted. A runner that failed without a count (a compile error, a crash) is one failure.
add_counts() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    if [ "$status" -ne 0 ] && [ "$2" -eq 0 ]; then failed=$((failed + 1)); fi
}

# "Summary [ 1.2s] 9 tests run: 8 passed (1 slow), 1 failed, 0 skipped"; what ran and did not pass failed.
count_nextest() {
    summary=$(sed 's/\x1b\[[0-9;]*m//g' "$LOG" | grep -E 'Summary \[' | tail -n 1)
    ran=$(echo "$summary" | sed -nE 's/.*\] +([0-9]+)(\/[0-9]+)? tests? run.*/\1/p')
    good=$(echo "$summary" | sed -nE 's/.* ([0-9]+) passed.*/\1/p')
    add_counts "${good:-0}" "$((${ran:-0} - ${good:-0}))"
}

# "test result: ok. 8 passed; 1 failed; …", one per test binary.
count_cargo_test() {
    add_counts $(awk '/^test result: / {
        for (i = 1; i < NF; i++) { if ($(i + 1) ~ /^passed/) p += $i; if ($(i + 1) ~ /^failed/) f += $i }
    } END { print p + 0, f + 0 }' "$LOG")
}

# Private items are documented too, so public pages may link to them.
document() {
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
        cargo doc --locked --workspace --no-deps --document-private-items --quiet
}

export CARGO_TERM_COLOR=never
gate "Debian packages" scripts/packages.sh
gate "Helm" scripts/helm.sh
gate "kubectl binaries" scripts/kubectls.sh
gate "Python and JavaScript clients" scripts/clients.sh
gate "node exporter and Prometheus" scripts/prometheus.sh
gate "the last release" scripts/older.sh
gate "format (make fix repairs it)" cargo fmt --check
gate "licences, bans and sources of dependencies" scripts/deny.sh
gate "lints" cargo clippy --locked --workspace --all-targets -- -D warnings
gate "documentation" document
gate "fuzz targets" cargo build --locked --quiet --package kennel-fuzz
if cargo nextest --version >/dev/null 2>&1; then
    # Most tests wait for processes most of the time.
    threads=$((2 * $(nproc)))
    run_logged "tests" cargo nextest run --locked --workspace --no-fail-fast --test-threads "$threads"
    count_nextest
else
    run_logged "tests" cargo test --locked --workspace --all-targets --no-fail-fast
    count_cargo_test
fi
run_logged "documentation tests" cargo test --locked --workspace --doc --no-fail-fast
count_cargo_test
finish
