package web_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var recordNumber = regexp.MustCompile(`<tr><td class="num">(\d+)</td>`)

// recordNumbers returns the numbers of the records of a page.
func recordNumbers(page webtest.Response) (list []int) {
	for _, match := range recordNumber.FindAllStringSubmatch(page.Body, -1) {
		n, _ := strconv.Atoi(match[1])
		list = append(list, n)
	}
	return list
}

// linkOf returns the address of the link with a text.
func linkOf(t *testing.T, page webtest.Response, text string) string {
	t.Helper()
	match := regexp.MustCompile(`href="([^"]*)">` + text).FindStringSubmatch(page.Body)
	if match == nil {
		t.Fatalf("no link %q", text)
	}
	return strings.ReplaceAll(match[1], "&amp;", "&")
}

func TestAudit_PagesAreNewestFirst(t *testing.T) {
	s := open(t)
	for n := range 60 {
		start(t, s, fmt.Sprint("tea-", n), "inproc:content-review", `{"topic":"tea"}`)
	}
	b := s.SignIn("ann")
	newest := b.Get("/audit")
	first := recordNumbers(newest)
	if len(first) != 100 || !slices.IsSortedFunc(first, func(a, b int) int { return b - a }) {
		t.Fatalf("%v", first)
	}
	older := b.Get(linkOf(t, newest, "Older records"))
	if next := recordNumbers(older); len(next) == 0 || next[0] != first[99]-1 {
		t.Errorf("after %d: %v", first[99], next)
	}
	if again := recordNumbers(b.Get(linkOf(t, older, "Newer records"))); again[0] != first[0] {
		t.Errorf("back at %d, want %d", again[0], first[0])
	}
	// the filters stay in the links
	found := b.Get("/audit?kind=request.asked&q=tea-1")
	want(t, found, http.StatusOK, "<option translate=\"no\" selected>request.asked</option>", "records were searched")
	if got := len(recordNumbers(found)); got != 11 {
		t.Errorf("%d records of tea-1 and tea-10 to tea-19", got)
	}
}

// The page of a decision has what was asked and shown, who decided and how they were authenticated,
// the digests, and the effect.
func TestAudit_EvidenceOfADecision(t *testing.T) {
	s := open(t, func(c *webtest.Config) { c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {})) })
	b := s.SignIn("ann")
	const input = `{"order":17,"payment":7,"amount":"12.00"}`
	id := ask(t, s, "inproc:refund", "refund-17", input)
	want(t, b.Get("/requests/"+id), http.StatusOK, `href="/audit/requests/`+id+`"`)
	want(t, b.Follow(b.Post("/requests/"+id+"/approve", hidden(b.Get("/requests/"+id+"/approve"))...)), http.StatusOK)
	start(t, s, "refund-17", "inproc:refund", input) // the same start waits for the outcome
	got := b.Get("/audit/requests/" + id)
	want(
		t, got, http.StatusOK, "request.asked", "request.decided", "effect.begun", "effect.ended", "The executed action is the approved one.",
		"<dt>Authentication</dt>", "Digest of the approved action", "Digest of the receipt", "<dt>Idempotency key</dt>", "<dt>Shown on</dt>",
	)
	// and what ann saw, as text, with the question and the answer
	want(t, got, http.StatusOK, "What was shown, without its layout:", "<pre class=\"mono\" translate=\"no\">refund", "What was asked and answered", "Download the evidence")
	file := b.Get("/audit/requests/" + id + "/bundle")
	if report, err := evidence.Check([]byte(file.Body), audit.Trust{}, io.Discard); err != nil || report.Texts != 1 || report.Values == 0 {
		t.Errorf("%+v: %v", report, err)
	}
	lines := s.SignIn("eve", authn.RoleAuditor).Get("/api/v1/audit/requests/" + id).Body
	trails, err := audit.Trails(audit.ParseRecords(func(yield func([]byte, error) bool) {
		for line := range strings.Lines(lines) {
			if !yield([]byte(strings.TrimSuffix(line, "\n")), nil) {
				return
			}
		}
	}))
	if err != nil || len(trails) != 1 || !trails[0].AsApproved() || len(trails[0].Executed) != 1 {
		t.Fatalf("%+v: %v", trails, err)
	}
	for _, seq := range []int64{trails[0].Proposed.Seq, trails[0].Approved.Seq, trails[0].Executed[0].Seq} {
		want(t, got, http.StatusOK, fmt.Sprintf(`href="#r%d"`, seq), fmt.Sprintf(`id="r%d"`, seq))
	}
	want(t, b.Get("/audit/decisions"), http.StatusOK, `href="/audit/requests/`+id+`"`, "refund", "ann")
	want(t, b.Get("/audit/decisions?format=csv"), http.StatusOK, "decided_at,verdict,by", ",approve,ann,", ",refund-17,inproc:refund,"+id+",")
	for query, there := range map[string]bool{"by=ann": true, "by=bob": false, "action=refund": true, "action=other": false, "order=oldest": true, "bye=bob": true} {
		found := b.Get("/audit/decisions?" + query)
		if strings.Contains(found.Body, `href="/audit/requests/`+id+`"`) != there || strings.Contains(found.Body, "are unknown and were ignored") != (query == "bye=bob") {
			t.Errorf("%s: %d %s", query, found.Status, found.Body)
		}
	}
	export := b.Get("/audit/export")
	if report, err := audit.VerifyFile(strings.NewReader(export.Body), webtest.Account, audit.VerifyOptions{}, io.Discard); err != nil || report.To == 0 {
		t.Errorf("%+v: %v", report, err)
	}
	want(t, b.Get("/audit/requests/unknown"), http.StatusNotFound)
	bob := s.SignIn("bob", authn.RoleApprover)
	for _, path := range []string{"/audit/requests/" + id, "/audit/decisions", "/audit/export", "/audit/records/1/proof"} {
		want(t, bob.Get(path), http.StatusForbidden)
	}
	if page := bob.Get("/requests/" + id); strings.Contains(page.Body, "/audit/requests/") {
		t.Error("the page of an approver links to the audit log")
	}
}
