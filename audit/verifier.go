package audit

import (
	"fmt"
	"slices"
)

// Verifier goes through the records of one account in order. It needs no more memory than a head, whatever the length of the log.
type Verifier struct {
	head     Head
	start    int64 // the size at which it began
	signed   int64 // what is beyond doubt: the start, and then the size of the last checkpoint that was right
	expected []Checkpoint
	// held is a record that does not follow. What exactly is wrong shows when the next one is there.
	pending *scannedRecord
	// doubt is a checkpoint that was not right. It might be the last record alone: then the next one tells.
	suspicion *Problem
	failure   *Problem
}

// NewVerifier begins at a head: an empty one, or that of an export which begins later.
func NewVerifier(start Head) *Verifier {
	return &Verifier{head: start, start: start.Size, signed: start.Size}
}

// Head returns the head of the records so far.
func (v *Verifier) Head() Head { return v.head }

// Expect adds a checkpoint whose signature was checked already. The records must turn out to be those that it signs.
func (v *Verifier) ExpectCheckpoint(c Checkpoint) error {
	if v.failure != nil {
		return v.failure
	}
	if c.Size < v.head.Size {
		return v.fail(c.Size, FaultLateCheckpoint, "a checkpoint of %d records comes after %d records", c.Size, v.head.Size)
	}
	at, _ := slices.BinarySearchFunc(v.expected, c, compareSizes)
	v.expected = slices.Insert(v.expected, at, c)
	v.compareCheckpoints()
	return nil
}

// Add takes the next record as it was stored. An error is a *Problem; then the verifier takes no more.
func (v *Verifier) Add(raw []byte) error {
	if v.failure != nil {
		return v.failure
	}
	next := scanRecord(raw)
	switch {
	case v.pending != nil:
		return v.preferSuspicion(v.diagnose(v.pending, &next))
	case next.err != nil:
		return v.preferSuspicion(v.fail(v.head.Size+1, FaultUnreadable, "these bytes are no record: %v", next.err))
	case !v.follows(&next):
		v.pending = &next
		return nil
	case v.suspicion != nil:
		v.failure = v.suspicion
		return v.failure
	}
	v.head, _ = v.head.appendLeaf(next.hash)
	v.compareCheckpoints()
	return nil
}

// End says that there are no more records.
func (v *Verifier) End() error {
	switch {
	case v.failure != nil:
	case v.pending != nil:
		return v.preferSuspicion(v.diagnose(v.pending, nil))
	case v.suspicion != nil:
		v.failure = v.suspicion
	case len(v.expected) > 0:
		return v.fail(v.head.Size+1, FaultTruncated, "a checkpoint signs %d records, and there are %d", v.expected[len(v.expected)-1].Size, v.head.Size)
	}
	if v.failure != nil {
		return v.failure
	}
	return nil
}

// earlier prefers a doubt about the records before to a problem with the next one.
func (v *Verifier) preferSuspicion(found *Problem) error {
	if v.suspicion != nil && found.Seq > v.head.Size {
		v.failure = v.suspicion
	}
	return v.failure
}

// scannedRecord is a record, as far as the chain goes.
type scannedRecord struct {
	header
	hash Hash
	err  error
}

func scanRecord(raw []byte) scannedRecord {
	h, err := readHeader(raw)
	h.rest = nil // the bytes are the caller's
	return scannedRecord{header: h, hash: HashOf(raw), err: err}
}

func (v *Verifier) follows(s *scannedRecord) bool {
	return s.account == v.head.Account && s.seq == v.head.Size+1 && s.prev == v.head.Last
}

// compare holds the head against the checkpoints of its size.
func (v *Verifier) compareCheckpoints() {
	for len(v.expected) > 0 && v.expected[0].Size == v.head.Size {
		c := v.expected[0]
		v.expected = v.expected[1:]
		switch {
		case v.suspicion != nil:
		case c.Origin != v.head.Origin():
			v.suspicion = v.problem(1, FaultRewritten, "the checkpoint of %d records is one of the log %s, and this is %s", c.Size, c.Origin, v.head.Origin())
		case c.Root != v.head.Root():
			v.suspicion = v.problem(v.signed+1, FaultRewritten, "records %d to %d are not those that were signed", v.signed+1, c.Size)
		default:
			v.signed = c.Size
		}
	}
}

// judge says what is wrong with a record that does not follow. next is the one behind it, if there is one.
func (v *Verifier) diagnose(s, next *scannedRecord) *Problem {
	at := v.head.Size + 1
	knowsNext := next != nil && next.err == nil && next.account == v.head.Account
	switch {
	case s.account != v.head.Account:
		return v.fail(at, FaultWrongAccount, "this record is one of account %q", s.account)
	case s.seq == at:
		return v.diagnosePrev(s, next, knowsNext)
	case s.prev == v.head.Last:
		return v.fail(at, FaultEdited, "record %d was changed: it follows record %d, and says it is number %d", at, at-1, s.seq)
	case s.hash == v.head.Last:
		return v.fail(at, FaultRepeated, "record %d stands there twice", s.seq)
	case s.seq < at:
		return v.fail(at, FaultMisplaced, "record %d stands in the place of record %d", s.seq, at)
	case knowsNext && next.seq != s.seq+1:
		return v.fail(at, FaultMisplaced, "record %d stands in the place of record %d, and record %d comes next", s.seq, at, next.seq)
	case s.seq == at+1:
		return v.fail(at, FaultMissing, "record %d is missing", at)
	}
	return v.fail(at, FaultMissing, "records %d to %d are missing", at, s.seq-1)
}

// judgePrev says which of two records was changed: the one that the next one knows was not.
func (v *Verifier) diagnosePrev(s, next *scannedRecord, knowsNext bool) *Problem {
	intact := knowsNext && next.seq == s.seq+1 && next.prev == s.hash
	switch {
	case s.seq == v.start+1: // what comes before it is not here
		return v.fail(s.seq, FaultEdited, "record %d does not begin where it should: it was changed, or the beginning was exchanged", s.seq)
	case intact:
		return v.fail(s.seq-1, FaultEdited, "record %d was changed: record %d follows another one", s.seq-1, s.seq)
	case next != nil:
		return v.fail(s.seq, FaultEdited, "record %d was changed: neither does it follow record %d nor is it followed by the next one", s.seq, s.seq-1)
	}
	return v.fail(s.seq-1, FaultEdited, "record %d or record %d was changed: the one does not follow the other", s.seq-1, s.seq)
}

func (v *Verifier) problem(seq int64, fault Fault, format string, args ...any) *Problem {
	return &Problem{Account: v.head.Account, Seq: seq, Fault: fault, Text: fmt.Sprintf(format, args...)}
}

func (v *Verifier) fail(seq int64, fault Fault, format string, args ...any) *Problem {
	v.failure = v.problem(seq, fault, format, args...)
	return v.failure
}
