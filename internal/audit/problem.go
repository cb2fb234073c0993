package audit

import "fmt"

// Fault is the kind of a problem with a log.
type Fault string

// The faults.
const (
	FaultUnreadable   Fault = "unreadable"    // bytes that are not a record
	FaultWrongAccount Fault = "wrong_account" // a record of another account
	FaultEdited       Fault = "edited"        // a changed record
	FaultMissing      Fault = "missing"       // one or more records are missing
	FaultRepeated     Fault = "repeated"      // a duplicate record
	FaultMisplaced    Fault = "misplaced"     // records are out of order
	// the log ends before the last checkpoint or before its head
	FaultTruncated Fault = "cut_off"
	FaultRewritten Fault = "rewritten" // a valid chain, but not the signed one
	// an invalid signature, or a known checkpoint that is not in the log
	FaultBadCheckpoint Fault = "bad_checkpoint"
	// a checkpoint after records that it does not sign
	FaultLateCheckpoint Fault = "late_checkpoint"
	FaultUnsigned       Fault = "unsigned"     // no trusted key has signed any record
	FaultWrongHashes    Fault = "wrong_hashes" // the stored tree does not match the records
	FaultWrongHead      Fault = "wrong_head"   // the head does not match the records
	FaultNoRecords      Fault = "no_records"   // nothing to verify
)

// Problem is the first problem of a log.
type Problem struct {
	Account string `json:"account"`
	// Seq is the number of the first record that is wrong, missing or uncertain.
	Seq   int64 `json:"seq"`
	Fault Fault `json:"fault"`
	// Text describes the problem in a sentence.
	Text string `json:"text"`
}

// Error returns the location and the problem.
func (p *Problem) Error() string {
	return fmt.Sprintf("audit: account %q, record %d: %s: %s", p.Account, p.Seq, p.Fault, p.Text)
}
