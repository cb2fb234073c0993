package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
)

// lostKeySealer is a sealer that has lost the keys of values bound to one id.
type lostKeySealer struct {
	executor.Sealer
	lostLabel atomic.Pointer[string]
}

func (f *lostKeySealer) Open(label string, sealed []byte) ([]byte, error) {
	if lost := f.lostLabel.Load(); lost != nil && sealed != nil && strings.Contains(label, *lost) {
		return nil, seal.ErrUnknownKey
	}
	return f.Sealer.Open(label, sealed)
}

// One request that cannot be decrypted used to make the whole inbox fail.
func TestRequests_UnreadableRequestIsMarked(t *testing.T) {
	for _, what := range []store.SealedField{store.SealedData, store.SealedDocument} {
		t.Run(string(what), func(t *testing.T) {
			keys := new(lostKeySealer)
			s := openWith(t, nil, func(c *executor.Config) { keys.Sealer, c.Sealer = c.Sealer, keys })
			for n := range 3 {
				s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":"demo-%d","input":{"topic":"tea"}}`, n))
			}
			lost := s.openRequests("acme")[1].ID
			label := fmt.Sprintf("%q/%s/", lost, what)
			keys.lostLabel.Store(&label)

			var page struct{ Items []api.Request }
			got := s.call("approver@acme", "GET", "/api/v1/requests", "")
			if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 || len(page.Items) != 3 {
				t.Fatal(got, err)
			}
			for _, r := range page.Items {
				if r.Unreadable != (r.ID == lost) {
					t.Errorf("%+v", r)
				}
			}
			if text := s.metrics(); !strings.Contains(text, "\nfermata_decrypt_failures_total 1\n") {
				t.Error(text)
			}
			for _, got := range []answer{
				s.call("approver@acme", "GET", "/api/v1/requests/"+lost, ""),
				s.call("approver@acme", "POST", "/api/v1/requests/"+lost+"/decision", `{"resumeId":"r1","answer":"approve"}`),
			} {
				if got.status != 500 || !strings.Contains(got.body, `"code":"unreadable"`) {
					t.Errorf("by itself: %v", got)
				}
			}
		})
	}
}
