package custody

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var idAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID makes "prefix_" and 26 characters: 48 bits of milliseconds, so that neighbours in time are neighbours in an
// index, and 80 random bits.
func NewID(prefix string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	rand.Read(b[6:])
	return prefix + "_" + idAlphabet.EncodeToString(b[:])
}

// Now is the present in the precision that custody keeps: UTC, milliseconds.
func Now() time.Time { return present().UTC().Truncate(time.Millisecond) }
