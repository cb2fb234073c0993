package executor_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/webhook"
)

// Two replicas send each event once and in order, although the receiver fails at first. A replica
// that starts later continues after the last event.
func TestWebhooks_ReplicasSendEachEventOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		var mu sync.Mutex
		var got []string
		fail := 2
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			var e webhook.Event
			if err != nil || json.Unmarshal(body, &e) != nil {
				t.Errorf("%v: %s", err, body)
			}
			mu.Lock()
			defer mu.Unlock()
			if fail--; fail >= 0 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			got = append(got, e.ID)
		}))
		t.Cleanup(receiver.Close)
		sender, err := webhook.New([]string{"127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		change := func(c *executor.Config) { c.Webhooks = sender }
		d := new(dropper)
		e := d.executor(t, open(), change)
		if _, _, err := e.CreateWebhook(t.Context(), "acme", desk.From{Actor: desk.PersonActor("ops", requirement.AuthSSO)}, receiver.URL, webhook.Filter{}); err != nil {
			t.Fatal(err)
		}
		e.StartWorkers()
		d.executor(t, open(), change).StartWorkers()
		startDrop(t, e)
		completed(t, mustRun(t, e, addressed(t, e, decision("1", "approve"))))
		events := func() (ids []string) {
			view, err := e.GetRun(t.Context(), "acme", "drop-1")
			if err != nil {
				t.Fatal(err)
			}
			list, err := e.Events(t.Context(), "acme", view.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range list {
				ids = append(ids, view.ID+":"+strconv.FormatInt(event.Seq, 10))
			}
			return ids
		}
		sent := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(got)
		}
		eventually(t, func() bool { return len(sent()) >= len(events()) })
		if want := events(); !slices.Equal(sent(), want) {
			t.Errorf("sent %q; want %q", sent(), want)
		}
	})
}
