package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// openRequest starts a run that waits, and returns its request.
func openRequest(t *testing.T, c *client.Client) api.Request {
	t.Helper()
	if _, err := c.Start(t.Context(), "inproc:memo", "memo-1", json.RawMessage(`{"text":"by "}`)); err != nil {
		t.Fatal(err)
	}
	page, err := c.Requests(t.Context(), client.Query{State: "pending"})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	return page.Items[0]
}

func TestAct_ReturnsUpdatedRequest(t *testing.T) {
	c := serve(t, plain)
	id := openRequest(t, c).ID
	for _, step := range []struct {
		act  string
		body api.RequestAction
		want func(*api.Activity) bool
	}{
		{client.ActionView, api.RequestAction{}, func(l *api.Activity) bool { return l.History[len(l.History)-1].Event == "viewed" }},
		{client.ActionClaim, api.RequestAction{}, func(l *api.Activity) bool { return l.Claim != nil && l.Claim.By == "ann" }},
		{client.ActionComment, api.RequestAction{Text: "so"}, func(l *api.Activity) bool { return l.Comments[0].Text == "so" }},
		{client.ActionClarify, api.RequestAction{Text: "why?"}, func(l *api.Activity) bool { return l.Clarifications[0].Reply == nil }},
		{client.ActionReply, api.RequestAction{Text: "why not", Clarification: 1}, func(l *api.Activity) bool { return l.Clarifications[0].Reply.Text == "why not" }},
		{client.ActionRelease, api.RequestAction{}, func(l *api.Activity) bool { return l.Claim == nil }},
		{client.ActionAbandon, api.RequestAction{Text: "enough"}, func(l *api.Activity) bool { return l.State == "withdrawn" }},
	} {
		r, err := c.Act(t.Context(), id, step.act, step.body)
		if err != nil || r.ID != id || r.Activity == nil || !step.want(r.Activity) {
			t.Fatalf("%s: %+v, %v", step.act, r.Activity, err)
		}
	}
	_, err := c.Act(t.Context(), id, client.ActionClaim, api.RequestAction{})
	if problem, ok := errors.AsType[*api.Problem](err); !ok || problem.Status/100 != 4 {
		t.Errorf("after its end: %v", err)
	}
}

// An id or action with any characters is one path segment.
func TestAct_EscapesTheID(t *testing.T) {
	var path string
	c := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.EscapedPath()
			w.WriteHeader(http.StatusNotFound)
		})
	})
	if _, err := c.Act(t.Context(), "../x", "../decision?y", api.RequestAction{}); err == nil || path != "/api/v1/requests/..%2Fx/..%2Fdecision%3Fy" {
		t.Errorf("%s, %v", path, err)
	}
}

// An action whose response was lost is repeated and applied once.
func TestAct_RetryAppliesOnce(t *testing.T) {
	var lost sync.Map // the paths whose first response was lost
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/requests/") {
				if _, before := lost.LoadOrStore(r.URL.Path, true); !before {
					h.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				}
			}
			h.ServeHTTP(w, r)
		})
	})
	id := openRequest(t, c).ID
	happened := 1 // it was created
	for _, act := range []string{client.ActionComment, client.ActionClarify, client.ActionAbandon} {
		r, err := c.Act(t.Context(), id, act, api.RequestAction{Text: "so"})
		if err != nil {
			t.Fatalf("%s: %v", act, err)
		}
		if happened++; len(r.Activity.History) < happened || len(r.Activity.Comments) > 1 || len(r.Activity.Clarifications) > 1 {
			t.Errorf("%s: %+v", act, r.Activity)
		}
	}
	paths := 0
	lost.Range(func(any, any) bool { paths++; return true })
	if paths != 3 {
		t.Errorf("lost the responses of %d actions", paths)
	}
}

func TestAnalytics_IsRetriedAndDecoded(t *testing.T) {
	var calls atomic.Int64
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/analytics") && calls.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	r := openRequest(t, c)
	if _, err := c.Decide(t.Context(), r.ID, api.Decide{Answer: json.RawMessage(`"ann"`)}); err != nil {
		t.Fatal(err)
	}
	report, err := c.Analytics(t.Context(), 7, "Europe/Zurich")
	if err != nil || calls.Load() != 2 || report.All.Requests != 1 || report.All.Answered != 1 || len(report.People) != 1 || report.People[0].Name != "ann" {
		t.Errorf("%+v, %v", report, err)
	}
	if days := report.Until.Sub(report.Since).Hours() / 24; days < 6.9 || days > 7.1 {
		t.Errorf("the report covers %.1f days", days)
	}
	if _, err := c.Analytics(t.Context(), 0, "Nowhere"); err == nil {
		t.Error("an invalid zone was accepted")
	}
}

func TestExplainPolicy_WithoutPolicyIsAnError(t *testing.T) {
	c := serve(t, plain)
	_, err := c.ExplainPolicy(t.Context(), api.HypotheticalAction{Tool: "refund", Args: json.RawMessage(`{"cents":1}`)})
	if problem, ok := errors.AsType[*api.Problem](err); !ok || problem.Code != "no_policy" {
		t.Errorf("%v", err)
	}
}

// An agent without a webhook reads closed requests page by page, and knows when there are no more.
func TestAnswers_PollWithCursor(t *testing.T) {
	c := serve(t, plain)
	r := openRequest(t, c)
	if _, err := c.Decide(t.Context(), r.ID, api.Decide{Answer: json.RawMessage(`"ann"`), Shown: r.Shown}); err != nil {
		t.Fatal(err)
	}
	var got []api.AnsweredRequest
	for cursor := ""; ; {
		page, err := c.Answers(t.Context(), cursor, 1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Items...)
		if page.Next == cursor {
			break
		}
		cursor = page.Next
	}
	if len(got) != 1 || got[0].Interrupt != r.ID || got[0].StateKey != r.StateKey || string(got[0].Answer) != `"ann"` || got[0].By != "ann" {
		t.Errorf("%+v", got)
	}
}

// A reveal returns the request; without masked values it is the same one.
func TestReveal_ReturnsTheRequest(t *testing.T) {
	c := serve(t, plain)
	want := openRequest(t, c)
	r, err := c.Reveal(t.Context(), want.ID)
	if err != nil || r.ID != want.ID || string(r.Data) != string(want.Data) || r.Masked != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Reveal(t.Context(), "nothing"); err == nil {
		t.Error("a request that does not exist was revealed")
	}
}
