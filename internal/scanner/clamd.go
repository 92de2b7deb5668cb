package scanner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	// defaultWindow is the largest stream clamd accepts: 2 GiB - 1, in the whole MiB that its settings take.
	defaultWindow = 2047 << 20
	// defaultOverlap is above the 40 MiB up to which ClamAV looks for an executable inside another file.
	defaultOverlap = 64 << 20
	// defaultPatience is above the ten minutes that a managed clamd may spend on one stream.
	defaultPatience = 11 * time.Minute

	chunkBytes  = 256 << 10
	replyLimit  = 4 << 10
	dialTimeout = 5 * time.Second
)

// Clamd is a client of one clamd. It holds no connection and is safe for concurrent use; set the fields before the
// first scan.
//
// A clamd that is not Managed must have the settings named in managedSettings, or it passes what it did not
// look at: call Health, which tries that.
type Clamd struct {
	network, address string
	zone             *time.Location // of the dates clamd prints

	// WindowBytes is the longest stream sent at once, 2047 MiB when zero. It must not exceed clamd's StreamMaxLength.
	WindowBytes int64
	// OverlapBytes is how much of a window the next one repeats, so that what lies across a border is seen whole.
	// 64 MiB when WindowBytes is zero, else as set. Must be smaller than WindowBytes.
	OverlapBytes int64
	// Patience is the longest silence of clamd, while it takes a chunk or works out its reply, before it counts as
	// gone. 11 minutes when zero.
	Patience time.Duration
}

// NewClamd returns a client for a clamd at "unix:/path/to/socket" or "tcp:host:port". It does not connect. The error
// says how the address should look.
func NewClamd(address string) (*Clamd, error) {
	network, rest, _ := strings.Cut(address, ":")
	switch network {
	case "unix":
		if strings.HasPrefix(rest, "/") {
			return &Clamd{network: network, address: rest, zone: time.Local}, nil
		}
	case "tcp":
		if _, port, err := net.SplitHostPort(rest); err == nil && port != "" {
			return &Clamd{network: network, address: rest, zone: time.Local}, nil
		}
	}
	return nil, fmt.Errorf("clamd address %q: write unix:/path/to/socket or tcp:host:port", address)
}

// Scan sends size bytes of content to clamd and returns what it found. Content longer than WindowBytes goes in
// overlapping windows; then the engine sees no container whole, so signatures on a whole file and members of an archive
// that cross a border are missed. Report.Windows says so.
//
// An error is no answer and never a pass: it wraps ErrUnavailable when clamd is at fault or ctx ended (then also the
// cause of ctx), and the error of content when that could not be read to its size. When ctx ends Scan returns at
// once, except that it waits for a ReadAt in progress.
func (c *Clamd) Scan(ctx context.Context, content io.ReaderAt, size int64) (Report, error) {
	window, overlap := c.WindowBytes, c.OverlapBytes
	if window == 0 {
		window, overlap = defaultWindow, defaultOverlap
	}
	if size < 0 || overlap < 0 || window <= overlap {
		return Report{}, fmt.Errorf("scan of %d bytes in windows of %d overlapping by %d: sizes must be positive and "+
			"the overlap smaller than the window", size, window, overlap)
	}
	engine, err := c.version(ctx)
	if err != nil {
		return Report{}, err
	}
	total := Report{Outcome: Clean, Engine: engine}
	for offset := int64(0); ; offset += window - overlap {
		length := min(window, size-offset)
		found, err := c.stream(ctx, io.NewSectionReader(content, offset, length), length)
		if err != nil {
			return Report{}, err
		}
		total.Windows++
		total.ScannedBytes += found.ScannedBytes
		if found.Outcome == Infected {
			total.Outcome, total.Signature, total.Reason = Infected, found.Signature, ""
			return total, nil
		}
		if found.Outcome == Unscannable && total.Outcome == Clean { // a later window may still be infected
			total.Outcome, total.Reason = Unscannable, found.Reason
		}
		if offset+length >= size {
			return total, nil
		}
	}
}

// ScanStream scans content whose length is not known before it ends: one stream, so content of more than WindowBytes is
// Unscannable. Errors are Scan's; Engine is not in the Report.
func (c *Clamd) ScanStream(ctx context.Context, content io.Reader) (Report, error) {
	report, err := c.stream(ctx, content, toItsEnd)
	if errors.Is(err, errTooLong) {
		return Report{Outcome: Unscannable, Reason: "A file packed into the content is longer than the scan engine accepts."}, nil
	}
	report.Windows = 1
	return report, err
}

// toItsEnd is the length of a stream that is as long as its content.
const toItsEnd = -1

var errTooLong = errors.New("content is longer than one stream may be")

type reply struct {
	text string
	err  error
}

// stream sends one INSTREAM of length bytes, or toItsEnd. It reads the reply while it writes: past its limit clamd answers and closes.
func (c *Clamd) stream(ctx context.Context, content io.Reader, length int64) (Report, error) {
	conn, release, err := c.dial(ctx)
	if err != nil {
		return Report{}, err
	}
	defer release()
	replies := make(chan reply, 1)
	go func() {
		replies <- readReply(conn)
		conn.Close() // whatever is still being written is of no use any more
	}()

	sent, complete, err := c.send(conn, content, length)
	if err != nil {
		if errors.Is(err, errContent) || errors.Is(err, errTooLong) {
			return Report{}, err
		}
		return Report{}, noAnswer(ctx, "send content", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(c.patience())) // fails only after Close, when nobody reads any more
	answer := <-replies
	if ctx.Err() != nil {
		return Report{}, noAnswer(ctx, "wait for the reply", ctx.Err())
	}
	if answer.err != nil {
		return Report{}, noAnswer(ctx, "read the reply", answer.err)
	}
	report, err := parseScanReply(answer.text)
	if err != nil {
		return Report{}, err
	}
	if report.Outcome == Clean && !complete {
		return Report{}, unavailable("clamd answered OK before it had all of the content")
	}
	report.ScannedBytes = sent
	return report, nil
}

// errContent marks errors of the content itself, which say nothing about clamd.
var errContent = errors.New("read content to scan")

// send writes the content in chunks until it is complete, or until the connection closes: then clamd may have answered, so
// that is not an error here.
func (c *Clamd) send(conn net.Conn, content io.Reader, length int64) (sent int64, complete bool, err error) {
	write := func(p []byte) error {
		if err := conn.SetWriteDeadline(time.Now().Add(c.patience())); err != nil {
			return err
		}
		_, err := conn.Write(p)
		return err
	}
	if err := write([]byte("zINSTREAM\x00")); err != nil {
		return 0, false, err
	}
	longest := length
	if length == toItsEnd {
		longest = cmp.Or(c.WindowBytes, defaultWindow)
	}
	buf := make([]byte, 4+min(chunkBytes, longest))
	for sent < longest {
		n, err := io.ReadFull(content, buf[4:4+min(chunkBytes, longest-sent)])
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		switch {
		case ended && length == toItsEnd:
			longest = sent + int64(n)
		case err == io.EOF:
			return sent, false, fmt.Errorf("%w: %w", errContent, io.ErrUnexpectedEOF)
		case err != nil:
			return sent, false, fmt.Errorf("%w: %w", errContent, err)
		}
		if n == 0 {
			break
		}
		binary.BigEndian.PutUint32(buf, uint32(n))
		if write(buf[:4+n]) != nil {
			return sent, false, nil
		}
		sent += int64(n)
	}
	if length == toItsEnd && sent == cmp.Or(c.WindowBytes, defaultWindow) {
		if n, _ := io.ReadFull(content, buf[:1]); n > 0 {
			return sent, false, errTooLong
		}
	}
	return sent, write([]byte{0, 0, 0, 0}) == nil, nil
}

// version asks which engine and signatures answer.
func (c *Clamd) version(ctx context.Context) (Engine, error) {
	conn, release, err := c.dial(ctx)
	if err != nil {
		return Engine{}, err
	}
	defer release()
	if err := conn.SetDeadline(time.Now().Add(c.patience())); err != nil {
		return Engine{}, noAnswer(ctx, "ask for the version", err)
	}
	if _, err := io.WriteString(conn, "zVERSION\x00"); err != nil {
		return Engine{}, noAnswer(ctx, "ask for the version", err)
	}
	r := readReply(conn)
	if r.err != nil {
		return Engine{}, noAnswer(ctx, "read the version", r.err)
	}
	return parseVersion(r.text, c.zone)
}

// dial connects; the connection closes when ctx ends or release is called, which unblocks whoever uses it.
func (c *Clamd) dial(ctx context.Context) (conn net.Conn, release func(), err error) {
	conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, c.network, c.address)
	if err != nil {
		return nil, nil, noAnswer(ctx, "connect to clamd", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() { stop(); conn.Close() }, nil
}

func (c *Clamd) patience() time.Duration { return cmp.Or(c.Patience, defaultPatience) }

// readReply reads one reply, which ends with a NUL; a reply cut short is an error.
func readReply(conn net.Conn) reply {
	text, err := bufio.NewReader(io.LimitReader(conn, replyLimit)).ReadString(0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return reply{strings.TrimSuffix(text, "\x00"), err}
}

// noAnswer wraps a failed exchange. It drops net.OpError's addresses, and names the end of ctx as the cause where that
// is what closed the connection.
func noAnswer(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return unavailable("%s: %w", doing, err)
}
