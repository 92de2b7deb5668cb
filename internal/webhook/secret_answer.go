package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/accession/accession/internal/custody"
)

// withSecret adds the secret that an answer names, to be shown beside it: the answer that is kept has none. A replay after the secret was destroyed has none either.
func (s *Service) withSecret(ctx context.Context, a custody.Answer, err error) (custody.Answer, string, error) {
	if err != nil {
		return custody.Answer{}, "", err
	}
	var kept struct {
		SecretID   string `json:"secret_id"`
		EndpointID string `json:"endpoint_id"`
		New        bool   `json:"secret_is_new"`
	}
	if err := json.Unmarshal(a.Data, &kept); err != nil {
		return custody.Answer{}, "", fmt.Errorf("reading the stored answer of a webhook: %w", err)
	}
	if !kept.New {
		return a, "", nil
	}
	keys, err := s.cfg.Keys.ReadSigningSecrets(ctx, custody.PurposeWebhook+kept.EndpointID)
	if err != nil {
		return custody.Answer{}, "", errors.Join(errors.New("read webhook secret"), err)
	}
	for _, k := range keys {
		if k.ID == kept.SecretID {
			return a, shown(k.Key), nil
		}
	}
	return a, "", nil
}
