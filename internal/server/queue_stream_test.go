package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

const queueEvents = "/api/v1/requests/events"

// queueReader reads a stream of requests as a person.
type queueReader struct {
	*site
	events chan api.QueueEvent
}

func (s *site) followQueue(who string, headers ...string) *queueReader {
	s.Helper()
	response, err := http.DefaultClient.Do(s.request(who, "GET", queueEvents, "", append(headers, "Accept", acceptStream)...))
	if err != nil || response.StatusCode != 200 {
		s.Fatal(response, err)
	}
	s.Cleanup(func() { response.Body.Close() })
	q := &queueReader{s, make(chan api.QueueEvent, 100)}
	go func() {
		defer close(q.events)
		eventsIn(response.Body, func(e event) bool {
			var got api.QueueEvent
			if err := json.Unmarshal([]byte(e.data), &got); err != nil || got.Type != e.kind || got.ID != e.id {
				s.Errorf("%+v: %v", e, err)
			}
			q.events <- got
			return true
		})
	}()
	return q
}

// next returns the next event, which must be of a type.
func (q *queueReader) next(kind string) api.QueueEvent {
	q.Helper()
	select {
	case got := <-q.events:
		if got.Type != kind {
			q.Fatalf("%s instead of %s", got.Type, kind)
		}
		return got
	case <-time.After(time.Minute):
		q.Fatalf("no event %s", kind)
		panic("unreachable")
	}
}

// The stream sends every change of a request to the people who see it, and resumes after any event.
func TestQueueEvents_ChangesReachPeopleWhoSeeTheRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, st store.Store) {
		s := openPaySite(t, st)
		fay, zoe, other := s.followQueue("fay@acme"), s.followQueue("zoe@acme"), s.followQueue("fay@other")
		for _, q := range []*queueReader{fay, zoe, other} {
			q.next("ready")
		}
		s.chat("agent@acme", startPay)
		id := s.openRequests("acme")[0].ID
		opened := fay.next("opened")
		if opened.Request != id || opened.ID == "" {
			t.Fatalf("%+v", opened)
		}
		if got := s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/claim", `{}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		claimed := fay.next("claimed")
		if claimed.Request != id || claimed.Revision <= opened.Revision {
			t.Errorf("%+v after %+v", claimed, opened)
		}
		s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/comment", `{"text":"Why?"}`)
		fay.next("changed")
		// zoe sees only this one, which has no audience
		s.chat("agent@acme", strings.NewReplacer("inproc:pay", "inproc:buy", "pay-1", "buy-1").Replace(startPay))
		bought := fay.next("opened")
		if got := zoe.next("opened"); got.Request != bought.Request {
			t.Errorf("%+v, not %+v", got, bought)
		}
		if got := s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		decided := fay.next("decided")
		if len(zoe.events)+len(other.events) > 0 {
			t.Error("people get events of requests that they may not see")
		}
		again := s.followQueue("fay@acme", "Last-Event-ID", claimed.ID)
		again.next("changed")
		again.next("opened")
		if got := again.next("decided"); got.ID != decided.ID || got.Request != id {
			t.Errorf("%+v, not %+v", got, decided)
		}
		for _, unknown := range []string{"x", "-1", "999999999"} {
			reset := s.followQueue("fay@acme", "Last-Event-ID", unknown).next("reset")
			s.followQueue("fay@acme", "Last-Event-ID", reset.ID) // is accepted
		}
	})
}

// People who may see a request see its viewers.
func TestQueueEvents_ViewersAreShown(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	fay, zoe := s.followQueue("fay@acme"), s.followQueue("zoe@acme")
	fay.next("ready")
	zoe.next("ready")
	s.chat("agent@acme", startPay)
	id := fay.next("opened").Request
	if got := s.call("zoe@acme", "POST", "/api/v1/requests/"+id+"/viewing", ""); got.status != 404 {
		t.Errorf("a request that one may not see: %+v", got)
	}
	if got := s.call("hugo@acme", "POST", "/api/v1/requests/"+id+"/viewing", ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	if got := fay.next("viewing"); got.Request != id || got.ID != "" || len(got.Viewers) != 1 || got.Viewers[0].By != "hugo" {
		t.Errorf("%+v", got)
	}
	var shown api.Request
	if err := json.Unmarshal([]byte(s.call("fay@acme", "GET", "/api/v1/requests/"+id, "").body), &shown); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(shown.Activity.Viewers, func(v api.Stamp) bool { return v.By == "hugo" }) {
		t.Errorf("%+v", shown.Activity.Viewers)
	}
	if len(zoe.events) > 0 {
		t.Error("a person learns about a request that they may not see")
	}
}
