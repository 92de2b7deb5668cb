package archive

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"
)

// tally counts what is read of content.
type tally struct {
	*bytes.Reader
	read int64
}

func (c *tally) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.Reader.ReadAt(p, offset)
	c.read += int64(n)
	return n, err
}

// open walks a container and every container in it.
func open(raw []byte, limits Limits) (b *Budget, deepest, visited int, err error) {
	b = NewBudget(limits, int64(len(raw)))
	level := 0
	var visit Visitor
	inner := func(raw []byte) error {
		kind, ok := Detect(bytes.NewReader(raw), int64(len(raw)))
		if !ok {
			return nil
		}
		level++
		defer func() { level-- }()
		deepest = max(deepest, level)
		return Walk(kind, bytes.NewReader(raw), int64(len(raw)), b, visit)
	}
	visit = func(_ Member, content io.Reader) error {
		visited++
		raw, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return inner(raw)
	}
	err = inner(raw)
	return b, deepest, visited, err
}

// zeros is a member of that many MiB of zeros, quickly made: flushed blocks can be put behind each other.
func zeros(name string, mib int) row {
	chunk := make([]byte, 1<<20)
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9)
	_, _ = w.Write(chunk)
	_ = w.Flush()
	packed := append(bytes.Repeat(b.Bytes(), mib), 3, 0)
	var sum uint32
	for range mib {
		sum = crc32.Update(sum, crc32.IEEETable, chunk)
	}
	return row{name: name, content: string(packed), method: deflated, sum: sum, packed: uint32(len(packed)), size: uint32(mib) << 20}
}

// TestNestedBomb is built like 42.zip: sixteen zips in each of five zips in each other, a gigabyte in each of the innermost.
func TestNestedBomb(t *testing.T) {
	level := zipOf(zeros("0.dll", 1024))
	leaf := int64(len(level))
	for range 5 {
		var rows []row
		for i := range 16 {
			rows = append(rows, squeezed(fmt.Sprintf("%d.zip", i), string(level)))
		}
		level = zipOf(rows...)
	}
	if len(level) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(level))
	}
	b, deepest, visited, err := open(level, DefaultLimits())
	if !errors.Is(err, ErrRatio) || deepest != 6 || visited != 5 {
		t.Fatalf("level %d, %d members visited, error %v; want ErrRatio at level 6 after 5", deepest, visited, err)
	}
	if most := leaf + 512<<10; b.Expanded() > most {
		t.Errorf("%d bytes expanded, want at most %d", b.Expanded(), most)
	}
	t.Logf("%d bytes stand for 1 PiB; %d bytes were expanded before it was refused", len(level), b.Expanded())

	limits := DefaultLimits()
	limits.Depth = 4
	if _, _, _, err = open(level, limits); !errors.Is(err, ErrTooDeep) {
		t.Errorf("depth 4: %v", err)
	}
	limits = DefaultLimits()
	limits.Members = 15
	if b, _, _, err = open(level, limits); !errors.Is(err, ErrTooMany) || b.Members() > 0 {
		t.Errorf("15 members: %v after %d", err, b.Members())
	}
}

// TestFlatBombIsRefusedBeforeExpansion: what is read is the directory, nothing is expanded and nobody is visited.
func TestFlatBombIsRefusedBeforeExpansion(t *testing.T) {
	var rows []row
	for i := range 8 {
		rows = append(rows, zeros(fmt.Sprint(i), 64))
	}
	for name, c := range map[string]struct {
		raw  []byte
		want error
	}{
		"ratio":    {zipOf(rows...), ErrRatio},
		"overlaps": {overlapping(2000), ErrRatio},
		"few":      {overlapping(10), ErrBroken},
		"quoted":   {quoting(), ErrBroken},
	} {
		content := &tally{Reader: bytes.NewReader(c.raw)}
		b := NewBudget(DefaultLimits(), int64(len(c.raw)))
		err := Walk(Zip, content, int64(len(c.raw)), b, func(Member, io.Reader) error { t.Errorf("%s: visited", name); return nil })
		if !errors.Is(err, c.want) || b.Expanded() != 0 {
			t.Errorf("%s: %v after %d bytes", name, err, b.Expanded())
		}
		if most := int64(512 + 66_000 + len(c.raw)); content.read > most {
			t.Errorf("%s: %d bytes of %d were read", name, content.read, len(c.raw))
		}
		t.Logf("%s: %d bytes, %d of them read, none expanded", name, len(c.raw), content.read)
	}
}

// overlapping is a zip whose directory has the same member n times.
func overlapping(n int) []byte {
	member := squeezed("k", strings.Repeat("x", 1<<20))
	rows := []row{member}
	member.shared, member.at = true, -1
	for range n - 1 {
		rows = append(rows, member)
	}
	return zipOf(rows...)
}

// quoting is David Fifield's better zip bomb, with two members: the first's data are a block that quotes the header of the second,
// and then the second's data. https://www.bamsoftware.com/hacks/zipbomb/
func quoting() []byte {
	second := squeezed("second", strings.Repeat("x", 1<<10))
	full := zipOf(second)
	local := string(full[:bytes.Index(full, directorySignature)])
	head := local[:localBytes+len("second")]
	first := row{name: "first", method: deflated}
	first.content = "\x00" + le(uint16(len(head)), ^uint16(len(head))) + local
	body, err := io.ReadAll(flate.NewReader(strings.NewReader(first.content)))
	if err != nil {
		panic(err)
	}
	first.packed, first.size, first.sum = uint32(len(first.content)), uint32(len(body)), crc32.ChecksumIEEE(body)
	second.shared, second.at = true, localBytes+len("first")+5
	return zipOf(first, second)
}

func TestQuine(t *testing.T) {
	// Russ Cox, Zip Files All The Way Down: r.zip contains r/r.zip, which is r.zip. Written in hex: scanners find it.
	raw, err := hex.DecodeString(quine)
	if err != nil {
		t.Fatal(err)
	}
	_, deepest, visited, err := open(raw, DefaultLimits())
	if !errors.Is(err, ErrTooDeep) || deepest != 9 || visited != 8 {
		t.Errorf("level %d, %d visited, error %v; want ErrTooDeep at the ninth", deepest, visited, err)
	}
}

func TestStreamsThatGrow(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for range 64 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	raw := packed.Bytes()
	allowed := int64(freeBytes + 200*len(raw))
	for name, c := range map[string]struct {
		change func(*Limits)
		most   int64
		want   error
	}{
		"ratio":  {func(*Limits) {}, allowed, ErrRatio},
		"member": {func(l *Limits) { l.MemberBytes = 1 << 20 }, 1 << 20, ErrTooLarge},
		"in all": {func(l *Limits) { l.ExpandedBytes = 2 << 20 }, 2 << 20, ErrTooLarge},
		"none":   {func(l *Limits) { l.Ratio = 2000 }, 64 << 20, nil},
	} {
		limits := DefaultLimits()
		c.change(&limits)
		b := NewBudget(limits, int64(len(raw)))
		var handed int64
		err := Walk(Gzip, bytes.NewReader(raw), int64(len(raw)), b, func(_ Member, content io.Reader) error {
			n, err := io.Copy(io.Discard, content)
			handed = n
			return err
		})
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) || handed > c.most || b.Expanded() > c.most {
			t.Errorf("%s: %v after %d bytes; want %v after at most %d", name, err, handed, c.want, c.most)
		}
	}
}

const quine = "504b03041400000008000803643cf9f4896448010000b801000007000000722f722e7a6970002500daff504b03041400000008000803643cf9f4896448010000" +
	"b801000007000000722f722e7a6970002f00d0ff002500daff504b03041400000008000803643cf9f4896448010000b801000007000000722f722e7a6970002f" +
	"00d0ffc2548e5739000500faffc2548e5739000500faff000500faff001400ebffc2548e5739000500faff000500faff001400ebff428821c400001400ebff42" +
	"8821c400001400ebff428821c400001400ebff428821c400001400ebff428821c400000000ffff000000ffff003400cbff428821c400000000ffff000000ffff" +
	"003400cbff42e8215e0f000000ffff0af066641261c015dce8a048bf48af2ab320c09b950dc46704425306060640000600f9ff6d010000000042e8215e0f0000" +
	"00ffff0af066641261c015dce8a048bf48af2ab320c09b950dc46704425306060640000600f9ff6d0100000000504b010214001400000008000803643cf9f489" +
	"6448010000b8010000070000000000000000000000000000000000722f722e7a6970504b05060000000001000100350000006d0100000000"
