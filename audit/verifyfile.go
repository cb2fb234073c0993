package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// maxLine is how long a line of an export may be: a record, or a head or a checkpoint, which are shorter.
const maxLine = MaxRecord + 1024

// VerifyFile verifies a JSONL export, and says on w what it found. Of a file with several accounts it reads the lines of one; "" is the account of the
// first line, and then it must be the only one. Errors are as those of [Verify].
func VerifyFile(r io.Reader, account string, against Against, w io.Writer) (Report, error) {
	f := fileCheck{checking: checking{Report: Report{Account: account}, against: against}, only: account != ""}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() && f.Problem == nil {
		f.line(lines.Bytes())
	}
	err := lines.Err()
	if f.v == nil {
		f.begin(Empty(f.Account))
	}
	if errors.Is(err, bufio.ErrTooLong) {
		f.fail(f.v.head.Size+1, Unreadable, "a line is too long to be a record")
	} else if err != nil {
		return f.Report, err
	}
	f.end()
	if f.v.head.Size == f.v.start {
		f.fail(f.v.start+1, NoRecords, "there are no records of this account")
	}
	return f.finish(w)
}

// fileCheck is a verification of an export under way.
type fileCheck struct {
	checking
	only bool // the lines of other accounts are to be passed over
}

func (f *fileCheck) begin(start Head) {
	f.Account = start.Account
	f.v = NewVerifier(start)
	f.expectKept()
}

func (f *fileCheck) line(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte(`{"head":`)):
		f.headLine(line)
	case bytes.HasPrefix(line, []byte(`{"checkpoint":`)):
		f.checkpointLine(line)
	default:
		f.recordLine(line)
	}
}

func (f *fileCheck) recordLine(line []byte) {
	if f.only || f.v == nil {
		h, err := scanHeader(line)
		switch {
		case err == nil && f.only && h.account != f.Account:
			return
		case f.v == nil && err == nil:
			f.begin(Empty(h.account))
		case f.v == nil:
			f.begin(Empty(f.Account))
		}
	}
	f.add(line)
}

func (f *fileCheck) headLine(line []byte) {
	var in struct {
		Head Head `json:"head"`
	}
	err := strictjson.Decode(line, &in)
	switch {
	case err == nil && f.only && in.Head.Account != f.Account:
	case f.v != nil:
		f.fail(f.v.head.Size+1, Unreadable, "a second beginning in the middle")
	case err != nil:
		f.begin(Empty(f.Account))
		f.fail(1, Unreadable, "the beginning cannot be read: %v", err)
	default:
		f.begin(in.Head)
	}
}

func (f *fileCheck) checkpointLine(line []byte) {
	var in checkpointLine
	err := strictjson.Decode(line, &in)
	if err == nil && f.only && in.Account != f.Account {
		return
	}
	if f.v == nil {
		f.begin(Empty(in.Account))
	}
	switch {
	case err != nil:
		f.fail(f.v.head.Size+1, BadCheckpoint, "a checkpoint cannot be read: %v", err)
	case in.Account != f.Account:
		f.fail(f.v.head.Size+1, WrongAccount, "a checkpoint of account %q", in.Account)
	default:
		f.expect([]byte(in.Checkpoint))
	}
}
