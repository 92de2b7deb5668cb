// Package sandbox lets a stranger try the service without an account: it issues an ephemeral credential and echoes what
// its holder sends. (Sections 1, 2.7, 4.2.)
//
//	stranger ── Issue ──▶ token ── Authenticate ──▶ credential id ── Echo, Batch ──▶ the input again
//
// It has no store: what a token says is in the token, under a signature; nothing of a request outlives its answer. It
// cannot reach production data because there is no way from here to any: the fence in .depguard.yml and a test over the
// import graph hold that.
//
//	sandbox credential  a token that is good for Scope alone and ends by itself; it cannot be revoked
//	operation           one input of a batch
//	character           one Unicode code point, as JSON Schema counts maxLength; neither a byte nor what a reader sees as one
package sandbox
