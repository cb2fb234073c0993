package audit

import "fmt"

// Fault is what can be wrong with a log.
type Fault string

// What can be wrong with a log.
const (
	Unreadable    Fault = "unreadable"      // bytes that are no record
	WrongAccount  Fault = "wrong_account"   // a record of somebody else
	Edited        Fault = "edited"          // a record that is not what it was when it was written
	Missing       Fault = "missing"         // one or more records are gone
	Repeated      Fault = "repeated"        // a record stands there twice
	Misplaced     Fault = "misplaced"       // records are not in their order
	CutOff        Fault = "cut_off"         // the log ends before what was signed, or before its head
	Rewritten     Fault = "rewritten"       // the chain is whole, but not the one that was signed
	BadCheckpoint Fault = "bad_checkpoint"  // a checkpoint whose signature is wrong, or that a kept one should be and is not
	LateSigned    Fault = "late_checkpoint" // a checkpoint that stands behind records which it does not sign
	Unsigned      Fault = "unsigned"        // nobody who is trusted has signed any of it
	WrongHashes   Fault = "wrong_hashes"    // the tree beside the records is not that of the records
	WrongHead     Fault = "wrong_head"      // the head is not that of the records
	NoRecords     Fault = "no_records"      // there is nothing to verify
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
