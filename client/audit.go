package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/api"
)

// Checkpoints returns a page of the signed checkpoints of the account's audit log that cover more
// than after records.
func (c *Client) Checkpoints(ctx context.Context, after int64) (page api.Checkpoints, err error) {
	query := make(url.Values)
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return page, c.call(ctx, request{path: "/audit/checkpoints", query: query}, &page)
}

// AuditLines returns records of the account's audit log after a sequence number, exactly as they
// are stored: one JSON object per line. It is empty after the last record.
func (c *Client) AuditLines(ctx context.Context, after int64) (lines []byte, err error) {
	// a page of the longest records fits into a response
	query := url.Values{"limit": {"200"}}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return lines, c.call(ctx, request{path: "/audit", query: query}, &lines)
}

// Findings reconciles the account's audit log, runs and effects on the server, which may take a
// while, and returns the discrepancies.
func (c *Client) Findings(ctx context.Context) (found api.Findings, err error) {
	return found, c.call(ctx, request{path: "/audit/findings"}, &found)
}

// AuditQuery selects records of the account's audit log. The zero value selects all of them.
type AuditQuery struct {
	// Before is the sequence number below which records are read; 0 is the end of the log.
	Before int64
	Limit  int
	// Text is a part of the stored record. Kind, Actor and Request are equal to those of the
	// record.
	Text, Kind, Actor, Request string
	// Since and Until limit the time: since <= time < until.
	Since, Until time.Time
}

// AuditRecords returns a page of the selected records, newest first.
func (c *Client) AuditRecords(ctx context.Context, q AuditQuery) (page api.AuditRecords, err error) {
	query := make(url.Values)
	for name, value := range map[string]string{"q": q.Text, "kind": q.Kind, "actor": q.Actor, "request": q.Request} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, number := range map[string]int64{"before": q.Before, "limit": int64(q.Limit)} {
		if number > 0 {
			query.Set(name, strconv.FormatInt(number, 10))
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return page, c.call(ctx, request{path: "/audit/records", query: query}, &page)
}

// AuditBundle returns the evidence of a request as a file for fermata audit check.
func (c *Client) AuditBundle(ctx context.Context, id string) (file []byte, err error) {
	return file, c.call(ctx, request{path: "/audit/requests/" + url.PathEscape(id) + "/bundle"}, &file)
}

// AuditTrail returns, as JSON, what the log says about the actions of a run: the proposal, the
// approval and the execution of each.
func (c *Client) AuditTrail(ctx context.Context, stateKey string) (trails json.RawMessage, err error) {
	return trails, c.call(ctx, request{path: "/audit/runs/" + url.PathEscape(stateKey) + "/trail"}, &trails)
}

// VerifyAudit verifies the account's audit log on the server, which may take a while.
func (c *Client) VerifyAudit(ctx context.Context) (report api.AuditVerification, err error) {
	return report, c.call(ctx, request{path: "/audit/verification"}, &report)
}

// ProveAudit returns the proof of a record as a file for fermata audit check.
func (c *Client) ProveAudit(ctx context.Context, seq int64) (proof []byte, err error) {
	return proof, c.call(ctx, request{path: "/audit/records/" + strconv.FormatInt(seq, 10) + "/proof"}, &proof)
}
