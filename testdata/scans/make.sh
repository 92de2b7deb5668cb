#!/usr/bin/env bash
# Makes pump-station-record.pdf, a scan with no text layer, from its HTML source.
# Needs LibreOffice, Ghostscript, poppler-utils, tesseract and Go. Only for
# whoever changes the source; tests and demo use the PDF that is checked in.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
name=pump-station-record
dpi=200

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

soffice "-env:UserInstallation=file://$work/profile" --headless \
  --convert-to pdf:writer_web_pdf_Export --outdir "$work" "$name.html" >/dev/null
gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=pnggray "-r$dpi" \
  -dTextAlphaBits=4 -dGraphicsAlphaBits=4 "-sOutputFile=$work/page-%d.png" "$work/$name.pdf"
go -C ../../tools run ./scan -dpi "$dpi" -out "$here/$name.pdf" "$work"/page-*.png

# The two things a reader of the tests relies on.
if pdftotext "$name.pdf" - | grep -q '[[:alnum:]]'; then
  echo "$name.pdf has a text layer; it must be pictures only" >&2
  exit 1
fi
pdftoppm -r "$dpi" -gray -png "$name.pdf" "$work/read"
for picture in "$work"/read-*.png; do
  OMP_THREAD_LIMIT=1 tesseract "$picture" - --psm 1 -l eng 2>/dev/null
done | tr -s '[:space:]' ' ' >"$work/read.txt"
for words in \
  'The station lifts storm water from the lower harbour district into the tidal basin' \
  'ISO 9001 certified plant' \
  'block a pump during a storm' \
  'Before the repair, pump 2 delivered 164 litres per second' \
  'their voltage fell to 8.4 volts under load' \
  'Please let us know by the end of August'; do
  grep -qF "$words" "$work/read.txt" || { echo "tesseract does not read: $words" >&2; exit 1; }
done
ls -l "$name.pdf"
