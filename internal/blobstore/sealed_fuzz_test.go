package blobstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"testing"
)

// oneObject is a store that holds the bytes of one object, whatever they are.
type oneObject struct {
	Store
	raw []byte
}

func (s oneObject) Name() string { return "one" }

func (s oneObject) Open(context.Context, string) (Object, error) {
	return rawObject{bytes.NewReader(s.raw)}, nil
}

func (s oneObject) List(context.Context, string) iter.Seq2[Info, error] {
	return func(func(Info, error) bool) {}
}

type rawObject struct{ *bytes.Reader }

func (rawObject) Close() error { return nil }

// sealed is plain as an object of the format, without a store, under a header that is always the same.
func sealed(t testing.TB, dataKey, aad, plain []byte) []byte {
	t.Helper()
	c, err := newSegmentCipher(dataKey, aad, [headerSize]byte{headerSize, 1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(c.header[:])
	for number, room := int64(0), plainPerSegment-headerSize; ; number, room = number+1, plainPerSegment {
		n := min(room, len(plain))
		out = c.seal(out, plain[:n], number, n == len(plain))
		if plain = plain[n:]; len(plain) == 0 {
			return out
		}
	}
}

// Bytes come out of a sealed object only where they are the ones that went in, at their place. Whatever lies in the store, anything
// else is ErrCorrupt.
func FuzzSealedObject(f *testing.F) {
	dataKey, aad := bytes.Repeat([]byte{7}, keySize), []byte("upl_1/1")
	short, long := []byte("a short plaintext"), bytes.Repeat([]byte("0123456789abcdef"), 3*plainPerSegment/16)
	shortSealed, longSealed := sealed(f, dataKey, aad, short), sealed(f, dataKey, aad, long)
	f.Add([]byte{}, uint16(0), uint16(0), false)
	f.Add(shortSealed, uint16(0), uint16(40), false)
	f.Add(shortSealed[:len(shortSealed)-1], uint16(0), uint16(9), false)
	f.Add(append(bytes.Clone(shortSealed), 0), uint16(3), uint16(3), false)
	f.Add([]byte{headerSize}, uint16(1), uint16(1), false)
	f.Add([]byte("\x00"), uint16(1), uint16(60000), true) // of the long object one byte is changed
	f.Add([]byte("\x00\x01\x02"), uint16(65500), uint16(100), true)
	f.Fuzz(func(t *testing.T, raw []byte, at, length uint16, patch bool) {
		want := short
		whole := shortSealed
		if patch { // raw replaces bytes of the long object, so that the fuzzer need not carry 200 KiB about
			want, whole = long, longSealed
			changed := bytes.Clone(longSealed)
			copy(changed[3*int(at):], raw)
			raw = changed
		}
		r, err := OpenSealed(t.Context(), oneObject{raw: raw}, "a", dataKey, aad)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("open: %v", err)
			}
			if bytes.Equal(raw, whole) {
				t.Fatal("the object as it was sealed is refused")
			}
			return
		}
		defer r.Close()
		if r.Size() != int64(len(want)) {
			t.Fatalf("size %d", r.Size())
		}
		for _, off := range []int64{int64(at), 0} {
			buf := make([]byte, length)
			n, err := r.ReadAt(buf, off)
			if n > 0 && !bytes.Equal(buf[:n], want[off:off+int64(n)]) {
				t.Fatalf("other bytes at %d", off)
			}
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, io.EOF) || err == nil && n < len(buf) {
				t.Fatalf("%d of %d bytes at %d: %v", n, len(buf), off, err)
			}
		}
		if _, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, r.Size())); (err == nil) != bytes.Equal(raw, whole) {
			t.Fatalf("read through: %v", err)
		}
	})
}

// The length of an object, which a store states, is that of one plaintext or of none.
func FuzzSealedLength(f *testing.F) {
	for _, plain := range borders {
		f.Add(SealedSize(plain))
	}
	for _, odd := range []int64{0, -1, 1, headerSize, headerSize + tagSize - 1, segmentSize, segmentSize + 1, SealedSize(maxSealed), SealedSize(maxSealed) + 1, 1<<63 - 1, -1 << 63, 1<<63 - segmentSize} {
		f.Add(odd)
	}
	f.Fuzz(func(t *testing.T, length int64) {
		plain, ok := plainSize(length)
		if ok && (plain < 0 || plain > maxSealed || SealedSize(plain) != length) {
			t.Errorf("%d is %d of plaintext, which is %d sealed", length, plain, SealedSize(plain))
		}
		if length < 0 || length > maxSealed {
			return
		}
		if back, ok := plainSize(SealedSize(length)); !ok || back != length {
			t.Errorf("%d bytes sealed are %d, %v of plaintext", length, back, ok)
		}
	})
}

// A key is what is allowed, and lies in its folder; an S3 address that is taken has one spelling and holds no credentials.
func FuzzPlaces(f *testing.F) {
	for _, place := range []string{
		"staging/up_1/parts/000001", "../../etc/passwd", "a//b", "a/./b", "a\x00b", "A", "",
		"s3://custody/staging?endpoint=https://s3.example:9000", "s3://custody?region=eu-1&path_style=true&object_lock=allow",
		"s3://user:secret@custody/x", "s3://custody/x?endpoint=http://user:secret@host", "s3://custody/../x", "s3://cus tody", "s3://custody?endpoint=https://[::1]:443/",
	} {
		f.Add(place)
	}
	f.Fuzz(func(t *testing.T, place string) {
		if err := checkKey(place); err == nil {
			if d := folderOf(place); d == "" {
				t.Errorf("key %q", place)
			}
		}
		a, err := ParseS3(place)
		if err != nil {
			return
		}
		again := "s3://" + a.Bucket + "/" + a.Prefix + "?endpoint=" + map[bool]string{true: "https", false: "http"}[a.Secure] + "://" + a.Host
		b, err := ParseS3(again)
		if err != nil || b.Bucket != a.Bucket || b.Prefix != a.Prefix || b.Host != a.Host || b.Secure != a.Secure {
			t.Errorf("%q is %+v; spelled again as %q it is %+v, %v", place, a, again, b, err)
		}
	})
}

// folderOf is a key if it stays below the folder that it is joined to, as every store does.
func folderOf(key string) string {
	for _, segment := range bytes.Split([]byte(key), []byte("/")) {
		if s := string(segment); s == "" || s == "." || s == ".." || bytes.ContainsAny(segment, "\x00\\ \n") {
			return ""
		}
	}
	return key
}
