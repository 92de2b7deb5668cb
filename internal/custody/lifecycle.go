package custody

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is where an upload stands. The comment of each says who acts next. (Contract decisions, "Statuses, stages, gates".)
type Status string

const (
	StatusInitiated   Status = "INITIATED"   // the uploader: send part 1 before expires_at
	StatusReceiving   Status = "RECEIVING"   // the uploader: send the next part, or complete
	StatusProcessing  Status = "PROCESSING"  // a worker: run the next gate
	StatusReady       Status = "READY"       // nobody: readers may read; new signatures may still find something in it
	StatusRejected    Status = "REJECTED"    // nobody: a gate refused the content; it may be withdrawn
	StatusFailed      Status = "FAILED"      // an operator: a gate could not finish; resume or withdraw
	StatusExpired     Status = "EXPIRED"     // nobody: the reservation lapsed, its bytes are gone
	StatusWithdrawing Status = "WITHDRAWING" // a worker: delete and confirm in every store; unreadable already
	StatusWithdrawn   Status = "WITHDRAWN"   // nobody, ever again: only the receipt and minimal audit metadata remain
)

// Trigger names why a status changed.
type Trigger string

const (
	TriggerReserved          Trigger = "reserved"
	TriggerPartAccepted      Trigger = "part_accepted"
	TriggerCompleted         Trigger = "completed"
	TriggerGateChanged       Trigger = "gate_changed"
	TriggerGatesPassed       Trigger = "gates_passed"
	TriggerContentRejected   Trigger = "content_rejected"
	TriggerGateExhausted     Trigger = "gate_exhausted"
	TriggerResumed           Trigger = "resumed"
	TriggerReservationLapsed Trigger = "reservation_lapsed"
	TriggerWithdrawal        Trigger = "withdrawal_accepted"
	TriggerDeletionConfirmed Trigger = "deletion_confirmed"
	TriggerRescanRefused     Trigger = "rescan_refused"
)

// Transition is one row of the lifecycle table: From (empty before the first), the trigger, To.
type Transition struct {
	From    Status
	Trigger Trigger
	To      Status
}

// Transitions is the whole lifecycle. Nothing else is possible: the database refuses events that are not listed here.
var Transitions = []Transition{
	{"", TriggerReserved, StatusInitiated},
	{StatusInitiated, TriggerPartAccepted, StatusReceiving},
	{StatusReceiving, TriggerCompleted, StatusProcessing},
	{StatusProcessing, TriggerGateChanged, StatusProcessing},
	{StatusProcessing, TriggerGatesPassed, StatusReady},
	{StatusProcessing, TriggerContentRejected, StatusRejected},
	{StatusProcessing, TriggerGateExhausted, StatusFailed},
	{StatusReady, TriggerRescanRefused, StatusRejected},
	{StatusFailed, TriggerResumed, StatusProcessing},
	{StatusInitiated, TriggerReservationLapsed, StatusExpired},
	{StatusReceiving, TriggerReservationLapsed, StatusExpired},
	{StatusInitiated, TriggerWithdrawal, StatusWithdrawing},
	{StatusReceiving, TriggerWithdrawal, StatusWithdrawing},
	{StatusProcessing, TriggerWithdrawal, StatusWithdrawing},
	{StatusReady, TriggerWithdrawal, StatusWithdrawing},
	{StatusRejected, TriggerWithdrawal, StatusWithdrawing},
	{StatusFailed, TriggerWithdrawal, StatusWithdrawing},
	{StatusExpired, TriggerWithdrawal, StatusWithdrawing},
	{StatusWithdrawing, TriggerDeletionConfirmed, StatusWithdrawn},
}

// Next tells where trigger leads from status from; ok is false where the lifecycle has no such row.
func Next(from Status, trigger Trigger) (to Status, ok bool) {
	for _, t := range Transitions {
		if t.From == from && t.Trigger == trigger {
			return t.To, true
		}
	}
	return "", false
}

// TerminalStatuses are those after which polling may stop. (Contract decisions, "Statuses, stages, gates".)
var TerminalStatuses = []Status{StatusReady, StatusRejected, StatusFailed, StatusExpired, StatusWithdrawn}

// Terminal tells whether polling may stop at s.
func (s Status) Terminal() bool { return slices.Contains(TerminalStatuses, s) }

// GateName names one of the six gates; it is the stage of a status event.
type GateName string

const (
	GateIntegrity         GateName = "integrity"          // the stored bytes are exactly the declared ones
	GateQuarantine        GateName = "quarantine"         // a copy is confirmed in quarantine storage
	GateMalwareScan       GateName = "malware_scan"       // a scan engine looked at everything and found nothing
	GateExtraction        GateName = "extraction"         // text extracted, with OCR where pages are pictures
	GateControlledSummary GateName = "controlled_summary" // bounded summary derived from the extracted text
	GateAIContext         GateName = "ai_context"         // the bounded context is published to readers
)

// Gate is one row of the gate table. Deadline counts from the gate's first start; a gate without an answer by then
// leaves the upload FAILED. Attempt bounds one try, so that a hanging engine is tried again before the deadline; after a restart a gate
// has the time of one, however late it is.
type Gate struct {
	Name     GateName
	Deadline time.Duration
	Attempt  time.Duration
}

// Gates are the six gates in their order.
var Gates = []Gate{
	{GateIntegrity, 30 * time.Minute, 15 * time.Minute},
	{GateQuarantine, 30 * time.Minute, 15 * time.Minute},
	{GateMalwareScan, 2 * time.Hour, time.Hour},
	{GateExtraction, time.Hour, 30 * time.Minute},
	{GateControlledSummary, 15 * time.Minute, 5 * time.Minute},
	{GateAIContext, 15 * time.Minute, 5 * time.Minute},
}

// GateState is the state of one gate of one upload.
type GateState string

const (
	GatePending  GateState = "pending"
	GateRunning  GateState = "running"
	GatePassed   GateState = "passed"
	GateRejected GateState = "rejected" // the content was refused
	GateFailed   GateState = "failed"   // no answer before the deadline
)

// GateResult is one gate of one upload. Detail is metadata only, never content.
type GateResult struct {
	Name       GateName
	State      GateState
	StartedAt  time.Time // zero while pending
	FinishedAt time.Time // zero until passed, rejected or failed
	Detail     map[string]any
	// ScannedWith names the engine and signatures that passed the content, where the gate is malware_scan.
	ScannedWith string
}

// GateShown is a gate as an answer shows it.
type GateShown struct {
	Name       GateName
	State      GateState
	StartedAt  time.Time       // zero while pending
	FinishedAt time.Time       // zero until passed, rejected or failed
	Detail     json.RawMessage // an object, as it was kept
}
