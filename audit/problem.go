package audit

import "fmt"

// Fault is what can be wrong with a log.
type Fault string

// What can be wrong with a log.
const (
	FaultUnreadable     Fault = "unreadable"      // bytes that are no record
	FaultWrongAccount   Fault = "wrong_account"   // a record of somebody else
	FaultEdited         Fault = "edited"          // a record that is not what it was when it was written
	FaultMissing        Fault = "missing"         // one or more records are gone
	FaultRepeated       Fault = "repeated"        // a record stands there twice
	FaultMisplaced      Fault = "misplaced"       // records are not in their order
	FaultTruncated      Fault = "cut_off"         // the log ends before what was signed, or before its head
	FaultRewritten      Fault = "rewritten"       // the chain is whole, but not the one that was signed
	FaultBadCheckpoint  Fault = "bad_checkpoint"  // a checkpoint whose signature is wrong, or that a kept one should be and is not
	FaultLateCheckpoint Fault = "late_checkpoint" // a checkpoint that stands behind records which it does not sign
	FaultUnsigned       Fault = "unsigned"        // nobody who is trusted has signed any of it
	FaultWrongHashes    Fault = "wrong_hashes"    // the tree beside the records is not that of the records
	FaultWrongHead      Fault = "wrong_head"      // the head is not that of the records
	FaultNoRecords      Fault = "no_records"      // there is nothing to verify
)

// Problem is the first thing that is wrong with a log.
type Problem struct {
	Account string `json:"account"`
	// Seq is the number of the first record that is wrong, gone, or not certain any more.
	Seq   int64 `json:"seq"`
	Fault Fault `json:"fault"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// Error says where and what.
func (p *Problem) Error() string {
	return fmt.Sprintf("audit: account %q, record %d: %s: %s", p.Account, p.Seq, p.Fault, p.Text)
}
