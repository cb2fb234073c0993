package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// Format is the format of an export.
type Format string

// The formats of an export.
const (
	// JSONL has one stored record per line, byte for byte, with the checkpoints in between.
	// [VerifyFile] needs only the file and the public key. Lines of several accounts may be mixed,
	// and can be filtered by their "account":"…".
	JSONL Format = "jsonl"
	// CloudEvents has one CloudEvents 1.0 event per line, in structured JSON, with the stored
	// record as its data.
	CloudEvents Format = "cloudevents"
)

// Range is a range of records, inclusive. 0 means the first and the last.
type Range struct{ From, To int64 }

// Export writes records to w, and returns the audit body that the log should record. An export that
// begins after the first record starts with the head at that point.
func Export(ctx context.Context, log Log, account string, wanted Range, format Format, w io.Writer) (LogExported, error) {
	head, err := log.Head(ctx, account)
	if err != nil {
		return LogExported{}, err
	}
	wanted.From = max(wanted.From, 1)
	if wanted.To < 1 || wanted.To > head.Size {
		wanted.To = head.Size
	}
	if wanted.From > wanted.To {
		return LogExported{}, fmt.Errorf("%w: %d to %d of %d", ErrNotFound, wanted.From, wanted.To, head.Size)
	}
	sum := sha256.New()
	e := exporter{log: log, account: account, head: head, wanted: wanted, w: io.MultiWriter(w, sum)}
	switch format {
	case JSONL:
		err = e.lines(ctx)
	case CloudEvents:
		err = e.records(ctx, func(raw []byte) error { return e.event(raw) })
	default:
		err = oneOf(format, JSONL, CloudEvents)
	}
	if err != nil {
		return LogExported{}, err
	}
	return LogExported{Format: string(format), From: wanted.From, To: wanted.To, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

type exporter struct {
	log     Log
	account string
	head    Head
	wanted  Range
	w       io.Writer
}

// records calls write for each record, and detects missing ones.
func (e *exporter) records(ctx context.Context, write func(raw []byte) error) error {
	next := e.wanted.From
	for raw, err := range e.log.Records(ctx, e.account, e.wanted.From, e.wanted.To) {
		if err != nil {
			return err
		}
		if err := write(raw); err != nil {
			return err
		}
		next++
	}
	if next != e.wanted.To+1 {
		return &Problem{Account: e.account, Seq: next, Fault: FaultMissing, Text: fmt.Sprintf("the store returned %d records of %d", next-e.wanted.From, e.wanted.To-e.wanted.From+1)}
	}
	return nil
}

func (e *exporter) lines(ctx context.Context) error {
	var checkpoints []Checkpoint
	for signed, err := range e.log.Checkpoints(ctx, e.account) {
		if err != nil {
			return err
		}
		c, err := ParseUnverified(signed)
		if err != nil {
			return err
		}
		if c.Size >= e.wanted.From {
			checkpoints = append(checkpoints, c)
		}
	}
	if e.wanted.From > 1 {
		start, err := headAt(e.account, e.wanted.From-1, hashReader(ctx, e.log, e.account))
		if err != nil {
			return err
		}
		if err := e.line(map[string]Head{"head": start}); err != nil {
			return err
		}
	}
	seq := e.wanted.From
	return e.records(ctx, func(raw []byte) error {
		if _, err := e.w.Write(append(bytes.Clone(raw), '\n')); err != nil {
			return err
		}
		for len(checkpoints) > 0 && checkpoints[0].Size <= seq {
			if err := e.line(checkpointLine{Checkpoint: string(checkpoints[0].Note), Account: e.account}); err != nil {
				return err
			}
			checkpoints = checkpoints[1:]
		}
		seq++
		return nil
	})
}

// checkpointLine is a checkpoint in an export. The account allows filtering by account.
type checkpointLine struct {
	Checkpoint string `json:"checkpoint"`
	Account    string `json:"account"`
}

func (e *exporter) line(v any) error {
	var b bytes.Buffer
	if err := appendJSON(&b, v); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := e.w.Write(b.Bytes())
	return err
}

// eventPrefix is the prefix of a CloudEvents type.
const eventPrefix = "io.github.fermata-go."

// event is a CloudEvents 1.0 event, with the extensions sequence, which sorts as text, and
// recordhash.
type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            Timestamp `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Sequence        string    `json:"sequence"`
	RecordHash      string    `json:"recordhash"`
}

func (e *exporter) event(raw []byte) error {
	h, err := readHeader(raw)
	if err != nil {
		return err
	}
	var about struct {
		Place struct{ Run, Interrupt, Request string }
	}
	if err := json.Unmarshal(h.content(), &about); err != nil {
		return err
	}
	hash := HashOf(raw)
	out := event{
		SpecVersion: "1.0", ID: fmt.Sprint(h.seq), Source: e.head.Origin(), Type: eventPrefix + string(h.kind), Time: h.time,
		DataContentType: "application/json", Sequence: fmt.Sprintf("%020d", h.seq), RecordHash: hex.EncodeToString(hash[:]),
	}
	for _, id := range []string{about.Place.Run, about.Place.Interrupt, about.Place.Request} {
		if id != "" {
			out.Subject = id // the most specific id
		}
	}
	var b bytes.Buffer
	if err := appendJSON(&b, out); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // remove the brace: the data is inserted unchanged, not encoded again
	b.WriteString(`,"data":`)
	b.Write(raw)
	b.WriteString("}\n")
	_, err = e.w.Write(b.Bytes())
	return err
}
