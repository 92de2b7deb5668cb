#!/usr/bin/env bash
# Makes one small real document of each format from harbour-note.html, with the programs people use. Needs LibreOffice
# (writer, calc, impress), Ghostscript, poppler-utils, libtiff-tools, webp, zip, python3. Only for whoever changes the
# source; tests use the files that are checked in.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
convert() { # format, file, options
  soffice "-env:UserInstallation=file://$work/profile" --headless "${@:3}" --convert-to "$1" --outdir "$work" "$2" >/dev/null 2>&1
}

convert odt harbour-note.html '--infilter=HTML (StarWriter)'
for to in docx doc rtf epub pdf 'txt:Text (encoded):UTF8'; do convert "$to" "$work/harbour-note.odt"; done
convert 'ods:calc8' harbour-note.csv
for to in xlsx xls; do convert "$to" "$work/harbour-note.ods"; done
python3 slides.py "$work/harbour-note.fodp"
for to in odp pptx ppt; do convert "$to" "$work/harbour-note.fodp"; done
for ending in odt docx doc rtf epub pdf ods xlsx xls odp pptx ppt txt; do cp "$work/harbour-note.$ending" .; done
iconv -f UTF-8 -t UTF-16 harbour-note.txt >harbour-note.utf-16.txt
iconv -f UTF-8 -t WINDOWS-1252//TRANSLIT harbour-note.txt >harbour-note.windows-1252.txt

pdftoppm -r 150 -gray -png -singlefile -x 0 -y 0 -W 1240 -H 620 harbour-note.pdf harbour-note
pdftoppm -r 150 -gray -jpeg -singlefile -x 0 -y 0 -W 1240 -H 620 harbour-note.pdf harbour-note
pdftoppm -r 150 -mono -tiff -singlefile -x 0 -y 0 -W 1240 -H 620 harbour-note.pdf "$work/harbour-note"
tiffcp -c g4 "$work/harbour-note.tif" harbour-note.tiff
cwebp -quiet -q 80 harbour-note.png -o harbour-note.webp
mv harbour-note.jpg harbour-note.jpeg

python3 letter.py harbour-note.docx >harbour-note.eml
rm -f harbour-note.zip
zip -q -X harbour-note.zip harbour-note.docx harbour-note.png harbour-note.csv
tar --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cf harbour-note.tar harbour-note.pdf harbour-note.html
gzip -9nc harbour-note.tar >harbour-note.tar.gz
gzip -9nc harbour-note.txt >harbour-note.txt.gz
ls -l
