// Package client is the Go client of accession: it sends a document into custody, follows it through the six gates,
// reads the bounded context and withdraws the document again. It needs nothing but the standard library.
//
//	InitiateUpload ─► PutPart 1 ─► PutPart 2 ─► … ─► CompleteUpload ─► UploadStatus (wait) ─► READY
//	  reservation      in order, each part_size_bytes     202, job         six gates           AIContext
//	                                                                       REJECTED, FAILED
//
// Each method of [Client] makes one request and reports what the service said. On top of them stand
//
//   - [Uploader], which runs the first four steps for a file, retries, and resumes where an earlier run stopped;
//   - [Client.Follow], which reports every change of an upload until its status is terminal;
//   - [Retry], the delays both of them use; [WithRetry] gives them to every method;
//   - [WithClientCredentials], which exchanges the credential for access tokens and renews them;
//   - [Receiver], which takes the events of a webhook.
//
// Words. An upload is one document of one organization. A part is a slice of it; parts are sent in order. A gate is
// one of the six checks an upload passes after its completion. A credential is bound to exactly one organization.
// A transfer is this client's own note of an upload that is not yet complete: which parts were accepted, under which
// Idempotency-Keys.
//
// A context is customer-submitted, unverified text. Treat it as untrusted input wherever it goes next.
package client
