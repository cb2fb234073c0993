package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// maxLine is the maximum length of a line in an export: a record, a head or a checkpoint.
const maxLine = MaxRecord + 1024

// VerifyFile verifies a JSONL export and writes the result to w. It reads only the lines of
// account. If account is "", it is the account of the first line, and the file must have no other.
// Errors are those of [Verify].
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

// fileVerification is a verification of an export in progress.
type fileVerification struct {
	verification
	filtered bool // ignore the lines of other accounts
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
		f.fail(f.verifier.head.Size+1, FaultUnreadable, "a second head in the middle")
	case err != nil:
		f.begin(EmptyHead(f.Account))
		f.fail(1, FaultUnreadable, "the head is unreadable: %v", err)
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
		f.fail(f.verifier.head.Size+1, FaultBadCheckpoint, "a checkpoint is unreadable: %v", err)
	case in.Account != f.Account:
		f.fail(f.verifier.head.Size+1, FaultWrongAccount, "a checkpoint of account %q", in.Account)
	default:
		f.addCheckpoint([]byte(in.Checkpoint))
	}
}
