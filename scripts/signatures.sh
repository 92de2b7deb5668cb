#!/usr/bin/env bash
# Chooses the folder of virus signatures that a demo scans with, and prints it:
#   signatures.sh FOLDER
# the system's, if it is a full set; else one fetched by freshclam into FOLDER; else the test
# signatures of this repository, which it says loudly. What people read goes to stderr.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
fetched=${1:?usage: signatures.sh FOLDER}
seconds=120 # for freshclam, all of it; a full set is about 250 MB

full() { { [ -s "$1/main.cvd" ] || [ -s "$1/main.cld" ]; } && { [ -s "$1/daily.cvd" ] || [ -s "$1/daily.cld" ]; }; }
say() { printf '%s\n' "$*" >&2; }

loudly_test_signatures() {
  say ""
  say "  ############################################################################"
  say "  #                                                                          #"
  say "  #   SCANNING WITH TEST SIGNATURES ONLY (testdata/clamav).                  #"
  say "  #   They find the EICAR test file and nothing else: no real malware.       #"
  say "  #   For real scanning run freshclam on a machine with a network.           #"
  say "  #                                                                          #"
  say "  ############################################################################"
  say "  Why: $1"
  say ""
  printf '%s\n' "$PWD/testdata/clamav"
  exit 0
}

# clamd holds a full set in about 1.3 GB and dies without them.
free_mib=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
[ "$free_mib" -ge 1800 ] || loudly_test_signatures "a full set needs 1800 MiB of free memory, this machine has $free_mib."

for folder in /var/lib/clamav "$fetched"; do
  if full "$folder"; then
    say "Signatures: the full set in $folder."
    printf '%s\n' "$folder"
    exit 0
  fi
done

say "No full set of signatures here. Asking ClamAV's mirror for one, at most $seconds s ..."
mkdir -p "$fetched"
config=$(mktemp)
trap 'rm -f "$config"' EXIT
# As root freshclam would give the folder to the user clamav, who may not enter it.
printf '%s\n' "DatabaseDirectory $(realpath "$fetched")" "DatabaseOwner $(id -un)" 'DatabaseMirror database.clamav.net' \
  'MaxAttempts 1' 'ConnectTimeout 10' 'ReceiveTimeout 60' 'TestDatabases no' 'Bytecode no' >"$config"
if timeout --kill-after=5 "$seconds" freshclam --config-file="$config" --quiet >/dev/null 2>&1 && full "$fetched"; then
  say "Signatures: a full set, fetched now."
  printf '%s\n' "$(realpath "$fetched")"
  exit 0
fi
loudly_test_signatures "no full set in /var/lib/clamav, and none could be fetched."
