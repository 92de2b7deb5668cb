#!/bin/sh
# Fuzzes every decoder of outside bytes, one target after the other: fuzz.sh [-t 60s] [-p 1] [PATTERN]
# -t is how long each target runs, -p how many processes it has, PATTERN a regular expression over "package target". Prints
# package, target, executions, new interesting inputs and the verdict; ends with 1 where a target found something or did not
# run. What Go writes of a finding stays in the package's testdata/fuzz: commit it with its repair, and it is a test for ever.
set -eu
cd "$(dirname "$0")/.."
for_each=60s processes=1
while getopts t:p: option; do
	case $option in
	t) for_each=$OPTARG ;;
	p) processes=$OPTARG ;;
	*) echo "usage: $0 [-t 60s] [-p 1] [PATTERN]" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
pattern=${1:-.}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM

for folder in $(grep -rl --include='*_test.go' '^func Fuzz' client cmd e2e internal | xargs -n1 dirname | sort -u); do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$folder \1|p" "$folder"/*_test.go | grep -qE -- "$pattern" || continue
	# A package that does not build must not pass for one without targets.
	go test -list '^Fuzz' "./$folder" >"$out/list" || { cat "$out/list" >&2; exit 1; }
	for target in $(grep '^Fuzz' "$out/list"); do
		echo "$folder $target"
	done
done | grep -E -- "$pattern" >"$out/targets" || { echo "no target matches $pattern" >&2; exit 1; }

failed=0
printf '%-28s %-24s %12s %16s  %s\n' package target execs new-interesting verdict
while read -r folder target; do
	verdict=ok
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" -fuzzminimizetime 2s -parallel "$processes" "./$folder" >"$out/log" 2>&1 </dev/null; then
		verdict=FINDING
		if ! grep -q -e 'Failing input written' -e '--- FAIL' "$out/log"; then
			verdict=BROKEN # it was not built, or could not run
		elif ! grep -q 'Failing input written' "$out/log" && grep -q '^ *context deadline exceeded$' "$out/log"; then
			verdict=ok # the end of the time met an input under way: golang.org/issue/75804
		fi
	fi
	execs=$(sed -n 's/^fuzz: elapsed.* execs: \([0-9]*\) .*/\1/p' "$out/log" | tail -1)
	new=$(sed -n 's/^fuzz: elapsed.* new interesting: \([0-9]*\) .*/\1/p' "$out/log" | tail -1)
	printf '%-28s %-24s %12s %16s  %s\n' "$folder" "$target" "${execs:-0}" "${new:-0}" "$verdict"
	if [ "$verdict" != ok ]; then
		failed=1
		grep -v '^fuzz: elapsed' "$out/log" | head -60
	fi
done <"$out/targets"
exit $failed
