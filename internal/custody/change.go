package custody

import "time"

// Change asks the store to move an upload along the lifecycle: the status is compared and swapped, and the event and the
// audit line are written in the same transaction.
type Change struct {
	Trigger   Trigger
	Stage     GateName  // with TriggerGateChanged, and where a gate ended the processing
	GateState GateState // the gate's new state
	Failure   *Failure  // with TriggerContentRejected, TriggerGateExhausted, TriggerRescanRefused and TriggerReservationLapsed
	Cause     Cause
}

// Claim is one upload that a worker holds: nobody else works on it while the lease is kept alive.
type Claim struct {
	Upload  Upload
	Lease   string // names this hold
	Attempt int    // of the current gate or deletion, from 1
	Cause   Cause  // of the change that made the work: request and trace ids go on
}

// Lane is the statuses that one pool of workers takes up, so that long gates never hold up deletions.
type Lane []Status

var (
	LaneGates     = Lane{StatusProcessing}
	LaneDeletions = Lane{StatusInitiated, StatusReceiving, StatusWithdrawing} // lapsed reservations, and withdrawals
	LaneRescans   = Lane{StatusReady}                                         // stored uploads that are to be scanned again
)

// LeaseLifetime is how long a hold lasts without a heartbeat; a crashed worker's upload is taken over after it.
const LeaseLifetime = 3 * time.Second

// LongestWaits are more than work waits from one attempt to the next, by its kind: what waits longer waits for a time that was put back.
type LongestWaits struct {
	Gate    time.Duration // and a deletion; and more than anybody holds anything
	Rescan  time.Duration
	Webhook time.Duration // that is left alone; its deliveries may wait for longer, but since an attempt that is past
}

// Withdrawing is an accepted withdrawal that is not yet confirmed everywhere.
type Withdrawing struct {
	UploadID     string
	OrgID        string
	CredentialID string // or AdminCredentialID, RetentionCredentialID
	Reason       string
	RequestedAt  time.Time
	Attempts     int // deletions that were tried and not confirmed everywhere

	RetainedUntil    time.Time // the end of the retention that asked for it; zero where somebody did
	Unconfirmed      []string  // the backends that did not confirm the newest attempt
	UnconfirmedSince time.Time // the first attempt that was not confirmed; zero before
}
