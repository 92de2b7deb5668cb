package keystore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"        // awskms://
	_ "gocloud.dev/secrets/azurekeyvault" // azurekeyvault://
	_ "gocloud.dev/secrets/gcpkms"        // gcpkms://
	_ "gocloud.dev/secrets/hashivault"    // hashivault://
)

var keyServices = []string{"awskms", "gcpkms", "azurekeyvault", "hashivault"}

// ErrKeyService: a URL names no key service that can be used.
var ErrKeyService = errors.New("must be a file, or a URL of awskms, gcpkms, azurekeyvault or hashivault")

// IsKeyService tells whether place is a URL of a key service; ErrKeyService where it is a URL of anything else but a file. A key
// in the URL itself (base64key) is none: every process of the machine could read it.
func IsKeyService(place string) (bool, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	if !isURL || scheme == "file" {
		return false, nil
	}
	if u, err := url.Parse(place); err != nil || !slices.Contains(keyServices, scheme) || u.Host+u.Path == "" {
		return false, ErrKeyService
	}
	return true, nil
}

// OpenKeyService returns the keeper whose key-encryption key never leaves a key service: AWS KMS, Google Cloud KMS, Azure Key
// Vault, or the transit engine of HashiCorp Vault. It wraps and unwraps a probe, so that a service that starts can work. Who
// it is to the key service says the environment, as the driver documents (gocloud.dev/secrets).
func OpenKeyService(ctx context.Context, place string) (*secrets.Keeper, error) {
	keeper, err := secrets.OpenKeeper(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("key service: %w", err)
	}
	sealed, err := keeper.Encrypt(ctx, make([]byte, KeySize))
	if err == nil {
		_, err = keeper.Decrypt(ctx, sealed)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("key service: %w", err), keeper.Close())
	}
	return keeper, nil
}

// keeperTimeout is how long a key service may take over one key.
const keeperTimeout = 5 * time.Second

var errSilent = errors.New("the key service does not answer")

// ask has the keeper work on one secret. It waits no longer than ctx and keeperTimeout, whatever the driver does: that of
// HashiCorp Vault does not look at its context. A request that nobody waits for any more ends by the driver's own timeout.
func (s *Store) ask(ctx context.Context, work func(context.Context, []byte) ([]byte, error), secret []byte) ([]byte, error) {
	if _, isFile := s.keeper.(*KeyFile); isFile {
		return work(ctx, secret)
	}
	type answer struct {
		secret []byte
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	answered := make(chan answer, 1)
	go func() {
		secret, err := work(ctx, secret)
		answered <- answer{secret, err}
	}()
	select {
	case a := <-answered:
		return a.secret, a.err
	case <-ctx.Done():
		return nil, errors.Join(errSilent, ctx.Err())
	}
}
