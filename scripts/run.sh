#!/usr/bin/env bash
# Keeps a service running in the foreground, with its data in .accession-data. `make run` calls it.
# Ctrl-C stops it; the data stays for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/accession ] || { echo "run: bin/accession is missing; run make run, which builds it" >&2; exit 1; }

data=.accession-data
listen=127.0.0.1:8080
if (exec 3<>"/dev/tcp/${listen/://}") 2>/dev/null; then
  echo "run: something already listens on $listen; stop it first" >&2
  exit 1
fi
(umask 077 && mkdir -p $data)
: "${ACCESSION_CLAMAV_DATABASE:=$(scripts/signatures.sh $data/signatures)}"
export ACCESSION_CLAMAV_DATABASE

cat <<'TRY'

The service runs on http://127.0.0.1:8080 until Ctrl-C. In a second terminal, in this folder:

  1. Get a key to upload with, and one to read with (each is printed once):
     for role in solution_company_upload ai_reader; do
       bin/accession credentials issue --org demo --role $role --admin-token-file .accession-data/admin-token
     done
  2. Upload a scanned document and watch its six gates:
     ACCESSION_TOKEN=<first key> bin/accession upload testdata/scans/pump-station-record.pdf --org demo \
       --accept --consent-user-id me --consent-email me@example.org
  3. Read what an AI would get of it:
     ACCESSION_TOKEN=<second key> bin/accession context <upload id> --org demo

TRY
exec bin/accession serve --data $data --listen $listen
