#!/usr/bin/env bash
# Makes sure that the engines accession needs are here, and says which ones it found.
# Installs what is missing with apt-get; changes nothing when all is there. With
# --for-tests also what only tests need: a C compiler for Go's race detector, PostgreSQL, an S3 service, a browser, and Node
# for the linter of the contract, clients of MCP, the TypeScript client, and what drives the browser.
# Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

for_tests=no
case "${1-}" in
  "") ;;
  --for-tests) for_tests=yes ;;
  *) echo "engines: unknown option $1; the only one is --for-tests" >&2; exit 2 ;;
esac

fail() { printf 'engines: %s\n' "$*" >&2; exit 1; }
row() { printf '  %-18s %s\n' "$1" "$2"; }
reads_english() { tesseract --list-langs 2>/dev/null | grep -qx eng && tesseract --list-langs 2>/dev/null | grep -qx osd; }
compiles() { command -v "${CC:-gcc}" >/dev/null && printf '#include <stdlib.h>\n' | "${CC:-gcc}" -E - >/dev/null 2>&1; }

# The newest PostgreSQL that is installed: the tests start servers of their own.
database_server() { { type -P postgres || ls -v /usr/lib/postgresql/*/bin/postgres; } 2>/dev/null | tail -n 1; }

# Go comes first: without it nothing else is worth installing.
wanted=$(awk '$1 == "go" { print $2 }' go.mod)
command -v go >/dev/null || fail "Go is not installed; install Go $wanted or newer from https://go.dev/dl"
found=$(go env GOVERSION) || fail "this Go cannot work here (see above); install Go $wanted or newer from https://go.dev/dl"
oldest=$(printf '%s\n' "$wanted" "${found#go}" | sort -V | head -n 1)
[ "$oldest" = "$wanted" ] || fail "Go is ${found#go}, but go.mod asks for $wanted or newer; see https://go.dev/dl"

missing=()
command -v clamd >/dev/null || missing+=(clamav-daemon)
command -v freshclam >/dev/null || missing+=(clamav-freshclam)
command -v tesseract >/dev/null || missing+=(tesseract-ocr)
reads_english || missing+=(tesseract-ocr-eng tesseract-ocr-osd)
[ $for_tests = no ] || compiles || missing+=(gcc libc6-dev)
[ $for_tests = no ] || { command -v node && command -v npm; } >/dev/null || missing+=(nodejs npm)
[ $for_tests = no ] || [ -n "$(database_server)" ] || missing+=(postgresql)
[ $for_tests = no ] || command -v chromium >/dev/null || missing+=(chromium)
[ $for_tests = no ] || command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
[ $for_tests = no ] || { command -v systemd-analyze && command -v systemd-sysusers; } >/dev/null || missing+=(systemd)
[ $for_tests = no ] || [ "$(id -u)" -eq 0 ] || command -v fakeroot >/dev/null || missing+=(fakeroot)
for package in zsh fish mandoc; do
  [ $for_tests = no ] || command -v $package >/dev/null || missing+=($package)
done

# Packages start their daemons when they are installed. accession runs a clamd of its own, so ask for none
# of that, in the way Debian has for it, unless the machine already has a policy.
policy=/usr/sbin/policy-rc.d
as_root=()
install_missing() {
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "missing: ${missing[*]}; as root run: apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)
    "${as_root[@]}" true ||
      fail "missing: ${missing[*]}; sudo wants a password, so run: sudo apt-get install --no-install-recommends ${missing[*]}"
  fi

  echo "Installing with apt-get: ${missing[*]}"
  for package in "${missing[@]}"; do
    case $package in
      clamav-daemon) row "$package" "scans documents for malware" ;;
      clamav-freshclam) row "$package" "fetches the signatures for it" ;;
      tesseract-ocr) row "$package" "reads pages that are pictures" ;;
      tesseract-ocr-eng) row "$package" "English, for tesseract" ;;
      tesseract-ocr-osd) row "$package" "tells which way up a page is" ;;
      nodejs | npm) row "$package" "for the linter of the contract, clients of MCP, and the TypeScript client" ;;
      zsh | fish) row "$package" "completes commands in the tests, beside bash" ;;
      mandoc) row "$package" "checks the manual page" ;;
      e2fsprogs) row "$package" "makes the disks of the tests of power cuts" ;;
      chromium) row "$package" "shows the pages in their tests" ;;
      systemd | fakeroot) row "$package" "for the tests of the Debian package" ;;
      postgresql) row "$package" "keeps metadata and keys in the tests of replicas" ;;
      gcc | libc6-dev) row "$package" "builds the race detector of the tests" ;;
    esac
  done
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod 755 $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
  fi
  # The tests' servers are their own; Debian's package would make and run one more.
  if [[ " ${missing[*]} " == *" postgresql "* ]] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    "${as_root[@]}" mkdir -p /etc/postgresql-common
    printf 'create_main_cluster = false\n' | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update || fail "apt-get update failed; is there a network?"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get could not install ${missing[*]} (see above)"
  # The system's own clamd would hold its gigabyte of signatures for nobody; freshclam stays, it keeps them new.
  if [ -d /run/systemd/system ] && [[ " ${missing[*]} " == *" clamav-daemon "* ]]; then
    "${as_root[@]}" systemctl disable --quiet clamav-daemon.service clamav-daemon.socket ||
      echo "  note: clamav-daemon could not be disabled; it starts with the next boot"
  fi
}

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null ||
    fail "missing: ${missing[*]} (Debian's names); this machine has no apt-get, so install them its own way"
  install_missing
  hash -r
fi

# What is here now, one line each; an engine that does not answer is a failure.
clamd=$(clamd --version 2>/dev/null | head -n 1) || fail "clamd does not run"
reader=$(tesseract --version 2>&1 | head -n 1) || fail "tesseract does not run"
reads_english || fail "tesseract has no English; install tesseract-ocr-eng and tesseract-ocr-osd"
row go "${found#go} (go.mod asks for $wanted)"
row clamd "${clamd%%/*}"
row tesseract "${reader#tesseract } with English"
if [ $for_tests = yes ]; then
  compiles || fail "no working C compiler; install gcc and libc6-dev"
  row "${CC:-gcc}" "$("${CC:-gcc}" -dumpfullversion -dumpversion | head -n 1) (for the race detector)"
  server=$("$(database_server)" --version) || fail "PostgreSQL does not run; install postgresql"
  row postgres "${server#postgres (PostgreSQL) } (for the tests of replicas)"
  versitygw=$(scripts/versitygw.sh) || fail "versitygw, the S3 service of the tests, could not be installed (see above)"
  row versitygw "$(go version -m "$versitygw" | awk '$1 == "mod" { print $3 }') (for the tests of S3 storage)"
  scripts/lint-openapi.sh --install || fail "the linter of the contract cannot run (see above)"
  row redocly "$(scripts/lint-openapi.sh --version) (for the contract)"
  scripts/npm-packages.sh e2e/testdata/mcp >/dev/null || fail "the MCP clients of the tests could not be installed (see above)"
  row "mcp clients" "conformance $(sed -n 's/.*conformance": "\(.*\)",*/\1/p' e2e/testdata/mcp/package.json), inspector, TypeScript SDK (for the tests of MCP)"
  scripts/npm-packages.sh clients/typescript >/dev/null || fail "the packages of the TypeScript client could not be installed (see above)"
  chromium=$(chromium --version 2>/dev/null) || fail "chromium does not run"
  chromium=${chromium#Chromium }
  row chromium "${chromium%% *} (for the pages)"
  scripts/npm-packages.sh e2e/browser >/dev/null || fail "what drives the browser in the tests could not be installed (see above)"
  row playwright "$(sed -n 's/.*"playwright-core": "\(.*\)",*/\1/p' e2e/browser/package.json), axe $(sed -n 's/.*"axe-core": "\(.*\)",*/\1/p' e2e/browser/package.json) (for the pages)"
  row "TypeScript" "$(sed -n 's/.*"typescript": "\(.*\)",*/\1/p' clients/typescript/package.json) (for the TypeScript client)"
fi
