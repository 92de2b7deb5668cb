package blobstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A sealed object is Tink's AES-256-GCM-HKDF streaming format (HKDF-SHA256, 32-byte
// derived keys, 64 KiB segments, no first-segment offset): tink-go reads it.
//
//	header   1 byte its length (40), 32 bytes salt, 7 bytes nonce prefix
//	segment  ciphertext ∥ 16-byte tag, segmentSize bytes; the last is shorter, and the
//	         first too, so that header and first segment fill segmentSize together
//	nonce    prefix ∥ segment number (32-bit big-endian) ∥ 1 for the last segment, else 0
//	key      HKDF-SHA256(data key, salt, info = associated data)
const (
	segmentSize      = 64 << 10
	headerSize       = 1 + saltSize + prefixSize
	saltSize         = 32
	prefixSize       = 7
	tagSize          = 16
	keySize          = 32
	plainPerSegment  = segmentSize - tagSize
	segmentsPerBlock = BlockSize / segmentSize
	plainPerBlock    = segmentsPerBlock * plainPerSegment
	// maxSealed keeps far below the 2³² segments of the nonce.
	maxSealed = 1 << 40
)

// segments is how many segments plain bytes take; no bytes take one.
func segments(plain int64) int64 {
	return max(1, (plain+headerSize+plainPerSegment-1)/plainPerSegment)
}

// SealedSize is the length in bytes of the object that Seal makes of plain bytes of
// plaintext: 40 bytes of header and 16 for every 64 KiB segment come on top.
func SealedSize(plain int64) int64 {
	return plain + headerSize + segments(plain)*tagSize
}

// plainSize is the inverse of SealedSize; ok is false for a length that SealedSize
// never gives.
func plainSize(sealed int64) (plain int64, ok bool) {
	n := (sealed + segmentSize - 1) / segmentSize
	plain = sealed - headerSize - n*tagSize
	return plain, plain >= 0 && plain <= maxSealed && SealedSize(plain) == sealed
}

// segmentCipher is the derived key and nonce prefix of one object.
type segmentCipher struct {
	aead   cipher.AEAD
	header [headerSize]byte
}

func newHeader() (header [headerSize]byte) {
	header[0] = headerSize
	rand.Read(header[1:]) // never fails (crypto/rand)
	return header
}

func newSegmentCipher(dataKey, aad []byte, header [headerSize]byte) (*segmentCipher, error) {
	if len(dataKey) != keySize {
		return nil, fmt.Errorf("data key has %d bytes, want %d", len(dataKey), keySize)
	}
	key, err := hkdf.Key(sha256.New, dataKey, header[1:1+saltSize], string(aad), keySize)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	return &segmentCipher{aead: aead, header: header}, nil
}

func (c *segmentCipher) nonce(segment int64, last bool) (nonce [12]byte) {
	copy(nonce[:], c.header[1+saltSize:])
	binary.BigEndian.PutUint32(nonce[prefixSize:], uint32(segment))
	if last {
		nonce[len(nonce)-1] = 1
	}
	return nonce
}

// seal appends the sealed segment to dst.
func (c *segmentCipher) seal(dst, plain []byte, segment int64, last bool) []byte {
	nonce := c.nonce(segment, last)
	return c.aead.Seal(dst, nonce[:], plain, nil)
}

// open decrypts in place and returns the plaintext; ErrCorrupt.
func (c *segmentCipher) open(sealed []byte, segment int64, last bool) ([]byte, error) {
	nonce := c.nonce(segment, last)
	plain, err := c.aead.Open(sealed[:0], nonce[:], sealed, nil)
	if err != nil {
		return nil, ErrCorrupt
	}
	return plain, nil
}

// block is a buffer, page-aligned for O_DIRECT, and what is in it.
type block struct {
	buf   []byte
	used  []byte       // the part of buf that is filled
	index int64        // of the block in the object
	users atomic.Int32 // that still need it
}

// blocks holds those that nobody uses, by length: align, twice that, and so on up to BlockSize. Most objects are
// short, and hundreds of them are under way at once.
var blocks [blockLengths]sync.Pool

const blockLengths = 9 // align << 8 is BlockSize

// lengthClass is the index in blocks of the shortest that hold n bytes, BlockSize at most.
func lengthClass(n int64) int { return bits.Len64(uint64(max(n, 1)-1) / align) }

// newBlock gives a block for n bytes, BlockSize at most.
func newBlock(n int64) *block {
	class := lengthClass(n)
	if b, ok := blocks[class].Get().(*block); ok {
		return b
	}
	length := align << class
	buf := make([]byte, length+align)
	if past := misalignment(buf); past != 0 {
		buf = buf[align-past:]
	}
	return &block{buf: buf[:length:length]}
}

// release gives b back; nobody may use it any more.
func (b *block) release() { blocks[lengthClass(int64(len(b.buf)))].Put(b) }

// room is how many bytes of plaintext the block of that index takes, so that it fills
// BlockSize when sealed.
func room(index int64) int64 {
	if index == 0 {
		return plainPerBlock - headerSize
	}
	return plainPerBlock
}

// sealBlock seals the plaintext of from into to; last when none follows.
func (c *segmentCipher) sealBlock(to, from *block, last bool) {
	to.used = to.buf[:0]
	room := plainPerSegment
	if from.index == 0 {
		to.used = append(to.used, c.header[:]...)
		room -= headerSize
	}
	plain := from.used
	for number := from.index * segmentsPerBlock; ; number++ {
		n := min(room, len(plain))
		to.used = c.seal(to.used, plain[:n], number, last && n == len(plain))
		if plain = plain[n:]; len(plain) == 0 { // an empty object has one empty segment
			return
		}
		room = plainPerSegment
	}
}
