package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/accession/accession/internal/custody"
)

// partBody is a part on its way in: each read has the idle timeout, so that a stalled sender is cut and a slow one is not.
type partBody struct {
	body    io.Reader
	control *http.ResponseController
	idle    time.Duration
	left    int64
	failure *custody.Error // what the sender did wrong; it explains any error that follows
}

func (b *partBody) Read(p []byte) (int, error) {
	if b.failure != nil {
		return 0, b.failure
	}
	_ = b.control.SetReadDeadline(time.Now().Add(b.idle))
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left <= 0 {
		// The server watches the connection for a hang-up now; a deadline would look like one.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.failure = custody.Errorf(custody.CodeRequestTimeout, "the part did not go on arriving; send it again").Because(err)
	default:
		b.failure = custody.Errorf(custody.CodePartLengthInvalid, "the part ended before its Content-Length").Because(err)
	}
	return n, b.failure
}

// contentDigest takes the sha-256 member of Content-Digest (RFC 9530) as 64 lowercase hex digits; empty when there is none.
// Other algorithms are ignored, as the RFC has it; SHA-256 in capitals is none of them, though the RFC writes names in small letters.
func contentDigest(sent []string) (string, error) {
	digest := ""
	for member := range strings.SplitSeq(strings.Join(sent, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		if !strings.EqualFold(name, "sha-256") {
			continue
		}
		value, opened := strings.CutPrefix(value, ":")
		value, closed := strings.CutSuffix(value, ":")
		sum, err := base64.StdEncoding.DecodeString(value)
		if !opened || !closed || err != nil || len(sum) != sha256.Size {
			return "", invalid(field{"/header/Content-Digest", "expected sha-256=:<base64 of 32 bytes>:"})
		}
		digest = hex.EncodeToString(sum)
	}
	return digest, nil
}

// strictJSON refuses duplicate properties, invalid UTF-8 and trailing bytes. Its messages reach clients: they quote nothing.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(b []byte, v any) error {
		if len(b) > fewBytes && countValues(b) > maxValues {
			return fmt.Errorf("holds more than %d values and names", maxValues)
		}
		err := jsonv2.Unmarshal(b, v)
		var syntax *jsontext.SyntacticError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			return errors.New("holds a property twice")
		case errors.As(err, &syntax):
			return fmt.Errorf("is not valid JSON in UTF-8, at byte %d", syntax.ByteOffset)
		}
		return errors.New("holds a value that is not written in the form the contract asks for")
	},
}

// maxValues is how many values and names of properties a body holds: twice the longest ledger of parts that fits into one. Each costs
// many times its bytes once it is decoded and, if it is wrong, described.
const (
	maxValues = 250_000
	fewBytes  = maxValues // a shorter body cannot hold as many
)

// countValues counts no further than one too many. What is no JSON is for the decoder to refuse.
func countValues(b []byte) (n int) {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true))
	for n <= maxValues {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		if kind := token.Kind(); kind != '}' && kind != ']' {
			n++
		}
	}
	return n
}

// requestHash is the canonical form of a decoded request, hashed: SHA-256 over the JSON array of the operation, the ids and
// the body. (Contract decisions, "Idempotency-Key".)
func requestHash(op custody.Operation, decoded ...any) string {
	b, err := json.Marshal(append([]any{op}, decoded...))
	if err != nil {
		panic(err) // decoded from JSON: always encodable
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
