package tenant

import (
	"crypto/rsa"
	"crypto/sha256"
	"sync"
)

const (
	mostVerified    = 1024 // access tokens that a generation holds; there are two
	longestVerified = 2048 // bytes of a token that is held: what it says is not much more
)

// verifiedTokens are access tokens whose signature was found good, and by which key. To check a signature again with the same key
// can say nothing else, and costs more than all that is asked of a token besides: whether the key is still there, whether the
// token has ended or was revoked, and what its credential may. That is asked at every request. Neither token nor key lies
// here: their digests, and what the token says.
type verifiedTokens struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verifiedToken
}

type verifiedToken struct {
	keyID string
	key   [sha256.Size]byte // of its modulus
	said  accessClaims
}

// modulusOf tells one key from another by the same id.
func modulusOf(k *rsa.PrivateKey) [sha256.Size]byte { return sha256.Sum256(k.N.Bytes()) }

func (v *verifiedTokens) get(digest [sha256.Size]byte) (verifiedToken, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, ok := v.young[digest]
	if !ok {
		if t, ok = v.old[digest]; ok {
			v.keep(digest, t) // it is in use
		}
	}
	return t, ok
}

func (v *verifiedTokens) put(digest [sha256.Size]byte, t verifiedToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep(digest, t)
}

// keep forgets what was not asked for while a whole generation came; v.mu is held.
func (v *verifiedTokens) keep(digest [sha256.Size]byte, t verifiedToken) {
	if v.young == nil || len(v.young) >= mostVerified {
		v.old, v.young = v.young, make(map[[sha256.Size]byte]verifiedToken)
	}
	v.young[digest] = t
}
