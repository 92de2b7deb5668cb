#!/usr/bin/env bash
# Every test, race detector on; where some fail their names come last, without the logs between. `make test` calls it.
# Vet has run in lint. The tests of the binary build it themselves, which the test cache does not see.
set -euo pipefail
cd "$(dirname "$0")/.."

said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
run() {
  CGO_ENABLED=1 go test -race -vet=off -timeout "${TEST_TIMEOUT:-40m}" "$@" 2>&1 | tee -a "$said" || status=1
}

mapfile -t rooms < <(go list ./... | grep -v '/e2e$')
run "${rooms[@]}"
run -count=1 ./e2e

if [ $status -ne 0 ]; then
  printf '\nwhat failed:\n'
  grep -E '^ *--- FAIL|^FAIL|^panic: |^WARNING: DATA RACE' "$said" || true
fi
exit $status
