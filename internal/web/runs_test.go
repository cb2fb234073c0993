package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// start starts a run and waits until it waits or ends.
func start(t *testing.T, s *webtest.Server, key, graph, input string) {
	t.Helper()
	_, err := s.Executor.Run(t.Context(), executor.RunRequest{Account: webtest.Account, StateKey: key, Graph: graph, Input: json.RawMessage(input), Actor: "bot"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRuns_ListFiltersByStatus(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	want(t, b.Get("/runs"), http.StatusOK, "No runs")
	start(t, s, "article/tea", "inproc:content-review", `{"topic":"tea"}`)
	got := b.Get("/runs?status=waiting")
	want(t, got, http.StatusOK, `href="/runs/article%2Ftea"`, "Waiting", "inproc:content-review")
	if got := b.Get("/runs?status=failed"); strings.Contains(got.Body, "article/tea") {
		t.Error("a waiting run is listed as failed")
	}
	want(t, b.Get("/runs?status=nonsense"), http.StatusNotFound)
}

func TestRun_ShowsDrawingAndOpenRequest(t *testing.T) {
	s := open(t)
	start(t, s, "article/tea", "inproc:content-review", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/runs/article%2Ftea"), http.StatusOK, "<svg", "human_review", `href="/requests/int_`, "Cancel run", "What its engine supports", "Approvers can edit arguments")
	link := regexp.MustCompile(`/requests/int_\w+`).FindString(b.Get("/runs/article%2Ftea").Body)
	want(t, b.Get(link), http.StatusOK, "What its engine supports", "Approvers can edit arguments")
	want(t, b.Get("/runs/unknown"), http.StatusNotFound)
}

func TestRun_CancelAndResult(t *testing.T) {
	s := open(t)
	start(t, s, "tea", "inproc:content-review", `{"topic":"tea"}`)
	b := s.SignIn("ann")
	if got := s.SignIn("bob", authn.RoleApprover).Get("/runs/tea"); got.Status != http.StatusOK || strings.Contains(got.Body, "/cancel") {
		t.Errorf("an approver is offered to cancel the run: %d", got.Status)
	}
	want(t, b.Follow(b.Post("/runs/tea/cancel")), http.StatusOK, "The run was cancelled.", "Cancelled")
	want(t, b.Post("/runs/tea/retry"), http.StatusConflict, "This was not possible")
}

func TestGraphs_StartARun(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	want(t, b.Get("/graphs"), http.StatusOK, "inproc:content-review", "Writes a text")
	form := b.Get("/graphs/inproc:content-review?key=theirs")
	want(t, form, http.StatusOK, "<svg", `name="v/topic"`, "Start a run")
	if strings.Contains(form.Body, "theirs") {
		t.Error("a link fills the form")
	}
	want(t, b.Post("/graphs/inproc:content-review/start", hidden(form, "op", "json", "v/topic", "tea")...), http.StatusOK, "&#34;topic&#34;: &#34;tea&#34;", "</textarea>")
	// a field is sent as the schema says, and the page of the run is shown
	fielded := b.Follow(b.Post("/graphs/inproc:content-review/start", hidden(form, "op", "send", "v/topic", "coffee", "key", "typed-form")...))
	want(t, fielded, http.StatusOK, "The run was started.", "Waiting", "typed-form")
	got := b.Post("/graphs/inproc:content-review/start", "input", `{"topic":"tea"}`, "key", "tea", "idempotency_key", "1")
	want(t, b.Follow(got), http.StatusOK, "The run was started.", "Waiting")
	// what was typed is kept
	want(t, b.Post("/graphs/inproc:content-review/start", "input", `{"topic":`, "key", "typed"), http.StatusUnprocessableEntity, "not valid JSON", `value="typed"`, "{&#34;topic&#34;:</textarea>")
	got = b.Post("/graphs/inproc:content-review/start", "input", `{"topic":7}`, "key", "typed")
	want(t, got, got.Status, "The run was not started.", `value="typed"`)
	if got.Status < 400 || got.Status >= 500 {
		t.Errorf("%d", got.Status)
	}
	if got := s.SignIn("bob", authn.RoleApprover).Get("/graphs/inproc:content-review"); got.Status == http.StatusOK && strings.Contains(got.Body, "id=\"start\"") {
		t.Error("an approver is offered a start")
	}
}

func TestGrants_Empty(t *testing.T) {
	want(t, open(t).SignIn("ann").Get("/grants"), http.StatusOK, "No grants")
}
