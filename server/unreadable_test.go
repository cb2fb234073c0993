package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
	"github.com/fermata-go/fermata/store"
)

// keyless is a box that has lost the keys of what is bound to one id.
type keyless struct {
	executor.Box
	lost atomic.Pointer[string]
}

func (f *keyless) Open(label string, sealed []byte) ([]byte, error) {
	if lost := f.lost.Load(); lost != nil && sealed != nil && strings.Contains(label, *lost) {
		return nil, box.ErrNoKey
	}
	return f.Box.Open(label, sealed)
}

// One request of which something cannot be opened any more, be it what is asked or what people did with it, kept everybody from the whole inbox.
func TestRequests_OneThatCannotBeOpenedIsMarkedAndPassed(t *testing.T) {
	for _, what := range []store.SealedWhat{store.SealedData, store.SealedPaper} {
		t.Run(string(what), func(t *testing.T) {
			keys := new(keyless)
			s := openWith(t, nil, func(c *executor.Config) { keys.Box, c.Box = c.Box, keys })
			for n := range 3 {
				s.chat("agent@acme", fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":"demo-%d","input":{"topic":"tea"}}`, n))
			}
			lost := s.questions("acme")[1].ID
			label := fmt.Sprintf("%q/%s/", lost, what)
			keys.lost.Store(&label)

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
			if text := s.metrics(); !strings.Contains(text, "\nfermata_unreadable_total 1\n") {
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
