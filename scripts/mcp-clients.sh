#!/usr/bin/env bash
# Prints the folder of the MCP clients and the conformance suite that the tests run, as e2e/testdata/mcp/package-lock.json
# names them; fetches them into .cache where they are not there. A Node.js that is new enough for them is among them.
set -euo pipefail
cd "$(dirname "$0")/.."
from=$PWD/e2e/testdata/mcp
folder=$PWD/.cache/npm/mcp-clients-$(sha256sum "$from/package-lock.json" | cut -c1-16)

fail() { printf 'mcp-clients: %s\n' "$*" >&2; exit 1; }

if [ ! -d "$folder" ]; then
  command -v npm >/dev/null || fail "npm is not installed; run scripts/engines.sh --for-tests"
  mkdir -p .cache/npm
  fresh=$(mktemp -d "$PWD/.cache/npm/fetching.XXXXXX")
  cp "$from/package.json" "$from/package-lock.json" "$fresh"
  npm ci --prefix "$fresh" --no-audit --no-fund --ignore-scripts --prefer-offline --loglevel=error >/dev/null ||
    { rm -rf "$fresh"; fail "npm could not fetch the clients; is there a network?"; }
  # It appears there whole: several may want it at once.
  mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh" # somebody else was first
  [ -d "$folder" ] || fail "the clients could not be put into .cache"
fi
printf '%s\n' "$folder"
