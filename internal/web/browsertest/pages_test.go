package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/web/webtest"
	"github.com/fermata-go/fermata/provider/inproc"
)

type refund struct {
	Order   int         `json:"order"`
	Payment json.Number `json:"payment"`
	Amount  string      `json:"amount"`
	Note    string      `json:"note,omitempty"`
}

func graphs(t *testing.T) []inproc.Graph {
	t.Helper()
	all, err := sample.Graphs()
	if err != nil {
		t.Fatal(err)
	}
	g := graph.New[refund]("test-refund")
	g.Node("pay", func(ctx context.Context, r refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "refund", Args: r, Summary: "The parcel arrived damaged; the customer sent two photos."})
		if err != nil {
			return r, err
		}
		return fermata.Effect(ctx, yes, func(_ context.Context, r refund, _ string) (refund, error) { return r, nil })
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return append(all, inproc.Flow(flow, inproc.FlowConfig[refund]{}))
}

const flagged = `{"order":17,"payment":9007199254740993,"amount":"120.00","note":"customer says \u202e damaged"}`

// The charts over time, closed and with their tables, in light and dark, on a desk and on a phone.
func TestAnalytics_ChartsAreAccessible(t *testing.T) {
	report := analytics.Report{All: analytics.Row{Requests: 300, Approved: 200, Rejected: 40}}
	for i := range 30 {
		report.ByDay = append(report.ByDay, analytics.DecisionCounts{
			Name: fmt.Sprintf("2026-11-%02d", i+1), Approved: i * 7 % 11, Answered: i * 5 % 4, Rejected: i % 3, Expired: i % 7 / 5,
		})
	}
	for i := range 24 {
		report.ByHour = append(report.ByHour, analytics.DecisionCounts{Name: fmt.Sprintf("%02d:00", i), Approved: max(0, 60-(i-14)*(i-14)), Rejected: i % 5})
	}
	report.ByRule = []analytics.Row{{Name: "refunds", Requests: 250, Approved: 180, Rejected: 40, Open: 30}, {Name: "payouts-above-the-limit-of-the-team", Requests: 50, Approved: 20, Expired: 30}}
	s := openServer(t, func(api http.Handler) http.Handler { return webtest.WithAnswer(api, "/api/v1/analytics", report) })
	for _, window := range []struct {
		name string
		size size
	}{{"desk", desk}, {"phone", phone}} {
		t.Run(window.name, func(t *testing.T) {
			b := openTab(t, s, "ann", window.size)
			b.open("/analytics")
			for _, colours := range []string{"light", "dark"} {
				b.do(scheme(colours))
				eval[bool](b, `document.querySelectorAll("details.numbers").forEach((d) => { d.open = false }); true`)
				b.check("charts-" + colours)
				if eval[bool](b, `document.querySelector(".numbers table").checkVisibility()`) {
					t.Error("the tables are open")
				}
				eval[bool](b, `document.querySelectorAll("details.numbers").forEach((d) => { d.open = true }); true`)
				b.check("tables-" + colours)
			}
			if n := eval[int](b, `document.querySelectorAll(".plot-area[role=img][aria-label]").length`); n != 2 {
				t.Errorf("%d charts", n)
			}
		})
	}
}

func TestRequest_SimilarDecisionsAreAccessible(t *testing.T) {
	var decided []api.Request
	for i, verdict := range []string{"approve", "reject", "expire"} {
		args := fmt.Sprintf(`{"order":%d,"payment":%d,"amount":"%d.50"}`, 300+i, 900+i, 90+20*i)
		decided = append(decided, api.Request{
			ID: fmt.Sprint("int_", i), Kind: "approval", GraphID: "inproc:test-refund", State: "decided", CreatedAt: time.Now(), Data: json.RawMessage(`{"action":"refund","args":` + args + `}`),
			Decision: &api.Decision{Verdict: verdict, By: "bob", At: time.Now().Add(-time.Duration(i) * time.Hour)},
		})
	}
	s := openServer(t, func(handler http.Handler) http.Handler {
		return webtest.WithAnswer(handler, "/api/v1/requests", api.Page[api.Request]{Items: decided})
	})
	id := ask(t, s, "inproc:test-refund", "refund-17", flagged)
	for name, window := range map[string]size{"desk": desk, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			b := openTab(t, s, "ann", window)
			b.open("/requests/" + id)
			for _, colours := range []string{"light", "dark"} {
				b.do(scheme(colours))
				if n := eval[int](b, `document.querySelector(".similar").scrollIntoView({block: "center"}), document.querySelectorAll(".similar li").length`); n != 3 {
					t.Errorf("%d similar decisions", n)
				}
				b.check("similar-" + colours)
			}
		})
	}
}

// withDeliveries answers with a delivery in each state.
func withDeliveries(handler http.Handler) http.Handler {
	now := time.Now()
	next := now.Add(4 * time.Minute)
	list := []api.Delivery{
		{ID: "1", Request: "int_01hzy3", Channel: "slack", Kind: "notify", State: "sent", Target: "slack:C0EMEA", CreatedAt: now, UpdatedAt: now.Add(-time.Minute)},
		{ID: "2", Request: "int_01hzy3", Channel: "email", Kind: "remind", State: "seen", Target: "group:finops", Person: "bob", CreatedAt: now, UpdatedAt: now.Add(-2 * time.Minute)},
		{ID: "3", Request: "int_01hzy4", Channel: "email", Kind: "notify", State: "failed", Attempts: 3, Code: "smtp_451", NextAt: &next, Target: "email:carol@example.com", CreatedAt: now, UpdatedAt: now.Add(-3 * time.Minute)},
		{ID: "4", Request: "int_01hzy4", Channel: "slack", Kind: "page", State: "dead", Attempts: 1, Code: "channel_not_found", Target: "slack:#old-channel", CreatedAt: now, UpdatedAt: now.Add(-time.Hour)},
		{ID: "5", Request: "int_01hzy5", Channel: "pagerduty", Kind: "page", State: "queued", NextAt: &next, Target: "pagerduty:db", CreatedAt: now, UpdatedAt: now.Add(-5 * time.Second)},
	}
	health := []api.ChannelHealth{
		{Channel: "email", Configured: true, Sent: 31, Failed: 1, Code: "smtp_451", LastSentAt: &now, LastFailedAt: &now, NextAt: &next},
		{Channel: "pagerduty", Queued: 1},
		{Channel: "slack", Configured: true, Sent: 120, Dead: 1, Code: "channel_not_found", LastSentAt: &now, LastFailedAt: &now},
	}
	handler = webtest.WithAnswer(handler, "/api/v1/deliveries", api.Page[api.Delivery]{Items: list})
	return webtest.WithAnswer(handler, "/api/v1/deliveries/health", api.Page[api.ChannelHealth]{Items: health})
}

// Each main page on a desk or on a phone, in light or dark; every night in all four combinations.
func TestPages_AreAccessible(t *testing.T) {
	s := openServer(t, withDeliveries)
	token, err := s.Executor.NewLinkToken(t.Context(), channel.Sender{Account: webtest.Account, Channel: "slack", ID: "T0ACME/U0ANN", Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	link := "/link/" + token
	id := ask(t, s, "inproc:test-refund", "refund-17", flagged)
	var like string
	for i := range 4 {
		like = ask(t, s, "inproc:test-refund", fmt.Sprintf("refund-%d", i), fmt.Sprintf(`{"order":%d,"payment":%d,"amount":"2%d.00"}`, 100+i, 500+i, i))
	}
	review := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	combinations := []struct {
		window  string
		size    size
		colours string
	}{{"desk", desk, "light"}, {"phone", phone, "dark"}, {"phone", phone, "light"}, {"desk", desk, "dark"}}
	pages := []struct{ name, path string }{
		{"inbox", "/inbox?id=" + id}, {"list", "/inbox"}, {"search", "/inbox?q=tool:refund"}, {"views", "/inbox/views"}, {"request", "/requests/" + id}, {"review", "/requests/" + review}, {"approve", "/requests/" + id + "/approve"},
		{"edit", "/requests/" + id + "/edit"}, {"reject", "/requests/" + id + "/reject"}, {"batch", "/batch?like=" + like}, {"missing", "/nowhere"},
		{"runs", "/runs"}, {"run", "/runs/article-tea"}, {"graphs", "/graphs"}, {"graph", "/graphs/inproc:content-review"}, {"grants", "/grants"},
		{"policies", "/policies"}, {"routes", "/routes"}, {"audit", "/audit?findings=1"}, {"evidence", "/audit/requests/" + id}, {"decisions", "/audit/decisions"}, {"analytics", "/analytics"}, {"me", "/me"}, {"admin", "/admin"}, {"deliveries", "/deliveries"}, {"link", link}, {"docs", "/docs"},
	}
	for i, c := range combinations {
		t.Run(c.window+"-"+c.colours, func(t *testing.T) {
			b := openTab(t, s, "ann", c.size)
			b.do(scheme(c.colours))
			for n, p := range pages {
				if n%testtier.Count(len(combinations), 1, 1) == i%testtier.Count(len(combinations), 1, 1) {
					b.open(p.path)
					b.check(p.name + "-" + c.colours)
				}
			}
		})
	}
}

func TestInbox_DecideByKeyboard(t *testing.T) {
	s := openServer(t)
	ask(t, s, "inproc:test-refund", "refund-17", flagged)
	b := openTab(t, s, "ann", desk)
	b.waitText("refund")
	b.do(chromedp.KeyEvent("a"), chromedp.WaitVisible("dialog.actiondialog form"))
	b.check("dialog")
	b.do(chromedp.KeyEvent(" ")) // the focus is on the checkbox of the flagged value
	b.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(2)))
	b.waitText("Approved.")
	b.waitText("Nothing is waiting for you")
}

func TestInbox_WorksWithoutScripts(t *testing.T) {
	s := openServer(t)
	id := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	b := openTab(t, s, "ann", phone, noScript)
	b.do(chromedp.Click(".row a"), chromedp.WaitVisible(".decide .btn.primary"), chromedp.Click(".decide .btn.primary"))
	b.do(chromedp.WaitVisible("form.action"), chromedp.Click("form.action .btn.primary"), chromedp.WaitVisible(".toast"))
	b.open("/requests/" + id)
	b.do(chromedp.WaitVisible(".pill.ok"))
}

// Two people at once: a decision in one browser appears in the other, and so does a new request.
func TestInbox_TwoPeopleAtOnce(t *testing.T) {
	s := openServer(t)
	id := ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	ann, bob := openTab(t, s, "ann", desk), openTab(t, s, "bob", desk)
	ann.open("/requests/" + id)
	ann.waitText("Viewing now: bob")
	carol := openTab(t, s, "carol", desk)
	carol.waitText("Viewing now: ann") // in the row
	ask(t, s, "inproc:content-review", "article-cocoa", `{"topic":"cocoa"}`)
	bob.waitText("cocoa")
	bob.open("/requests/" + id + "/respond")
	bob.do(chromedp.Click(`input[name="s/action"]`), chromedp.Click("form.action .btn.primary"))
	ann.waitText("Changed since you opened it")
}

// The page of a run shows what happens without a reload, and where the run ended.
func TestRun_ShowsWhatHappens(t *testing.T) {
	s := openServer(t)
	id := ask(t, s, "inproc:test-refund", "refund-17", `{"order":17,"payment":1,"amount":"120.00"}`)
	b := openTab(t, s, "ann", desk)
	b.open("/runs/refund-17")
	b.waitText("Asked a person")
	if got := eval[string](b, `document.querySelector("[data-part=requests]").innerText`); strings.Contains(got, "approved") {
		t.Errorf("already decided: %s", got)
	}
	bob := openTab(t, s, "bob", phone)
	bob.open("/requests/" + id + "/approve")
	bob.do(chromedp.Click(send))
	b.waitText("Action ended")
	b.waitText("approved by bob")
	b.waitText("Nothing is open.")
	b.check("ended")
	if n := eval[int](b, `[...document.querySelectorAll("[data-events] li")].filter((li) => li.innerText.includes("Completed")).length`); n != 1 {
		t.Errorf("the end is shown %d times\n%s", n, b.text())
	}
}

// The navigation has the number of requests that wait for the person, on any page.
func TestNavigation_CountsOpenRequests(t *testing.T) {
	s := openServer(t)
	ask(t, s, "inproc:content-review", "article-tea", `{"topic":"tea"}`)
	b := openTab(t, s, "ann", desk)
	waitCount := func(want string) {
		t.Helper()
		eval[bool](b, `new Promise((done) => { const timer = setInterval(() => { if (document.getElementById("nav-inbox").textContent === "`+want+`") { clearInterval(timer); done(true); } }, 20); })`)
	}
	b.open("/runs")
	waitCount("1")
	b.open("/inbox")
	ask(t, s, "inproc:content-review", "article-cocoa", `{"topic":"cocoa"}`)
	waitCount("2")
}
