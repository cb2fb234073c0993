package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/store"
)

// A decision behind a link does the same as a call of the API, for every kind of request.
func TestServe_EmailLinkDoesTheSameAsTheAPI(t *testing.T) {
	graphs, err := sample.Graphs()
	if err != nil {
		t.Fatal(err)
	}
	r, s, browser, _ := serveLinkedMail(t, "", append(graphs, tableGraphs(t)...)...)
	for name, c := range map[string]struct{ graph, input, form, answer string }{
		"approval":   {"inproc:refund-order", `{"order":17,"customer":"Ada","amount":120,"currency":"EUR"}`, "action=approve", `{"verb":"approve"}`},
		"rejection":  {"inproc:refund-order", `{"order":17,"customer":"Ada","amount":120,"currency":"EUR"}`, "action=reject&v/reason=too+much", `{"verb":"reject","reason":"too much"}`},
		"gate":       {"inproc:gate", `{"table":"users","verdict":"ask"}`, "action=approve", `{"verb":"approve"}`},
		"gate, back": {"inproc:gate", `{"table":"users","verdict":"ask"}`, "action=reject&v/reason=why", `{"verb":"reject","reason":"why"}`},
		"hold":       {"inproc:deploy", `{"service":"shop","version":"2"}`, "action=approve", `{"verb":"approve"}`},
		"hold, end":  {"inproc:deploy", `{"service":"shop","version":"2"}`, "action=reject&v/reason=not+now", `{"verb":"reject","reason":"not now"}`},
		"question":   {"inproc:question", `{"table":"users","verdict":"ask"}`, "action=respond&v=orders", `"orders"`},
		"choice":     {"inproc:restore-backup", `{"service":"shop"}`, "", ""},
		"review":     {"inproc:content-review", `{"topic":"tea"}`, `action=respond+{"action":"approve"}&v/feedback=fine`, `{"action":"approve","feedback":"fine"}`},
		"doubt":      {"inproc:payout", `{"supplier":"Blum","amount":1840,"currency":"EUR"}`, `action=respond+{"happened":true}`, `{"happened":true}`},
	} {
		var results [2]string
		for i, way := range []string{"link", "api"} {
			key := fmt.Sprintf("parity-%s-%s", way, strings.NewReplacer(", ", "-").Replace(name))
			if _, err := r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: c.graph, Input: json.RawMessage(c.input)}); err != nil {
				t.Fatal(name, err)
			}
			request := openRequest(t, r, browser, key)
			if name == "doubt" { // whose action is approved first
				postDecision(t, browser, r.URL, request, `{"verb":"approve"}`)
				request = openRequest(t, r, browser, key)
			}
			if c.form == "" { // the first option
				answer := string(request.Presentation.Actions[0].Answer)
				c.form, c.answer = "action=respond+"+url.QueryEscape(answer), answer
			}
			if way == "link" {
				status, _ := postForm(t, newBrowser(t), pageOf(t, r.URL, s, request.ID), formOf(t, c.form))
				if status != http.StatusOK {
					t.Errorf("%s: %d", name, status)
				}
			} else {
				postDecision(t, browser, r.URL, request, c.answer)
			}
			results[i] = resultOf(t, r, key, request.ID)
		}
		if results[0] != results[1] || results[0] == "" {
			t.Errorf("%s: by the link\n%s\nby the API\n%s", name, results[0], results[1])
		}
	}
}

// openRequest returns the open request of a run, as ann sees it.
func openRequest(t *testing.T, r *serve.Server, browser *http.Client, key string) (request api.Request) {
	t.Helper()
	eventually(t, "the run of "+key+" asks", func() bool {
		open, err := r.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range open {
			if q.StateKey != key {
				continue
			}
			_, _, body := getPage(t, browser, r.URL+"/api/v1/requests/"+q.ID)
			return json.Unmarshal([]byte(body), &request) == nil && request.Presentation != nil
		}
		return false
	})
	return request
}

var publicLink = regexp.MustCompile(`http://fermata\.test(/channels/email/([\w-]+)\.[\w-]+)`)

// pageOf returns the page of the link in the message about a request.
func pageOf(t *testing.T, server string, s *mailServer, id string) (page string) {
	t.Helper()
	eventually(t, "the message about "+id, func() bool {
		for _, text := range s.received(t) {
			for _, link := range publicLink.FindAllStringSubmatch(text, -1) {
				token, err := base64.RawURLEncoding.DecodeString(link[2])
				if err == nil && strings.Contains(string(token), `"r":"`+id+`"`) {
					page = server + link[1]
					return true
				}
			}
		}
		return false
	})
	return page
}

func formOf(t *testing.T, text string) url.Values {
	t.Helper()
	form, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	return form
}

func postDecision(t *testing.T, browser *http.Client, server string, q api.Request, answer string) {
	t.Helper()
	body, err := json.Marshal(api.Decide{ResumeID: "api-" + q.ID, Answer: json.RawMessage(answer), Shown: q.Shown})
	if err != nil {
		t.Fatal(err)
	}
	call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/api/v1/requests/"+q.ID+"/decision", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Sec-Fetch-Site", "same-origin")
	got, err := browser.Do(call)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if text, _ := io.ReadAll(got.Body); got.StatusCode >= 300 {
		t.Errorf("%d %s", got.StatusCode, text)
	}
}

// differs are the members of an answer that the way of the decision and its time change.
var differs = regexp.MustCompile(`"(at|approvedAt|auth)":"[^"]*"`)

// resultOf returns the outcome of a run, and the audit record of the decision without what differs
// by the way: ids, times, digests with a salt, and what the client reported.
func resultOf(t *testing.T, r *serve.Server, key, id string) (result string) {
	t.Helper()
	eventually(t, "the run of "+key+" ends", func() bool {
		view, err := r.GetRun(t.Context(), "acme", key)
		if err != nil {
			t.Fatal(err)
		}
		result = string(view.Status)
		return view.Status != store.StatusRunning && view.Status != store.StatusWaiting && view.Status != store.StatusReady
	})
	decision, err := r.GetRequest(t.Context(), "acme", id)
	if err != nil || decision.Request.Decision == nil {
		t.Fatalf("%s: %+v %v", key, decision, err)
	}
	d := decision.Request.Decision
	result += fmt.Sprintf(" %s %v %s %q %s", d.Outcome, d.By, d.Reason, d.Codes, differs.ReplaceAllString(string(decision.Answer), `"$1":""`))
	lines, err := r.AuditAbout(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	stored := func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
	for record, err := range audit.ParseRecords(stored) {
		if err != nil {
			t.Fatal(err)
		}
		if vote, ok := record.Body.(audit.RequestDecided); ok {
			result += fmt.Sprintf("\n%s by %s, settles %t, action %q, approved %t, answer %t, reason %t, %q, %q, %+v", vote.Verb, record.Actor.Principal,
				vote.Settles, vote.Action.Name, vote.Approved != audit.Digest{}, vote.Answer != audit.Digest{}, vote.Reason != audit.Digest{}, vote.Codes, vote.Groups, vote.Quorum)
		}
	}
	return result
}
