#!/usr/bin/env bash
# Tries to break the service, for hours: the long form of each test that makes things fail, one after the other, the real binary each time.
# `make torture` calls it. torture.sh [NAME...] does those alone, in the order given; torture.sh -l lists them.
# Every choice comes from one seed, ACCESSION_TORTURE_SEED, by default the time; it is printed, and asks for the same choices again.
# Each has a count that its own variable changes, as in ACCESSION_CRASH_KILLS=50 torture.sh kills. What all of them say is kept in
# .cache/torture. Goes on after a failure, ends with a table, and with 1 where anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

# name | variable of the count | count | what is counted | tests, or a command | what it does
suites='
points   |                             |         | all crash points  | TestCrashAtEveryPoint TestKilledBackupsAndRestoresAreNeverTakenForWhole TestKilledMovesGoOn | kill -9 at each crash point of a job, a backup, a restore, a move
kills    | ACCESSION_CRASH_KILLS       | 1000    | kills             | TestCrashAtRandomMoments                            | kill -9 at random moments
power    | ACCESSION_POWER_CUTS        | 1000    | cuts              | TestPowerCuts                                       | cuts of the disks'"'"' power: what was not made durable is lost
stores   |                             |         | all calls         | TestStorageThatFailsOrLies                          | each call to storage goes wrong in each way
database | ACCESSION_DATABASE_FAULTS   | all     | calls             | TestDatabaseThatFails                               | each call to the databases goes wrong in each way
engines  | ACCESSION_ENGINE_FAULTS     | all     | calls             | TestEnginesThatFail                                 | each call to scanner, workers and a webhook'"'"'s receiver goes wrong in each way
webhooks | ACCESSION_TORTURE_RUNS      | 20      | runs              | TestWebhookTorture TestWebhookTortureOfTwoSenders   | receivers that do what they like, senders that die
chaos    | ACCESSION_CHAOS_SECONDS     | 1800    | s                 | TestChaos                                           | two replicas, PostgreSQL, S3 and the network between fail at once
model    | ACCESSION_MODEL_SEQUENCES   | 100000  | sequences         | TestServiceFollowsItsModel                          | random sequences of operations beside a model of the contract
requests | ACCESSION_FUZZ_REQUESTS     | 1000000 | requests          | TestFuzzedContract                                  | requests made at random from the contract
fuzz     | ACCESSION_TORTURE_FUZZ_TIME | 60s     | a target          | scripts/fuzz.sh -t "$count" -p "$(nproc)"           | every decoder of outside bytes
load     | ACCESSION_TORTURE_LOAD_TIME | 2m      | a flood           | go run ./bench/load -time "$count"                  | ten times what the service can take; slow clients; a flooding organization
planted  |                             |         | all planted bugs  | scripts/negative-controls.sh                        | known bugs, which the tests must catch
'

fail() { printf 'torture: %s\n' "$*" >&2; exit 2; }
trimmed() { local text=$1; text=${text#"${text%%[! ]*}"}; printf '%s' "${text%"${text##*[! ]}"}"; }

names=()
declare -A variable_of count_of counted_of how_of what_of
while IFS='|' read -r name variable count counted how what; do
  name=$(trimmed "$name")
  [ -n "$name" ] || continue
  names+=("$name")
  variable_of[$name]=$(trimmed "$variable") count_of[$name]=$(trimmed "$count") counted_of[$name]=$(trimmed "$counted")
  how_of[$name]=$(trimmed "$how") what_of[$name]=$(trimmed "$what")
done <<<"$suites"

if [ "${1-}" = -l ]; then
  for name in "${names[@]}"; do printf '%-9s %s\n' "$name" "${what_of[$name]}"; done
  exit 0
fi
chosen=("$@")
[ $# -gt 0 ] || chosen=("${names[@]}")
for name in "${chosen[@]}"; do
  [ -n "${how_of[$name]-}" ] || fail "there is nothing called $name; one of: ${names[*]}"
done
seed=${ACCESSION_TORTURE_SEED:-$(date +%s)}
[[ $seed =~ ^[0-9]{1,18}$ ]] || fail 'ACCESSION_TORTURE_SEED must be a whole number of at most 18 digits'
export ACCESSION_TORTURE_SEED=$seed ACCESSION_CRASH_SEED=$seed ACCESSION_POWER_SEED=$seed ACCESSION_CHAOS_SEED=$seed \
  ACCESSION_MODEL_SEED=$seed ACCESSION_FUZZ_SEED=$seed
printf 'ACCESSION_TORTURE_SEED=%s on %s, %d processors, %s\n' "$seed" "$(git describe --tags --always --dirty 2>/dev/null || echo '?')" "$(nproc)" "$(date -u +%FT%TZ)"

logs=.cache/torture
work=$(mktemp -d "${TMPDIR:-/tmp}/accession-torture.XXXXXX")
mkdir -p $logs
rows=() failed=0
row='| %-9s | %-19s | %-18s | %8s | %-7s |\n'
finish() {
  trap - EXIT INT TERM
  rm -rf "$work"
  printf '\n'
  printf "$row" what count seed took verdict
  printf "$row" --- --- --- --- ---
  printf '%s\n' ${rows[@]+"${rows[@]}"}
  exit "$1"
}
trap 'finish 1' EXIT
trap 'finish 130' INT
trap 'finish 143' TERM

# Tests $2…, all of which must be there and pass. What they say goes to file $1.
tests() {
  local log=$1 run test
  shift
  run=$*
  (cd e2e && "$work/e2e.test" -test.timeout=48h -test.v -test.run "^(${run// /|})\$") >>"$log" 2>&1 || return 1
  for test in "$@"; do
    grep -q "^--- PASS: $test " "$log" || { echo "there is no test $test, or it did not run" >>"$log"; return 1; }
  done
}

for name in "${chosen[@]}"; do
  variable=${variable_of[$name]} count=${count_of[$name]} how=${how_of[$name]} log=$logs/$name.log
  if [ -n "$variable" ]; then
    count=${!variable:-$count}
    export "$variable=$count"
  fi
  : >"$log"
  printf '\n%s: %s; %s\n' "$name" "${what_of[$name]}" "$(trimmed "$count ${counted_of[$name]}")"
  begun=$SECONDS verdict=passed seeded=$seed
  if [[ $how != Test* ]] || [ -z "$variable" ]; then
    seeded=- # nothing is left to chance
  fi
  if [[ $how != Test* ]]; then
    eval "$how" >>"$log" 2>&1 || verdict=FAILED
    tail -n 40 "$log" # their tables
  elif [ ! -x "$work/e2e.test" ] && ! go test -c -vet=off -o "$work/e2e.test" ./e2e >>"$log" 2>&1; then
    verdict=FAILED
  elif [ "$variable" = ACCESSION_TORTURE_RUNS ]; then
    for ((run = 0; run < count; run++)); do
      ACCESSION_TORTURE_SEED=$((seed + run)) tests "$log" $how || { verdict=FAILED seeded=$((seed + run)); break; }
    done
  else
    tests "$log" $how || verdict=FAILED
  fi
  took=$((SECONDS - begun))
  if [[ $how = Test* ]]; then # what they counted: the last lines of each are its sums
    grep -E '^ +[a-z0-9_]+_test\.go:[0-9]+: [0-9]+ ' "$log" | sed 's/^ *[a-z0-9_]*_test\.go:[0-9]*: /  /' | tail -n 6
  fi
  if [ $verdict = FAILED ]; then
    failed=1
    printf '%s failed; all it said is in %s\n' "$name" "$log"
    grep -E '^ *--- FAIL|^ +[a-z0-9_]+_test\.go:[0-9]+: |^panic: ' "$log" | cut -c 1-300 | head -n 20
  fi
  rows+=("$(printf "$row" "$name" "$(trimmed "$count ${counted_of[$name]}")" "$seeded" "$((took / 60))m$((took % 60))s" "$verdict")")
done
finish $failed
