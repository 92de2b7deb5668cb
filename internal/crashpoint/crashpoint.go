// Package crashpoint marks the places between durable writes, so that a test can end the process at each of them in turn.
// A release holds none of it: without the build tag `crashpoints` Hit is empty and the compiler removes it.
//
// With the tag, ACCESSION_CRASH_AT decides:
//
//	not set   nothing happens
//	0         every hit is printed to standard error and the process lives: this counts a run
//	n         the n-th hit of the process is printed, then SIGKILL: nothing is flushed, closed or answered any more
//	a name    the same at the first hit of that name; with +n after it, n hits later
//
// What kill -9 cannot show is what the page cache hides: a write that was never synced survives it.
package crashpoint
