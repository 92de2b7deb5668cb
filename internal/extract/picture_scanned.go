package extract

import (
	"bytes"
	"encoding/binary"
)

const inchesPerMetre = 39.3701

// pngScanned reads the density that a PNG gives (pHYs).
func pngScanned(raw []byte) (s scanned) {
	const signature, head = 8, 8
	for at := signature; at+head <= len(raw); {
		size := int64(binary.BigEndian.Uint32(raw[at:]))
		body := raw[at+head:]
		switch kind := string(raw[at+4 : at+head]); {
		case kind == "IDAT", size > int64(len(body)):
			return s
		case kind == "pHYs" && size == 9 && body[8] == 1: // per metre
			s.across = float64(binary.BigEndian.Uint32(body)) / inchesPerMetre
			s.down = float64(binary.BigEndian.Uint32(body[4:])) / inchesPerMetre
			return s
		}
		at += head + int(size) + 4
	}
	return s
}

// jpegScanned reads the density (JFIF) and the orientation (EXIF) that a JPEG gives.
func jpegScanned(raw []byte) (s scanned) {
	const app0, app1, startOfScan = 0xe0, 0xe1, 0xda
	for at := 2; at+4 <= len(raw) && raw[at] == 0xff && raw[at+1] != startOfScan; {
		size := int(binary.BigEndian.Uint16(raw[at+2:]))
		if size < 2 || at+2+size > len(raw) {
			return s
		}
		body := raw[at+4 : at+2+size]
		switch kind := raw[at+1]; {
		case kind == app0 && len(body) >= 12 && bytes.HasPrefix(body, []byte("JFIF\x00")):
			inch := map[byte]float64{1: 1, 2: 2.54}[body[7]]
			s.across = inch * float64(binary.BigEndian.Uint16(body[8:]))
			s.down = inch * float64(binary.BigEndian.Uint16(body[10:]))
		case kind == app1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
			if d, ok := firstDirectory(body[6:]); ok {
				s.turned = d.number(tiffOrientation)
			}
		}
		at += 2 + size
	}
	return s
}
