#!/usr/bin/env bash
# gofmt, file length, fences, vet, staticcheck: everything `make lint` holds. Says all it finds, then fails.
set -euo pipefail
cd "$(dirname "$0")/.."
longest=500 # lines of a Go file

bad=0
complain() { printf 'lint: %s\n' "$*" >&2; bad=1; }

go -C tools build -o ../bin/tools/ tool

mapfile -t files < <(find . -name '.?*' -prune -o -name '*.go' -print | sort)
unformatted=$(gofmt -l "${files[@]}")
[ -z "$unformatted" ] || complain "run gofmt -w on:" $unformatted
for file in "${files[@]}"; do
  lines=$(wc -l <"$file")
  [ "$lines" -le $longest ] || complain "$file has $lines lines, at most $longest: split it by noun"
done

for script in scripts/*.sh testdata/scans/*.sh .ci/run; do
  bash -n "$script" || complain "$script does not parse"
done

# depguard without its file would allow everything, and a room without a rule too.
[ -s .depguard.yml ] || complain ".depguard.yml is missing; the fences are in it"
for room in internal/*/; do
  room=$(basename "$room")
  grep -q "^$room:" .depguard.yml || complain "internal/$room has no rule in .depguard.yml"
done

# With the flags of the tests, so that the dependencies compile once for both.
as_tests=(env CGO_ENABLED=1 "GOFLAGS=${GOFLAGS-} -race")
if "${as_tests[@]}" go vet ./...; then
  "${as_tests[@]}" bin/tools/depguard ./... || bad=1
  "${as_tests[@]}" bin/tools/staticcheck ./... || bad=1
else
  complain "go vet failed, so fences and staticcheck were not run"
fi
go -C tools vet ./... || bad=1
# The fences' own test reads .depguard.yml, which Go's test cache does not see.
go -C tools test -count=1 ./... || bad=1
exit $bad
