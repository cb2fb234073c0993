package docs

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata/internal/store"
)

// renderedText is the body of a document of [RenderingKind].
type renderedText struct {
	Text string `json:"text"`
}

// RenderingID returns the id of the document with the text of a rendering. screen is the sum by
// which the audit log names the rendering.
func RenderingID(request, screen string) string { return request + "/" + screen }

// RenderedText returns the text of a rendering; "" if it was not kept.
func (ds *Docs) RenderedText(ctx context.Context, account, request, screen string) (string, error) {
	paper, err := ds.Store.Document(ctx, account, RenderingKind, RenderingID(request, screen))
	if IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var body renderedText
	err = ds.DecodeBody(paper, &body)
	return body.Text, err
}

// NewRenderedText returns the document of a new text.
func NewRenderedText(run, request, screen, text string) (store.DocumentChange, error) {
	body, err := json.Marshal(renderedText{text})
	return store.DocumentChange{Kind: RenderingKind, ID: RenderingID(request, screen), Run: run, Body: body}, err
}
