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

// VerifyOptions is what a log is held against.
type VerifyOptions struct {
	// Trust says whose checkpoints count. Without it the chain alone is verified, which whoever owns the store could have written anew.
	Trust Trust
	// Kept are checkpoints that the caller kept elsewhere. The log must extend each of them. They are worth more than those that come
	// with the log.
	KnownCheckpoints [][]byte
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	Account string `json:"account"`
	// Origin names the log, as checkpoints do.
	Origin string `json:"origin"`
	// From and To are the first and the last record that were read.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Signed is the last record that a trusted checkpoint covers. Behind it, and without a checkpoint anywhere, a cut or rewritten tail does not show.
	Signed int64 `json:"signed"`
	// Checkpoints counts those that were right, Foreign those of keys that are not trusted.
	Checkpoints int  `json:"checkpoints"`
	Untrusted   int  `json:"foreign"`
	Root        Hash `json:"root"`
	// Problem is the first thing that is wrong; nil if nothing is.
	Problem *Problem `json:"problem"`
}

// Body returns what the log itself should say about the verification.
func (r VerifyReport) Body() LogVerified {
	body := LogVerified{From: r.From, To: r.To, Signed: r.Signed}
	if r.Problem != nil {
		body.Problem, body.At = string(r.Problem.Fault), r.Problem.Seq
	}
	return body
}

// Verify reads the log of an account from its first record and says on w what it found. If something is wrong, the error is the *Problem that the
// report holds too; any other error means that the log could not be read.
func Verify(ctx context.Context, log Log, account string, against VerifyOptions, w io.Writer) (VerifyReport, error) {
	check := verification{VerifyReport: VerifyReport{Account: account}, options: against, verifier: NewVerifier(EmptyHead(account))}
	for signed, err := range log.Checkpoints(ctx, account) { // before the head: so none can be longer
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

// verification is a verification under way.
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

// expect takes a checkpoint that came with the log.
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
		c.fail(c.verifier.head.Size+1, FaultBadCheckpoint, "a checkpoint is not what was signed: %v", err)
		return
	}
	c.Checkpoints++
	c.Signed = max(c.Signed, opened.Size)
	c.noteProblem(c.verifier.ExpectCheckpoint(opened))
}

// expectKept takes those that the caller kept. Of these none may be wrong.
func (c *verification) addKnownCheckpoints() {
	for _, signed := range c.options.KnownCheckpoints {
		opened, err := c.options.Trust.Open(signed)
		if err != nil {
			c.fail(c.verifier.head.Size+1, FaultBadCheckpoint, "a kept checkpoint is of no use: %v", err)
			return
		}
		if opened.Size < c.verifier.head.Size {
			continue // an export that begins later says nothing about it
		}
		c.Checkpoints++
		c.Signed = max(c.Signed, opened.Size)
		c.noteProblem(c.verifier.ExpectCheckpoint(opened))
	}
}

// holdAgainst compares what was read with what a store says about it.
func (c *verification) compareWithStore(head Head, tree *hashComparer) {
	got := c.verifier.Head()
	switch {
	case c.Problem != nil && c.Problem.Fault == FaultRewritten && tree.firstWrongLeaf > 0:
		// The tree that the store keeps knows better which one it is.
		c.Problem = &Problem{Account: c.Account, Seq: tree.firstWrongLeaf, Fault: FaultEdited, Text: fmt.Sprintf("record %d is not the one that was written and signed", tree.firstWrongLeaf)}
	case c.Problem != nil:
	case got.Size < head.Size:
		c.fail(got.Size+1, FaultTruncated, "the head is that of %d records, and there are %d", head.Size, got.Size)
	case got.Last != head.Last:
		c.fail(got.Size, FaultEdited, "record %d was changed: it is not the one that the head knows", got.Size)
	case !got.Equal(head):
		c.fail(got.Size, FaultWrongHead, "the head is not that of the records, though they are whole")
	case tree.firstWrong > 0:
		c.fail(tree.firstWrong, FaultWrongHashes, "the stored tree is not that of the records, from record %d on; the records are whole", tree.firstWrong)
	}
}

// beyond looks for records behind the head, which nobody appended.
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
			c.fail(head.Size+1, FaultWrongHead, "there is a record behind the head")
		}
	}
	return nil
}

// finish closes the report and writes it.
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
		say("NOT WHOLE. Account %q, record %d: %s (%s).", r.Account, r.Problem.Seq, r.Problem.Text, r.Problem.Fault)
		return err
	}
	if r.To == 0 {
		say("Account %q has no records.", r.Account)
		return err
	}
	say("Whole. Account %q, records %d to %d, log %s.", r.Account, r.From, r.To, r.Origin)
	switch {
	case r.Checkpoints == 0:
		say("No signature was checked: whoever owns the store could have cut the end off, or written all of it anew.")
	case r.Signed < r.To:
		say("Signed up to record %d (checkpoints that were right: %d). The %d records behind it are not signed yet.", r.Signed, r.Checkpoints, r.To-r.Signed)
	default:
		say("Signed up to record %d (checkpoints that were right: %d).", r.Signed, r.Checkpoints)
	}
	if r.Untrusted > 0 {
		say("Checkpoints of keys that are not trusted here, and were passed over: %d.", r.Untrusted)
	}
	return err
}

// hashComparer holds the stored hashes against those that the records have.
type hashComparer struct {
	hashes         tlog.HashReader
	head           Head
	want           []Hash
	owner          []int64 // the record with which each came
	next           int64   // the index of the first in want
	firstWrong     int64   // the record of the first hash that is wrong
	firstWrongLeaf int64   // the first record whose own hash is
}

// compareBatch is how many hashes are read at a time.
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
