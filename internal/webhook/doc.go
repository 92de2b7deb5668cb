// Package webhook posts an organization's events to its callback URL: signed, in order per upload, at least once.
//
//	status event ─┐ same transaction
//	              └→ outbox row: due ─claimed by lease→ attempt ─→ delivered │ dead │ due again later
//
// Nothing is delivered while an earlier event of the same upload is pending. What an endpoint answers decides:
//
//	2xx                    delivered
//	409                    delivered before: done
//	400                    dead at once, shown to the operator
//	410                    the webhook is disabled until it is set again; its events wait
//	anything else, or none due again after a growing delay, for three days; then dead
//
// An endpoint that fails again and again is left alone for a while: its circuit is open. Then one delivery probes it.
// (Section 6; contract decisions, "Webhooks".)
package webhook
