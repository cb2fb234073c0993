package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	deskpkg "github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// hurriedRules want two people for large refunds, so that others edit open requests, and let small
// ones expire soon.
const hurriedRules = `
version: "1"
default: allow
rules:
- id: large
  when: req.tool == "refund" && args.order % 3 == 0
  then: ask
  ask: {groups: [{count: 2, from: ["group:support"]}], editable: [""], deadline: 1h}
- id: small
  when: req.tool == "refund" && args.order % 3 == 1
  then: ask
  ask: {groups: [{from: ["group:support"]}], editable: [""], deadline: 4s}
- id: others
  when: req.tool == "refund" && args.order % 3 == 2
  then: ask
  ask: {groups: [{from: ["group:support"]}], editable: [""], deadline: 1h}
`

// confirmed is what a form said when it was sent.
type confirmed struct{ ID, Verb, Shown, Subject string }

// recordConfirmations keeps in the tab what each form says when it is sent.
const recordConfirmations = `addEventListener("submit", (e) => {
	const form = e.target;
	if (!form.matches("form.action")) return;
	const all = JSON.parse(sessionStorage.getItem("confirmed") ?? "[]");
	all.push({id: form.getAttribute("action").split("/")[2], verb: form.dataset.act, shown: form.elements.shown.value, subject: form.querySelector(".subject").innerText});
	sessionStorage.setItem("confirmed", JSON.stringify(all));
}, true)`

// hurried is a person at the inbox, while others decide, edit and cancel, and requests come and
// expire.
type hurried struct {
	*tab
	random *rand.Rand
	ids    []string
	orders map[string]int // by the id of the request
	other  int            // counts the decisions of bob
	steps  []string
}

func (h *hurried) ask() {
	h.steps = append(h.steps, "(asked)")
	order := len(h.ids)
	id := ask(h.T, h.server, "inproc:test-refund", fmt.Sprintf("refund-%d", order), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"2%d.00"}`, order, order%10))
	h.ids, h.orders[id] = append(h.ids, id), order
}

// byOthers makes bob decide or edit a request, or cancels its run. It may be over already.
func (h *hurried) byOthers() {
	h.steps = append(h.steps, "(other)")
	id := h.ids[h.random.IntN(len(h.ids))]
	order := h.orders[id]
	answer := []string{
		`{"verb":"approve"}`, `{"verb":"reject","reason":"no"}`,
		fmt.Sprintf(`{"verb":"approve","args":{"order":%d,"payment":7,"amount":"1%d.00"}}`, order, h.random.IntN(10)),
	}
	h.other++
	if n := h.random.IntN(4); n == 3 {
		_ = h.server.Executor.Cancel(h.Context(), webtest.Account, fmt.Sprintf("refund-%d", order), deskpkg.From{Actor: deskpkg.Actor{ID: "bob", Kind: deskpkg.ActorHuman}})
	} else {
		_, _ = h.server.Executor.Decide(h.Context(), executor.DecideRequest{
			Account: webtest.Account, ResumeID: fmt.Sprintf("bob-%d", h.other), Actor: "bob", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(answer[n])}},
		})
	}
}

// pause lets the page do something, or not.
func (h *hurried) pause() { time.Sleep(time.Duration(h.random.IntN(400)) * time.Millisecond) }

// goBack opens the inbox. The page may go elsewhere at the same moment: then it is opened again.
func (h *hurried) goBack() {
	h.steps = append(h.steps, "(inbox)")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := tryEval[bool](h.tab, `location.assign("/inbox"), true`)
		if err == nil {
			h.pause()
			at, err := tryEval[string](h.tab, `document.readyState + location.pathname`)
			if err == nil && at == "complete/inbox" {
				return
			}
		}
		if time.Now().After(end) {
			h.Fatalf("the inbox does not open: %v\n%s", err, h.text())
		}
	}
}

// step presses a key or lets something happen elsewhere, without waiting for the page.
func (h *hurried) step() {
	press := func(key string, options ...chromedp.KeyOption) {
		h.steps = append(h.steps, key)
		h.do(chromedp.KeyEvent(key, options...))
	}
	confirm := func() { press(kb.Enter, chromedp.KeyModifiers(ctrl)) }
	switch n := h.random.IntN(22); {
	case n < 7:
		press([]string{"j", "k", "j", kb.ArrowDown, kb.ArrowUp, kb.Tab, "x"}[n])
	case n < 10:
		press([]string{"a", "r", "e"}[n-7])
	case n < 14: // a decision, in which something may happen
		press([]string{"a", "a", "a", "e"}[n-10])
		h.pause()
		if h.random.IntN(3) == 0 {
			h.byOthers()
			h.pause()
		}
		confirm()
		h.pause()
	case n == 14:
		press(kb.Enter)
	case n == 15:
		press(kb.Escape)
	case n == 16:
		confirm()
	case n == 17:
		h.ask()
	case n == 18:
		h.goBack()
	case n == 19:
		h.pause()
	default:
		h.byOthers()
	}
}

// approveLast approves a request that does not expire soon, so that each sequence has a vote.
func (h *hurried) approveLast() {
	for h.ask(); (len(h.ids)-1)%3 != 2; {
		h.ask()
	}
	last := h.ids[len(h.ids)-1]
	h.do(chromedp.Navigate(h.server.URL+"/inbox?id="+last), chromedp.WaitVisible("fermata-request"), chromedp.KeyEvent("a"))
	if got := h.subject(); got != last {
		h.Fatalf("the dialog is about %s, not the shown %s", got, last)
	}
	h.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(ctrl)))
	for end := time.Now().Add(time.Minute); len(h.votes(last, "ann")) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("no vote for %s\n%s", last, h.text())
		}
	}
}

// votes returns the verbs of a person's votes for a request, as the audit log has them.
func (h *hurried) votes(id, person string) (verbs []string) {
	h.Helper()
	got := h.server.SignIn("eve").Get("/api/v1/audit/requests/" + id)
	if got.Status != http.StatusOK {
		h.Fatalf("%d: %s", got.Status, got.Body)
	}
	for line := range strings.Lines(got.Body) {
		var r struct {
			Kind  string
			Actor struct{ Principal string }
			Body  struct{ Verb string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			h.Fatalf("%v: %s", err, line)
		}
		if r.Kind == "request.decided" && r.Actor.Principal == person {
			verbs = append(verbs, r.Body.Verb)
		}
	}
	return verbs
}

// accepted keeps the decisions that the pages sent and the API accepted: id, verb and digest.
type accepted struct {
	mu   sync.Mutex
	list []confirmed
}

func (a *accepted) wrap(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, isDecision := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/requests/"), "/decision")
		if !isDecision {
			api.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		var sent struct {
			Shown  string
			Answer struct{ Verb string }
		}
		if answer.Code < 300 && json.Unmarshal(body, &sent) == nil {
			a.mu.Lock()
			a.list = append(a.list, confirmed{ID: id, Verb: sent.Answer.Verb, Shown: sent.Shown})
			a.mu.Unlock()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// After random keys, decisions and edits by others, expiries and live updates, the audit log has
// votes of the person only for requests whose sentence was in the form when it was sent, with its
// verb, at the version that the form showed.
func TestInbox_EveryVoteIsTheOneThatTheDialogNamed(t *testing.T) {
	rules, err := policy.Load("policy.yaml", []byte(hurriedRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testtier.Needs(t, "Chromium")
	var sent accepted
	s := webtest.Open(t, webtest.Config{
		Graphs: graphs(t), Desk: executor.DeskConfig{Policy: rules, Directory: deskpkg.StaticDirectory{"group:support": {"ann", "bob"}}},
		Site: func(api http.Handler) (http.Handler, error) { return web.New(web.Config{API: sent.wrap(api)}) },
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &hurried{tab: newTab(t, s, desk), random: rand.New(rand.NewPCG(seed, 0)), orders: make(map[string]int)}
	for range 8 {
		h.ask()
	}
	if _, err := chromedp.Call(h.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: recordConfirmations}); err != nil {
		t.Fatal(err)
	}
	h.do(chromedp.Navigate(s.SignInLink("ann", "/inbox")))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("steps %q", h.steps)
		}
	})
	for range testtier.Count(60, 2000, 20000) {
		h.step()
	}
	h.goBack() // what was sent has arrived
	h.approveLast()
	said := make(map[string]bool)
	for _, c := range eval[[]confirmed](h.tab, `JSON.parse(sessionStorage.getItem("confirmed") ?? "[]")`) {
		said[c.ID+" "+c.Verb+" "+c.Shown] = true
		if order, ok := h.orders[c.ID]; !ok || !strings.Contains(c.Subject, fmt.Sprintf("order %d", order)) {
			t.Errorf("the dialog of %s (order %d) says %q", c.ID, order, c.Subject)
		}
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	accepted := make(map[string]int)
	for _, d := range sent.list {
		accepted[d.ID+" "+d.Verb]++
		if !said[d.ID+" "+d.Verb+" "+d.Shown] && (d.Verb != "approve" || !said[d.ID+" edit "+d.Shown]) {
			t.Errorf("no dialog said %+v (order %d)", d, h.orders[d.ID])
		}
	}
	votes := 0
	for _, id := range h.ids {
		for _, verb := range h.votes(id, "ann") {
			votes++
			if accepted[id+" "+verb]--; accepted[id+" "+verb] < 0 {
				t.Errorf("the audit log has the vote %s for order %d, which was not sent", verb, h.orders[id])
			}
		}
	}
	if votes == 0 || votes != len(sent.list) {
		t.Errorf("%d votes in the log, %d were accepted", votes, len(sent.list))
	}
	t.Logf("%d votes, %d confirmations, %d requests", votes, len(said), len(h.ids))
}
