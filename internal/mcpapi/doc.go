// Package mcpapi is the MCP door of the service: what an agent may ask, it asks here. It decodes, calls the rooms that the REST
// door calls, and renders; nothing else. (Section 5, rule 6; contract decisions, "Authentication per operation".)
//
//	POST → Answer    one message, no batches; no browsers of other sites; answers are whole, so their status can still change
//	     → SDK       protocol revisions, headers, JSON-RPC
//	     → receive   which methods there are; tools/call needs a credential and its scopes, everything else is public
//	     → tool      one call of a room, with the caller of this very request
//	     → result    the text of a document between boundary lines, or an error that says what to do
//
// There are no sessions: a session would keep the identity of its first request. Every request brings its own credential.
// No tool lists uploads, and none returns the bytes that were uploaded.
package mcpapi
