package client

import (
	"context"
	"net/url"
	"strconv"

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
