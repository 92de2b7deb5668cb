package tenant

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
)

// However many tokens come, two generations are held; one that is in use stays.
func TestVerifiedTokensAreBounded(t *testing.T) {
	var v verifiedTokens
	digest := func(n int) [sha256.Size]byte { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	v.put(digest(0), verifiedToken{keyID: "in use"})
	for n := range 5 * mostVerified {
		v.put(digest(n+1), verifiedToken{})
		if t0, ok := v.get(digest(0)); !ok || t0.keyID != "in use" {
			t.Fatalf("forgotten after %d others", n+1)
		}
		if held := len(v.young) + len(v.old); held > 2*mostVerified {
			t.Fatalf("%d are held", held)
		}
	}
	if _, ok := v.get(digest(1)); ok {
		t.Error("the first of the others is still held")
	}
}
