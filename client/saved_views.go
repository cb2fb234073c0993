package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/fermata-go/fermata/api"
)

const viewsPath = "/me/views"

// SavedViews returns the searches that the caller has saved.
func (c *Client) SavedViews(ctx context.Context) (page api.Page[api.SavedView], err error) {
	return page, c.call(ctx, request{path: viewsPath}, &page)
}

// SaveView changes a saved view, or saves a new one if the id is "".
func (c *Client) SaveView(ctx context.Context, id string, view api.SaveView) (saved api.SavedView, err error) {
	r := request{method: http.MethodPost, path: viewsPath, body: view}
	if id != "" {
		r.method, r.path = http.MethodPut, viewsPath+"/"+url.PathEscape(id)
	}
	return saved, c.call(ctx, r, &saved)
}

// DeleteView deletes a saved view.
func (c *Client) DeleteView(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: viewsPath + "/" + url.PathEscape(id)}, nil)
}
