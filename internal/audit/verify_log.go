package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// VerifyOptions are the keys and checkpoints to verify with.
type VerifyOptions struct {
	// Trust has the trusted keys. Without it only the chain is verified, which an owner of the
	// store could have rewritten.
	Trust Trust
	// KnownCheckpoints are checkpoints that the caller kept elsewhere. The log must extend each of
	// them. They are stronger evidence than checkpoints from the log itself.
	KnownCheckpoints [][]byte
}

// VerifyReport is the result of a verification.
type VerifyReport struct {
	Account string `json:"account"`
	// Origin is the name of the log in checkpoints.
	Origin string `json:"origin"`
	// From and To are the first and the last verified record.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Signed is the last record that a trusted checkpoint covers. Truncated or rewritten records
	// after it are not detected.
	Signed int64 `json:"signed"`
	// Checkpoints counts the valid checkpoints, Untrusted those of other keys.
	Checkpoints int  `json:"checkpoints"`
	Untrusted   int  `json:"untrusted"`
	Root        Hash `json:"root"`
	// Problem is the first problem, or nil.
	Problem *Problem `json:"problem"`
}

// Body returns the audit body that the log should record.
func (r VerifyReport) Body() LogVerified {
	body := LogVerified{From: r.From, To: r.To, Signed: r.Signed}
	if r.Problem != nil {
		body.Problem, body.At = string(r.Problem.Fault), r.Problem.Seq
	}
	return body
}

// Verify verifies the log of an account from its first record and writes the result to w. If the
// log is invalid, the error is the *Problem of the report. Any other error means that the log could
// not be read.
func Verify(ctx context.Context, log Log, account string, against VerifyOptions, w io.Writer) (VerifyReport, error) {
	check := verification{VerifyReport: VerifyReport{Account: account}, options: against, verifier: NewVerifier(EmptyHead(account))}
	// before the head, so that none can be longer
	for signed, err := range log.Checkpoints(ctx, account) {
		if err != nil {
			return check.VerifyReport, err
		}
		check.addCheckpoint(signed)
	}
	head, err := log.Head(ctx, account)
	if err != nil {
		return check.VerifyReport, err
	}
	check.addKnownCheckpoints()
	tree := hashComparer{hashes: hashReader(ctx, log, account)}
	if head.Size > 0 {
		for raw, err := range log.Records(ctx, account, 1, head.Size) {
			if err != nil {
				return check.VerifyReport, err
			}
			if !check.add(raw) {
				break
			}
			if err := tree.add(HashOf(raw)); err != nil {
				return check.VerifyReport, err
			}
		}
	}
	if err := tree.flush(); err != nil {
		return check.VerifyReport, err
	}
	check.end()
	check.compareWithStore(head, &tree)
	if err := check.checkBeyondHead(ctx, log, head); err != nil {
		return check.VerifyReport, err
	}
	return check.finish(w)
}

// verification is a verification in progress.
type verification struct {
	VerifyReport
	options  VerifyOptions
	verifier *Verifier
}

func (c *verification) fail(seq int64, fault Fault, format string, args ...any) {
	if c.Problem == nil {
		c.Problem = &Problem{Account: c.Account, Seq: seq, Fault: fault, Text: fmt.Sprintf(format, args...)}
	}
}

func (c *verification) noteProblem(err error) bool {
	if err == nil {
		return true
	}
	if p, ok := errors.AsType[*Problem](err); ok && c.Problem == nil {
		c.Problem = p
	}
	return false
}

func (c *verification) add(raw []byte) bool {
	return c.Problem == nil && c.noteProblem(c.verifier.Add(raw))
}
func (c *verification) end() { c.noteProblem(c.verifier.End()) }

// addCheckpoint adds a checkpoint from the log.
func (c *verification) addCheckpoint(signed []byte) {
	if c.options.Trust.IsEmpty() {
		c.Untrusted++
		return
	}
	opened, err := c.options.Trust.Open(signed)
	if _, foreign := errors.AsType[*note.UnverifiedNoteError](err); foreign {
		c.Untrusted++
		return
	}
	if err != nil {
		c.fail(c.verifier.head.Size+1, FaultBadCheckpoint, "a checkpoint is invalid: %v", err)
		return
	}
	c.Checkpoints++
	c.Signed = max(c.Signed, opened.Size)
	c.noteProblem(c.verifier.ExpectCheckpoint(opened))
}

// addKnownCheckpoints adds the checkpoints of the caller. All of them must be valid.
func (c *verification) addKnownCheckpoints() {
	for _, signed := range c.options.KnownCheckpoints {
		opened, err := c.options.Trust.Open(signed)
		if err != nil {
			c.fail(c.verifier.head.Size+1, FaultBadCheckpoint, "a known checkpoint is invalid: %v", err)
			return
		}
		if opened.Size < c.verifier.head.Size {
			continue // it is before the beginning of the export
		}
		c.Checkpoints++
		c.Signed = max(c.Signed, opened.Size)
		c.noteProblem(c.verifier.ExpectCheckpoint(opened))
	}
}

// compareWithStore compares the verified records with the stored head and tree.
func (c *verification) compareWithStore(head Head, tree *hashComparer) {
	got := c.verifier.Head()
	switch {
	case c.Problem != nil && c.Problem.Fault == FaultRewritten && tree.firstWrongLeaf > 0:
		// The stored tree shows which record was changed.
		c.Problem = &Problem{Account: c.Account, Seq: tree.firstWrongLeaf, Fault: FaultEdited, Text: fmt.Sprintf("record %d is not the one that was written and signed", tree.firstWrongLeaf)}
	case c.Problem != nil:
	case got.Size < head.Size:
		c.fail(got.Size+1, FaultTruncated, "the head has %d records, but there are %d", head.Size, got.Size)
	case got.Last != head.Last:
		c.fail(got.Size, FaultEdited, "record %d was changed: it does not match the head", got.Size)
	case !got.Equal(head):
		c.fail(got.Size, FaultWrongHead, "the head does not match the records, which are valid")
	case tree.firstWrong > 0:
		c.fail(tree.firstWrong, FaultWrongHashes, "the stored tree does not match the records from record %d on; the records are valid", tree.firstWrong)
	}
}

// checkBeyondHead detects records after the head.
func (c *verification) checkBeyondHead(ctx context.Context, log Log, head Head) error {
	for _, err := range log.Records(ctx, c.Account, head.Size+1, head.Size+1) {
		if err != nil {
			return err
		}
		now, err := log.Head(ctx, c.Account)
		if err != nil {
			return err
		}
		if now.Equal(head) {
			c.fail(head.Size+1, FaultWrongHead, "there is a record after the head")
		}
	}
	return nil
}

// finish completes the report and writes it.
func (c *verification) finish(w io.Writer) (VerifyReport, error) {
	head := c.verifier.Head()
	c.Origin, c.From, c.To, c.Root = head.Origin(), c.verifier.start+1, head.Size, head.Root()
	if !c.options.Trust.IsEmpty() && c.Signed == 0 && head.Size > 0 {
		c.fail(1, FaultUnsigned, "no trusted key has signed any of these records")
	}
	if err := c.write(w); err != nil {
		return c.VerifyReport, err
	}
	if c.Problem != nil {
		return c.VerifyReport, c.Problem
	}
	return c.VerifyReport, nil
}

func (r VerifyReport) write(w io.Writer) error {
	var err error
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	if r.Problem != nil {
		say("INVALID. Account %q, record %d: %s (%s).", r.Account, r.Problem.Seq, r.Problem.Text, r.Problem.Fault)
		return err
	}
	if r.To == 0 {
		say("Account %q has no records.", r.Account)
		return err
	}
	say("Valid. Account %q, records %d to %d, log %s.", r.Account, r.From, r.To, r.Origin)
	switch {
	case r.Checkpoints == 0:
		say("No signature was checked: an owner of the store could have truncated or rewritten the log.")
	case r.Signed < r.To:
		say("Signed up to record %d (valid checkpoints: %d). The %d records after it are not signed yet.", r.Signed, r.Checkpoints, r.To-r.Signed)
	default:
		say("Signed up to record %d (valid checkpoints: %d).", r.Signed, r.Checkpoints)
	}
	if r.Untrusted > 0 {
		say("Ignored checkpoints of untrusted keys: %d.", r.Untrusted)
	}
	return err
}

// hashComparer compares the stored hashes with those of the records.
type hashComparer struct {
	hashes         tlog.HashReader
	head           Head
	want           []Hash
	owner          []int64 // the record that completed each hash
	next           int64   // the index of want[0]
	firstWrong     int64   // the record of the first wrong hash
	firstWrongLeaf int64   // the first record whose own hash is wrong
}

// compareBatch is the number of hashes per read.
const compareBatch = 1024

func (c *hashComparer) add(leaf Hash) error {
	var complete []Hash
	c.head, complete = c.head.appendLeaf(leaf)
	for range complete {
		c.owner = append(c.owner, c.head.Size)
	}
	if c.want = append(c.want, complete...); len(c.want) < compareBatch {
		return nil
	}
	return c.flush()
}

func (c *hashComparer) flush() error {
	if len(c.want) == 0 {
		return nil
	}
	indexes := make([]int64, len(c.want))
	for i := range indexes {
		indexes[i] = c.next + int64(i)
	}
	got, err := c.hashes.ReadHashes(indexes)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	for i := range c.want {
		if i < len(got) && got[i] == c.want[i] {
			continue
		}
		if c.firstWrong == 0 {
			c.firstWrong = c.owner[i]
		}
		if level, _ := tlog.SplitStoredHashIndex(indexes[i]); level == 0 && c.firstWrongLeaf == 0 && err == nil {
			c.firstWrongLeaf = c.owner[i]
		}
	}
	c.next += int64(len(c.want))
	c.want, c.owner = slices.Delete(c.want, 0, len(c.want)), slices.Delete(c.owner, 0, len(c.owner))
	return nil
}
