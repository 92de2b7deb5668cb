"""Writes two slides as a flat OpenDocument presentation, for LibreOffice to convert."""
import sys

FRAME = ('<draw:frame svg:width="24cm" svg:height="%s" svg:x="2cm" svg:y="%s"><draw:text-box>%s</draw:text-box></draw:frame>')


def slide(name, title, *lines):
    body = "".join("<text:p>%s</text:p>" % line for line in lines)
    return '<draw:page draw:name="%s">%s%s</draw:page>' % (
        name, FRAME % ("3cm", "1cm", "<text:p>%s</text:p>" % title), FRAME % ("10cm", "5cm", body))


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write('<?xml version="1.0" encoding="UTF-8"?><office:document'
              ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
              ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
              ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
              ' xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
              ' office:mimetype="application/vnd.oasis.opendocument.presentation" office:version="1.2">'
              '<office:body><office:presentation>'
              + slide("one", "Harbour Street note",
                      "The harbour office keeps this note about the north pier.",
                      "The lamps on the pier were cleaned in March by two people from the yard.")
              + slide("two", "The mark",
                      "Its mark is amber-lighthouse-44, and nobody needs to act on it before spring.",
                      "The café on the quay stays open until November.")
              + '</office:presentation></office:body></office:document>')
