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
func VerifyFile(r io.Reader, account string, against VerifyOptions, w io.Writer) (VerifyReport, error) {
	f := fileVerification{verification: verification{VerifyReport: VerifyReport{Account: account}, options: against}, filtered: account != ""}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() && f.Problem == nil {
		f.line(lines.Bytes())
	}
	err := lines.Err()
	if f.verifier == nil {
		f.begin(EmptyHead(f.Account))
	}
	if errors.Is(err, bufio.ErrTooLong) {
		f.fail(f.verifier.head.Size+1, FaultUnreadable, "a line is too long to be a record")
	} else if err != nil {
		return f.VerifyReport, err
	}
	f.end()
	if f.verifier.head.Size == f.verifier.start {
		f.fail(f.verifier.start+1, FaultNoRecords, "there are no records of this account")
	}
	return f.finish(w)
}

// fileVerification is a verification of an export under way.
type fileVerification struct {
	verification
	filtered bool // the lines of other accounts are to be passed over
}

func (f *fileVerification) begin(start Head) {
	f.Account = start.Account
	f.verifier = NewVerifier(start)
	f.addKnownCheckpoints()
}

func (f *fileVerification) line(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte(`{"head":`)):
		f.headLine(line)
	case bytes.HasPrefix(line, []byte(`{"checkpoint":`)):
		f.checkpointLine(line)
	default:
		f.recordLine(line)
	}
}

func (f *fileVerification) recordLine(line []byte) {
	if f.filtered || f.verifier == nil {
		h, err := scanHeader(line)
		switch {
		case err == nil && f.filtered && h.account != f.Account:
			return
		case f.verifier == nil && err == nil:
			f.begin(EmptyHead(h.account))
		case f.verifier == nil:
			f.begin(EmptyHead(f.Account))
		}
	}
	f.add(line)
}

func (f *fileVerification) headLine(line []byte) {
	var in struct {
		Head Head `json:"head"`
	}
	err := strictjson.Decode(line, &in)
	switch {
	case err == nil && f.filtered && in.Head.Account != f.Account:
	case f.verifier != nil:
		f.fail(f.verifier.head.Size+1, FaultUnreadable, "a second beginning in the middle")
	case err != nil:
		f.begin(EmptyHead(f.Account))
		f.fail(1, FaultUnreadable, "the beginning cannot be read: %v", err)
	default:
		f.begin(in.Head)
	}
}

func (f *fileVerification) checkpointLine(line []byte) {
	var in checkpointLine
	err := strictjson.Decode(line, &in)
	if err == nil && f.filtered && in.Account != f.Account {
		return
	}
	if f.verifier == nil {
		f.begin(EmptyHead(in.Account))
	}
	switch {
	case err != nil:
		f.fail(f.verifier.head.Size+1, FaultBadCheckpoint, "a checkpoint cannot be read: %v", err)
	case in.Account != f.Account:
		f.fail(f.verifier.head.Size+1, FaultWrongAccount, "a checkpoint of account %q", in.Account)
	default:
		f.addCheckpoint([]byte(in.Checkpoint))
	}
}
