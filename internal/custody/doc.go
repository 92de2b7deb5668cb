// Package custody holds the words of the service: what is kept, how it moves, who asks, and what may go wrong.
// It imports the standard library alone; every other room imports it.
//
//	organization   a tenant; owns uploads, credentials and quota
//	credential     a token bound to one organization and one role; a Caller is whoever presented it
//	upload         one document taken into custody, of kind partner, customer or correction
//	part           one sealed object of an upload's bytes; the ordered parts are the part ledger
//	status         where an upload stands (lifecycle.go); each change is a status Event with the next sequence
//	gate           one of six checks between complete and READY; its result is a row of its own
//	AI context     the bounded, labelled text that readers get; never evaluated, never verified
//	request record the durable evidence of one serving; chained by hash per organization
//	receipt        what remains after withdrawal: proof of deletion
//	quota          bytes an organization may keep, has reserved, and uses
package custody
