// Package httpapi is the REST door of the service: it decodes, calls a room, and renders; nothing else.
//
//	bytes   → request    what is none is refused in the error shape                       listener.go
//	request → identify   request_id and trace_id; one log line; panics become 500        exchange.go
//	        → count      how often this address may ask                                   ratelimit.go
//	        → route      unknown paths and methods in the error shape                     door.go
//	        → admit      authenticate, count the caller, authorize, form of query and body  admission.go
//	        → validate   the published schema is what is enforced (huma)                  value.go, field.go
//	        → act        one operation of a domain calls its room                         upload.go, context.go, …
//	        → answer     envelope {request_id, trace_id, data}, or the error object       answer.go, problem.go
//
// Each domain is a small struct that mounts its own operations; New wires them in one list. The OpenAPI document is made
// from the same operations (document.go), and says which of them are going away (deprecation.go).
package httpapi
