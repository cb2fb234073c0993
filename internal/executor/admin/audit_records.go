package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/store"
)

// AuditQuery selects records of an audit log. The zero value selects all of them.
type AuditQuery struct {
	// Before is the sequence number below which records are read; 0 is the end of the log.
	Before int64
	// Limit is how many records to return at most; the default is 100.
	Limit int
	// Text is a part of the stored line, in any case. Kind, Actor and Request are equal to those of
	// the record.
	Text, Kind, Actor, Request string
	// Since and Until limit the time: since <= time < until.
	Since, Until time.Time
}

// AuditPage is a page of the records that a query selects, newest first.
type AuditPage struct {
	Lines []store.AuditLine
	// Next is Before of the next page; 0 at the end of the search.
	Next int64
	// Scanned is how many records were read, at most [MaxAuditScan].
	Scanned int
}

// MaxAuditScan is how many records of a log one search reads.
const MaxAuditScan = 20000

// auditHeader is the part of a record that queries select by.
type auditHeader struct {
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	Actor struct {
		Principal string `json:"principal"`
	} `json:"actor"`
	Place struct {
		Request   string `json:"request"`
		Interrupt string `json:"interrupt"`
	} `json:"place"`
}

// IsFiltered reports whether the query selects some records only, and so may read many of them.
func (q AuditQuery) IsFiltered() bool {
	return q.Text != "" || q.Kind != "" || q.Actor != "" || q.Request != "" || !q.Since.IsZero() || !q.Until.IsZero()
}

// selects reports whether a line is selected. The search by time relies on the order of the log.
func (q AuditQuery) selects(line []byte, header auditHeader) bool {
	return (q.Text == "" || bytes.Contains(bytes.ToLower(line), bytes.ToLower([]byte(q.Text)))) &&
		(q.Kind == "" || q.Kind == header.Kind) && (q.Actor == "" || q.Actor == header.Actor.Principal) &&
		(q.Request == "" || q.Request == header.Place.Request || q.Request == header.Place.Interrupt)
}

// AuditRecords returns the records of an account that a query selects, newest first.
func (ad *Admin) AuditRecords(ctx context.Context, account string, q AuditQuery) (page AuditPage, err error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	head, err := ad.store.AuditHead(ctx, account)
	if err != nil {
		return page, err
	}
	before := head.Seq + 1
	if q.Before > 0 {
		before = min(before, q.Before)
	}
	if !q.Until.IsZero() {
		if before, err = ad.firstRecordAt(ctx, account, before, q.Until); err != nil {
			return page, err
		}
	}
	chunk := int64(1000)
	if !q.IsFiltered() {
		chunk = min(chunk, int64(q.Limit))
	}
	for before > 1 && page.Scanned < MaxAuditScan {
		after := max(before-chunk, 1) - 1
		lines, err := ad.store.AuditLines(ctx, account, after, int(before-after-1))
		if err != nil {
			return AuditPage{}, err
		}
		for i := len(lines) - 1; i >= 0; i-- {
			line := lines[i]
			page.Scanned++
			var header auditHeader
			_ = json.Unmarshal(line.Raw, &header) // a changed record may be anything
			if !header.Time.IsZero() && header.Time.Before(q.Since) {
				return page, nil
			}
			if !q.selects(line.Raw, header) {
				continue
			}
			page.Lines = append(page.Lines, line)
			if len(page.Lines) == q.Limit {
				if line.Seq > 1 {
					page.Next = line.Seq
				}
				return page, nil
			}
		}
		before = after + 1
	}
	if before > 1 {
		page.Next = before
	}
	return page, nil
}

// firstRecordAt returns the number of the first record at or after a time, or before if there is
// none below it. The times of a log grow with its numbers.
func (ad *Admin) firstRecordAt(ctx context.Context, account string, before int64, at time.Time) (int64, error) {
	var failed error
	n := sort.Search(int(before-1), func(i int) bool {
		lines, err := ad.store.AuditLines(ctx, account, int64(i), 1)
		if failed = errors.Join(failed, err); failed != nil || len(lines) == 0 {
			return true
		}
		var header auditHeader
		_ = json.Unmarshal(lines[0].Raw, &header) // a changed record may be anything
		return !header.Time.Before(at)
	})
	return int64(n) + 1, failed
}

// AuditAbout returns the records about a request, oldest first, exactly as they are stored. It
// reads the whole log.
func (ad *Admin) AuditAbout(ctx context.Context, account, request string) (lines [][]byte, err error) {
	quoted, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	for raw, err := range audit.NewStoreLog(ad.store).Records(ctx, account, 0, 0) {
		if err != nil {
			return nil, err
		}
		var header auditHeader
		if bytes.Contains(raw, quoted) && json.Unmarshal(raw, &header) == nil && (header.Place.Request == request || header.Place.Interrupt == request) {
			lines = append(lines, raw)
		}
	}
	return lines, nil
}

// VerifyAudit verifies the log of an account against its signed checkpoints. An invalid log is not
// an error; the report has the problem.
func (ad *Admin) VerifyAudit(ctx context.Context, account string) (audit.VerifyReport, error) {
	against, err := ad.verifyAgainst(ctx, account)
	if err != nil {
		return audit.VerifyReport{}, err
	}
	report, err := audit.Verify(ctx, audit.NewStoreLog(ad.store), account, against, io.Discard)
	if _, invalid := errors.AsType[*audit.Problem](err); invalid {
		err = nil
	}
	if err == nil && report.To == 0 && report.Untrusted > 0 && report.Problem == nil {
		report.Problem = &audit.Problem{Account: account, Seq: 1, Fault: audit.FaultTruncated, Text: "there are checkpoints, but no records"}
	}
	return report, err
}

// ProveAudit returns the proof of a record as a file for [audit.CheckProof]. Errors are those of
// [audit.Prove]; audit.ErrNotSigned also if this installation does not sign.
func (ad *Admin) ProveAudit(ctx context.Context, account string, seq int64) ([]byte, error) {
	against, err := ad.verifyAgainst(ctx, account)
	if err != nil {
		return nil, err
	}
	if against.Trust.IsEmpty() {
		return nil, audit.ErrNotSigned
	}
	var proof bytes.Buffer
	_, err = audit.Prove(ctx, audit.NewStoreLog(ad.store), account, seq, against.Trust, &proof)
	return proof.Bytes(), err
}
