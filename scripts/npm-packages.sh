#!/usr/bin/env bash
# Prints the folder of what the package-lock.json in the folder $1 names; fetches it into .cache where it is not there.
set -euo pipefail
from=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
folder=$PWD/.cache/npm/${from##*/}-$(sha256sum "$from/package-lock.json" | cut -c1-16)

fail() { printf 'npm-packages: %s\n' "$*" >&2; exit 1; }

if [ ! -d "$folder" ]; then
  command -v npm >/dev/null || fail "npm is not installed; run scripts/engines.sh --for-tests"
  mkdir -p .cache/npm
  fresh=$(mktemp -d "$PWD/.cache/npm/fetching.XXXXXX")
  cp "$from/package.json" "$from/package-lock.json" "$fresh"
  npm ci --prefix "$fresh" --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error >/dev/null ||
    { rm -rf "$fresh"; fail "npm could not fetch the packages of ${from##*/}; is there a network?"; }
  # It appears there whole: several may want it at once.
  mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh" # somebody else was first
  [ -d "$folder" ] || fail "the packages could not be put into .cache"
fi
printf '%s\n' "$folder"
