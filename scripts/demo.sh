#!/usr/bin/env bash
# One document through the whole service: in, scanned, read, summarised, served, withdrawn,
# and nothing left. Runs in a temporary folder and removes it, on Ctrl-C too. `make demo` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

document=testdata/scans/pump-station-record.pdf
organization=demo
accession=$PWD/bin/accession
[ -x "$accession" ] || { echo "demo: bin/accession is missing; run make demo, which builds it" >&2; exit 1; }

# Nothing of the caller's own set-up may steer the demo.
unset "${!ACCESSION_@}"

work=$(mktemp -d "${TMPDIR:-/tmp}/accession-demo.XXXXXX")
data=$work/data
log=$work/service.log
export XDG_STATE_HOME=$work/state
service=

stop_service() {
  [ -n "$service" ] || return 0
  local pid=$service tenths=0
  service=
  kill -TERM "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null && [ $tenths -lt 150 ]; do
    sleep 0.1
    tenths=$((tenths + 1))
  done
  if kill -0 "$pid" 2>/dev/null; then
    echo "  it did not stop within 15 s of SIGTERM; killed" >&2
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    return 1
  fi
  wait "$pid"
}

clean_up() {
  local status=$?
  trap - EXIT INT TERM HUP
  if [ $status -ne 0 ] && [ $status -ne 130 ] && [ -s "$log" ]; then
    printf '\ndemo: that went wrong (%s). The last lines of the service:\n' $status >&2
    tail -n 30 "$log" >&2
  fi
  stop_service >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $status
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

count=0
step() { count=$((count + 1)); printf '\n%d. %s\n' $count "$*"; }
say() { printf '   %s\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# The answer to GET $1 with the key in file $2, headers included; needs nothing but bash.
# A key in a command line would stand in the process list, so it goes into the socket.
get() {
  local key=
  [ -z "${2-}" ] || key="x-api-key: $(<"$2")"$'\r\n'
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 1
  printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n%s\r\n' "$1" "$port" "$key" >&3
  tr -d '\r' <&3
  exec 3>&-
}
answers() { [[ $(get "$2" "${3-}" 2>/dev/null | head -n 1) == *" $1 "* ]]; }

start_service() {
  local tries=0
  port=$((20000 + RANDOM % 12000))
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((20000 + RANDOM % 12000)); done
  "$accession" serve --data "$data" --listen "127.0.0.1:$port" >"$log" 2>&1 &
  service=$!
  until answers 200 /readyz; do
    kill -0 $service 2>/dev/null || { service=; fail "the service ended before it was ready"; }
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the service was not ready within 60 s"
    sleep 0.1
  done
}

# Puts a new key for role $1 into file $2, readable by this user only.
issue_key() {
  (umask 077
    "$accession" credentials issue --org $organization --role "$1" \
      --admin-token-file "$data/admin-token" --json |
      tr -d '\n' | sed -n 's/.*"token" *: *"\([^"]*\)".*/\1/p' >"$2")
  [ -s "$2" ] || fail "no key for $1"
}

# The id of the upload that the upload command printed into file $1.
upload_in() { grep -oE -m1 'upl_[A-Za-z0-9_-]+' "$1" | head -n 1; }

# Files in the data folder that belong to the upload, and files that hold words of the document in clear.
files_of_upload() { find "$data" -path "*$upload*" | wc -l; }
files_in_clear() { grep -rlaiE 'storm water|inlet screen|Ropewalk Yard|mechanical seal' "$data" || true; }

step "Signatures for the malware scan"
ACCESSION_CLAMAV_DATABASE=$(scripts/signatures.sh "$work/signatures")
export ACCESSION_CLAMAV_DATABASE

step "Start the service: one process, a folder, nothing configured"
began=$EPOCHREALTIME
start_service
export ACCESSION_URL=http://127.0.0.1:$port
say "accession serve --data $data --listen 127.0.0.1:$port"
say "ready after $(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) ms"

step "The admin issues two keys for the organization \"$organization\": one uploads, one reads"
uploader=$work/uploader-key
reader=$work/reader-key
issue_key solution_company_upload "$uploader"
issue_key ai_reader "$reader"
say "solution_company_upload and ai_reader, kept in files only this user can read"

consent=(--accept --consent-user-id demo-user --consent-email demo@example.org)
step "Upload a scanned document: $document, pictures only, no text in it"
"$accession" upload "$document" --org $organization --token-file "$uploader" "${consent[@]}" 2>&1 | tee "$work/upload.log"
upload=$(upload_in "$work/upload.log")
[ -n "$upload" ] || fail "the upload command named no upload"
"$accession" status "$upload" --org $organization --token-file "$uploader" --json >"$work/status.json"
grep -qE '"status" *: *"READY"' "$work/status.json" || fail "the upload is not READY"

step "What an AI reader gets: bounded, labelled, unverified"
"$accession" context "$upload" --org $organization --token-file "$reader"

step "What the organization uses of its allowance"
"$accession" quota --org $organization --token-file "$uploader"

step "The record of that reading (no context is served without one)"
get "/api/v1/organizations/$organization/request-records?upload_id=$upload" "$reader" >"$work/records"
head -n 1 "$work/records" | grep -q ' 200 ' || fail "no request records: $(head -n 1 "$work/records")"
grep -q '"record_hash"' "$work/records" || fail "the reading left no record"
sed -n '/^$/,$p' "$work/records" | grep -oE '"(record_id|outcome|surface|bytes|context_sha256|served_at|record_hash)" *: *("[^"]*"|[0-9]+)' |
  sed 's/"//g; s/ *: */ /; s/^/   /'

step "A file with the EICAR test virus in it is refused"
# In two pieces, so that a scanner on this machine leaves this script alone.
printf '%s%s' 'X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STAND' 'ARD-ANTIVIRUS-TEST-FILE!$H+H*' >"$work/eicar.txt"
status=0
"$accession" upload "$work/eicar.txt" --org $organization --token-file "$uploader" "${consent[@]}" 2>&1 |
  tee "$work/eicar.log" || status=$?
[ $status -eq 6 ] || fail "the test virus was not rejected (exit code $status, expected 6)"
"$accession" withdraw "$(upload_in "$work/eicar.log")" --org $organization --token-file "$uploader" >/dev/null
say "refused, and withdrawn"

step "Withdraw the document"
say "before: $(files_of_upload) files and folders of it under the data folder"
[ "$(files_of_upload)" -gt 0 ] || fail "no stored bytes were found to delete, so the check after would prove nothing"
say "files there that hold its words in clear: $(files_in_clear | wc -l)"
"$accession" withdraw "$upload" --org $organization --token-file "$uploader" --reason "end of the demo"

step "Nothing is left"
"$accession" status "$upload" --org $organization --token-file "$uploader" --json >"$work/status.json"
grep -qE '"status" *: *"WITHDRAWN"' "$work/status.json" || fail "the upload is not WITHDRAWN"
say "status: WITHDRAWN"
context=/api/v1/organizations/$organization/ai-context/$upload
answers 404 "$context" "$reader" || answers 410 "$context" "$reader" || fail "the context still answers"
say "context: gone ($(get "$context" "$reader" | head -n 1 | cut -d' ' -f2))"
[ "$(files_of_upload)" -eq 0 ] || fail "files of the upload are left: $(find "$data" -path "*$upload*" | head -n 5)"
say "files of it under the data folder: 0"
[ -z "$(files_in_clear)" ] || fail "its words are still in: $(files_in_clear | head -n 5)"
say "files there that hold its words in clear: 0"
"$accession" quota --org $organization --token-file "$uploader" --json >"$work/quota.json"
for figure in used_bytes reserved_bytes; do
  grep -qE "\"$figure\" *: *0\b" "$work/quota.json" || fail "quota: $figure is not 0"
done
say "quota: 0 bytes used, 0 reserved"

step "Stop the service"
began=$EPOCHREALTIME
stop_service || fail "the service did not stop cleanly"
say "SIGTERM, stopped after $(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) ms; the folder is removed"
printf '\nDone. Keep a service to play with: make run\n'
