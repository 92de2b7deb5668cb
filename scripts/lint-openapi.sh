#!/usr/bin/env bash
# Lints an OpenAPI document with Redocly's recommended rules; a warning fails too:
#   lint-openapi.sh DOCUMENT.json
#   lint-openapi.sh --install     fetches the linter and lints nothing
#   lint-openapi.sh --version     which linter that is
# The linter is one npm package of a pinned version, kept in .cache; so is a Node.js, where the machine's is too old for it.
set -euo pipefail
document=${1:?usage: lint-openapi.sh DOCUMENT.json}
case $document in
  --version) echo 2.77.0; exit 0 ;;
  --install) ;;
  *) document=$(realpath "$document") ;;
esac
cd "$(dirname "$0")/.."
linter=@redocly/cli@2.77.0
oldest_node=20.19.0 # what this linter asks for
newer_node=24.21.0

fail() { printf 'lint-openapi: %s\n' "$*" >&2; exit 1; }

# Prints the folder of the npm package $1, fetched into .cache if it is not there. It appears there whole: several may want it at once.
package() {
  local folder=$PWD/.cache/npm/${1##*/}
  if [ ! -d "$folder" ]; then
    command -v npm >/dev/null || fail "npm is not installed; run scripts/engines.sh --for-tests"
    mkdir -p .cache/npm
    local fresh
    fresh=$(mktemp -d "$PWD/.cache/npm/fetching.XXXXXX")
    npm install --prefix "$fresh" --no-audit --no-fund --no-save --ignore-scripts --loglevel=error "$1" >/dev/null ||
      { rm -rf "$fresh"; fail "npm could not fetch $1; is there a network?"; }
    mv -T "$fresh" "$folder" 2>/dev/null || rm -rf "$fresh" # somebody else was first
    [ -d "$folder" ] || fail "$1 could not be put into .cache"
  fi
  printf '%s\n' "$folder/node_modules/${1%@*}"
}

command -v node >/dev/null || fail "Node.js is not installed; run scripts/engines.sh --for-tests"
node=node
if [ "$(printf '%s\n' $oldest_node "$(node -p process.versions.node)" | sort -V | head -n 1)" != $oldest_node ]; then
  node=$(package "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@$newer_node")/bin/node
fi
cli=$(package $linter)/bin/cli.js
[ "$document" != --install ] || exit 0

export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
said=$("$node" "$cli" lint --extends=recommended --max-problems=100 "$document" 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
if grep -qE '[0-9]+ warning' <<<"$said"; then
  printf '%s\n' "$said" >&2
  fail "warnings count"
fi
