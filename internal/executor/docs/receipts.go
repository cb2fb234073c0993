package docs

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// Receipt is what an agent elsewhere says it did after the decision on its request.
type Receipt struct {
	// Digest is that of the action and the arguments that were executed: see
	// [fermata.ApprovalRequest].
	Digest string `json:"digest"`
	// Outcome is "done", "failed" or "not_done".
	Outcome string          `json:"outcome"`
	Result  json.RawMessage `json:"result,omitempty"`
	// By sent it, at the time At.
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// DecodeReceipt returns the receipt among the documents of a run; nil if there is none.
func (ds *Docs) DecodeReceipt(documents []store.Document) (*Receipt, error) {
	for _, paper := range documents {
		if paper.Kind == ReceiptKind {
			var receipt Receipt
			err := ds.DecodeBody(paper, &receipt)
			return &receipt, err
		}
	}
	return nil, nil
}
