package audit

import (
	"fmt"
	"slices"
)

// Verifier verifies the records of one account in order. Its memory use does not depend on the
// length of the log.
type Verifier struct {
	head     Head
	start    int64 // the initial size
	signed   int64 // the verified size: the start, then the size of the last valid checkpoint
	expected []Checkpoint
	// pending is a record that does not follow. The next record shows what exactly is wrong.
	pending *scannedRecord
	// suspicion is a checkpoint mismatch. If only the last record is wrong, the next one shows it.
	suspicion *Problem
	failure   *Problem
}

// NewVerifier starts at a head: an empty one, or the head of an export that begins later.
func NewVerifier(start Head) *Verifier {
	return &Verifier{head: start, start: start.Size, signed: start.Size}
}

// Head returns the head of the records so far.
func (v *Verifier) Head() Head { return v.head }

// ExpectCheckpoint adds a checkpoint with a verified signature. The records must match it.
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

// Add adds the next record as stored. An error is a *Problem; then the verifier accepts no more
// records.
func (v *Verifier) Add(raw []byte) error {
	if v.failure != nil {
		return v.failure
	}
	next := scanRecord(raw)
	switch {
	case v.pending != nil:
		return v.preferSuspicion(v.diagnose(v.pending, &next))
	case next.err != nil:
		return v.preferSuspicion(v.fail(v.head.Size+1, FaultUnreadable, "the bytes are not a record: %v", next.err))
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

// End reports that there are no more records.
func (v *Verifier) End() error {
	switch {
	case v.failure != nil:
	case v.pending != nil:
		return v.preferSuspicion(v.diagnose(v.pending, nil))
	case v.suspicion != nil:
		v.failure = v.suspicion
	case len(v.expected) > 0:
		return v.fail(v.head.Size+1, FaultTruncated, "a checkpoint signs %d records, but there are %d", v.expected[len(v.expected)-1].Size, v.head.Size)
	}
	if v.failure != nil {
		return v.failure
	}
	return nil
}

// preferSuspicion returns an earlier checkpoint mismatch instead of a problem with the next record.
func (v *Verifier) preferSuspicion(found *Problem) error {
	if v.suspicion != nil && found.Seq > v.head.Size {
		v.failure = v.suspicion
	}
	return v.failure
}

// scannedRecord is the part of a record that the chain needs.
type scannedRecord struct {
	header
	hash Hash
	err  error
}

func scanRecord(raw []byte) scannedRecord {
	h, err := readHeader(raw)
	h.rest = nil // do not keep the caller's bytes
	return scannedRecord{header: h, hash: HashOf(raw), err: err}
}

func (v *Verifier) follows(s *scannedRecord) bool {
	return s.account == v.head.Account && s.seq == v.head.Size+1 && s.prev == v.head.Last
}

// compareCheckpoints compares the head with the checkpoints of its size.
func (v *Verifier) compareCheckpoints() {
	for len(v.expected) > 0 && v.expected[0].Size == v.head.Size {
		c := v.expected[0]
		v.expected = v.expected[1:]
		switch {
		case v.suspicion != nil:
		case c.Origin != v.head.Origin():
			v.suspicion = v.problem(1, FaultRewritten, "the checkpoint of %d records belongs to the log %s, not to %s", c.Size, c.Origin, v.head.Origin())
		case c.Root != v.head.Root():
			v.suspicion = v.problem(v.signed+1, FaultRewritten, "records %d to %d are not the signed ones", v.signed+1, c.Size)
		default:
			v.signed = c.Size
		}
	}
}

// diagnose explains why a record does not follow. next is the record after it, if there is one.
func (v *Verifier) diagnose(s, next *scannedRecord) *Problem {
	at := v.head.Size + 1
	knowsNext := next != nil && next.err == nil && next.account == v.head.Account
	switch {
	case s.account != v.head.Account:
		return v.fail(at, FaultWrongAccount, "the record belongs to account %q", s.account)
	case s.seq == at:
		return v.diagnosePrev(s, next, knowsNext)
	case s.prev == v.head.Last:
		return v.fail(at, FaultEdited, "record %d was changed: it follows record %d but has number %d", at, at-1, s.seq)
	case s.hash == v.head.Last:
		return v.fail(at, FaultRepeated, "record %d occurs twice", s.seq)
	case s.seq < at:
		return v.fail(at, FaultMisplaced, "record %d is at the position of record %d", s.seq, at)
	case knowsNext && next.seq != s.seq+1:
		return v.fail(at, FaultMisplaced, "record %d is at the position of record %d, and record %d comes next", s.seq, at, next.seq)
	case s.seq == at+1:
		return v.fail(at, FaultMissing, "record %d is missing", at)
	}
	return v.fail(at, FaultMissing, "records %d to %d are missing", at, s.seq-1)
}

// diagnosePrev determines which of two records was changed: not the one that the next record
// confirms.
func (v *Verifier) diagnosePrev(s, next *scannedRecord, knowsNext bool) *Problem {
	intact := knowsNext && next.seq == s.seq+1 && next.prev == s.hash
	switch {
	case s.seq == v.start+1: // the record before it is not part of the input
		return v.fail(s.seq, FaultEdited, "record %d does not match the start: it was changed, or the start was replaced", s.seq)
	case intact:
		return v.fail(s.seq-1, FaultEdited, "record %d was changed: record %d follows another record", s.seq-1, s.seq)
	case next != nil:
		return v.fail(s.seq, FaultEdited, "record %d was changed: it matches neither record %d nor the next record", s.seq, s.seq-1)
	}
	return v.fail(s.seq-1, FaultEdited, "record %d or record %d was changed: they do not match", s.seq-1, s.seq)
}

func (v *Verifier) problem(seq int64, fault Fault, format string, args ...any) *Problem {
	return &Problem{Account: v.head.Account, Seq: seq, Fault: fault, Text: fmt.Sprintf(format, args...)}
}

func (v *Verifier) fail(seq int64, fault Fault, format string, args ...any) *Problem {
	v.failure = v.problem(seq, fault, format, args...)
	return v.failure
}
