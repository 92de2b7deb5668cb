#!/usr/bin/env bash
# Builds versitygw, the S3 service of tests and benches, once, pinned, into .cache/bin, and prints its path.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/go/bin
versitygw=v1.8.0
program=$PWD/.cache/bin/versitygw
[ "$(go version -m "$program" 2>/dev/null | awk '$1 == "mod" { print $3 }')" = $versitygw ] ||
  GOBIN="${program%/*}" CGO_ENABLED=0 go install github.com/versity/versitygw/cmd/versitygw@$versitygw >&2
printf '%s\n' "$program"
