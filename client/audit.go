package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/fermata-go/fermata/api"
)

// Checkpoints returns what was signed of the account's audit log, from behind a size on: a page of it if there is much.
func (c *Client) Checkpoints(ctx context.Context, after int64) (page api.Checkpoints, err error) {
	query := make(url.Values)
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	return page, c.call(ctx, request{path: "/audit/checkpoints", query: query}, &page)
}

// Findings returns where the account's audit log, its runs and what was done do not agree. It is found out now, and may take a while.
func (c *Client) Findings(ctx context.Context) (found api.Findings, err error) {
	return found, c.call(ctx, request{path: "/audit/findings"}, &found)
}
