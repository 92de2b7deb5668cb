// Package planted puts one known bug into the service, so that the tests can be seen to catch it: scripts/negative-controls.sh
// does so for each bug. A release holds none of it: without the build tag `planted` Bug is constantly false and the compiler
// removes what it guards.
//
// With the tag, ACCESSION_PLANTED names the bug. None is at work where it is empty or not set; a name that is not in Names ends
// the process, because a test against no bug proves nothing.
package planted

// Names of the bugs that can be planted. Where each lies is found by its name: planted.Bug("…").
var Names = []string{
	"object-not-synced",          // the bytes of an object are acknowledged from the page cache
	"name-not-synced",            // an object's name is acknowledged without a sync of its folder
	"acknowledged-before-commit", // a transaction is reported as durable, and then committed
	"key-of-another-request",     // an Idempotency-Key repeats its answer for another body
	"organization-forgotten",     // an upload is read without asking whose it is
	"revoked-accepted",           // a revoked credential still opens the door
	"scanner-silence-passes",     // no answer from the scanner is a pass
	"withdrawing-served",         // a context is served while its upload is being withdrawn
	"served-without-record",      // a context is served although its record could not be written
	"receipt-without-deletion",   // a receipt is signed although a backend did not confirm
}
