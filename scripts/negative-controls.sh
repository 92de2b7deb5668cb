#!/usr/bin/env bash
# Negative controls: plants one known bug after the other (internal/planted) and runs the tests that must catch it. First the same
# tests run against the same binary with no bug at work, and must pass. A bug is caught where each test named for it fails, and the
# service said that the bug was at work. Ends with a table; exits 1 where a bug survives. `make negative-controls` calls it.
# With arguments: those bugs alone.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

# bug | suite | the tests that catch it
controls='
object-not-synced          | what the kernel is told  | TestObjectsAreDurableBeforeTheirAnswer
name-not-synced            | what the kernel is told  | TestObjectsAreDurableBeforeTheirAnswer
acknowledged-before-commit | syncs that fail          | TestACommitWithoutItsSyncIsInDoubt
key-of-another-request     | idempotency              | TestEveryMutationIsRepeatedByItsKey
organization-forgotten     | isolation matrix         | TestIsolationMatrix TestAnotherOrganizationsUploadDoesNotExist
revoked-accepted           | confused tokens          | TestMCPRefusesConfusedTokens
scanner-silence-passes     | gates                    | TestSilenceOfTheScannerIsNoPass TestSilentScannerIsNoPassForTexts
withdrawing-served         | withdrawal               | TestWithdrawalIsConfirmedByEveryBackendOrNotAtAll
served-without-record      | evidence                 | TestContextIsServedOnlyOnceItsRecordIsDurable
receipt-without-deletion   | withdrawal               | TestWithdrawalIsConfirmedByEveryBackendOrNotAtAll
'

fail() { printf 'negative-controls: %s\n' "$*" >&2; exit 1; }
trimmed() { local text=$1; text=${text#"${text%%[! ]*}"}; printf '%s' "${text%"${text##*[! ]}"}"; }

bugs=() suites=() tests=()
while IFS='|' read -r bug suite caught; do
  bug=$(trimmed "$bug")
  [ -n "$bug" ] || continue
  if [ $# -gt 0 ] && [[ " $* " != *" $bug "* ]]; then continue; fi
  bugs+=("$bug") suites+=("$(trimmed "$suite")") tests+=("$(trimmed "$caught")")
done <<<"$controls"
[ ${#bugs[@]} -gt 0 ] || fail "no planted bug is called $*"
[ $# -eq 0 ] || [ ${#bugs[@]} -eq $# ] || fail "not every one of these is a planted bug: $*"

work=$(mktemp -d "${TMPDIR:-/tmp}/accession-planted.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

go test -c -vet=off -o "$work/e2e.test" ./e2e || fail "the tests do not build"

# Runs tests $2 with bug $1 at work; what they say goes to file $3.
try() {
  (cd e2e && ACCESSION_PLANTED=$1 "$work/e2e.test" -test.timeout=10m -test.v -test.run "^(${2// /|})\$") >"$3" 2>&1
}
# Where the bug lies, as file:line; the first place, if it needs several.
place() { grep -rnF --include='*.go' --exclude='*_test.go' "planted.Bug(\"$1\")" internal | awk -F: 'NR == 1 { print $1 ":" $2 }'; }

all=$(printf '%s\n' ${tests[*]} | sort -u | tr '\n' ' ')
all=$(trimmed "$all")
printf 'no bug: %s tests: ' "$(wc -w <<<"$all")"
if ! try "" "$all" "$work/none"; then
  echo failed
  grep -E '^ *--- FAIL|^panic: ' "$work/none" || tail -n 20 "$work/none"
  fail "the tests fail without a bug; what they say of one proves nothing"
fi
for test in $all; do
  grep -q "^--- PASS: $test " "$work/none" || fail "there is no test $test"
done
echo passed

row='| %-26s | %-41s | %-23s | %-90s | %-8s |\n'
rows=() survived=0
for n in "${!bugs[@]}"; do
  bug=${bugs[n]} said=$work/$n verdict=caught
  at=$(place "$bug")
  printf '%s: ' "$bug"
  if try "$bug" "${tests[n]}" "$said"; then
    verdict=SURVIVED
  elif ! grep -qF "planted bug at work: $bug" "$said"; then
    verdict=SURVIVED # they failed for another reason
  else
    for test in ${tests[n]}; do
      grep -q "^--- FAIL: $test " "$said" || verdict=SURVIVED
    done
  fi
  echo "$verdict"
  if [ $verdict = SURVIVED ]; then
    survived=$((survived + 1))
    tail -n 20 "$said"
  fi
  rows+=("$(printf "$row" "$bug" "$at" "${suites[n]}" "${tests[n]// /, }" "$verdict")")
done

printf "\n$row" bug where suite 'caught by' verdict
printf "$row" --- --- --- --- ---
printf '%s\n' "${rows[@]}"
printf '\n%d of %d planted bugs were caught\n' $((${#bugs[@]} - survived)) ${#bugs[@]}
[ $survived -eq 0 ]
