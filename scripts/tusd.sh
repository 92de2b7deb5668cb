#!/usr/bin/env bash
# Builds tusd, the reference of the upload bench, once, pinned, into .cache/bin, and prints its path. ./bench calls it.
# The module is a dependency of a folder of its own: nothing of it reaches go.mod.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/go/bin
tusd=v2.8.0
program=$PWD/.cache/bin/tusd
if [ "$(go version -m "$program" 2>/dev/null | awk '$1 == "mod" && $2 == "github.com/tus/tusd/v2" { print $3 }')" != $tusd ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  printf 'module bench\n\ngo 1.24\n\nrequire github.com/tus/tusd/v2 %s\n' $tusd >"$folder/go.mod"
  mkdir -p "${program%/*}"
  (cd "$folder" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -o "$program" github.com/tus/tusd/v2/cmd/tusd) >&2
fi
printf '%s\n' "$program"
