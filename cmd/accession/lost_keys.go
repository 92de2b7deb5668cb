package main

import "context"

const (
	custodyPage = 1000
	namedLost   = 20 // uploads without a key that one log line names
)

// findLostKeys says in the log which uploads nobody can read any more, because the metadata is older than the key store: it was
// restored, and they were withdrawn since. Nothing is withdrawn by itself: with a wrong key store that would cost everything.
func (svc *service) findLostKeys(ctx context.Context) error {
	var named []string
	lost := 0
	for after := ""; ; {
		ids, err := svc.store.InCustody(ctx, after, custodyPage)
		if err != nil {
			return err
		}
		for _, id := range ids {
			there, err := svc.keys.HasDataKey(ctx, id)
			if err != nil {
				return err
			}
			if !there && svc.stillInCustody(ctx, id) {
				if lost++; len(named) < namedLost {
					named = append(named, id)
				}
			}
		}
		if len(ids) < custodyPage {
			break
		}
		after = ids[len(ids)-1]
	}
	if lost > 0 {
		svc.log.WarnContext(ctx, "UPLOADS WITHOUT A DATA KEY: they can never be read again", "uploads", lost, "upload_ids", named,
			"advice", "right after a restore of metadata older than their withdrawal: withdraw them again; else the key store is not the one that belongs to this metadata")
	}
	return nil
}

// stillInCustody is false where an upload was withdrawn, or lapsed, since it was listed.
func (svc *service) stillInCustody(ctx context.Context, uploadID string) bool {
	status, err := svc.store.StatusOf(ctx, uploadID)
	return err == nil && status != "WITHDRAWING" && status != "WITHDRAWN" && status != "EXPIRED"
}
