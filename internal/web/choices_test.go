package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// openGroups opens a site whose rules ask group:support, with further keys of ask, and a route.
func openGroups(t *testing.T, route desk.Route, ask string) *webtest.Server {
	t.Helper()
	rules, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {groups: [{from: [\"group:support\"]}], route: r, "+ask+"}}\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := new(paid)
	route.Name = "r"
	return open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, p.add))
		c.Desk = executor.DeskConfig{Policy: rules, Directory: desk.StaticDirectory{"group:support": {"ann", "bob", "carl"}}, Routes: map[string]desk.Route{"r": route}}
	})
}

var pagingRoute = desk.Route{Steps: []desk.Step{{Notify: []string{desk.TargetInbox}}, {At: timespan.Duration(2 * time.Hour), Page: []string{"oncall:dba"}}, {At: timespan.Duration(3 * time.Hour), Expire: "stale"}}}

// A page with revealed values says that it showed what the forms of its buttons show. Otherwise the
// script takes the request for changed.
func TestReveal_FormsOfThePageAreAboutTheSame(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, sensitive: [/payment]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	rendering := regexp.MustCompile(`(?:data-rendering="|name="rendering" value=")([^"]*)"`)
	form := b.Get("/requests/" + id + "/approve?fragment")
	want(t, form, http.StatusOK, "•••")
	revealed := b.Post("/requests/"+id+"/reveal", hidden(b.Get("/requests/"+id+"/reveal"))...)
	want(t, revealed, http.StatusOK, "9007199254740993")
	got, shown := rendering.FindStringSubmatch(revealed.Body), rendering.FindStringSubmatch(form.Body)
	if got == nil || shown == nil || got[1] != shown[1] {
		t.Errorf("the revealed page showed %v, its form %v", got, shown)
	}
}

// The rules ask for the name of the object: a click does not approve.
func TestApprove_TypesTheNameOfTheObject(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, confirm: [/order]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/approve?typed=17")
	want(t, form, http.StatusOK, "Type this to confirm:", `<b class="mono">17</b>`, `name="typed" value=""`)
	for _, typed := range []string{"", "1"} {
		want(t, b.Post("/requests/"+id+"/approve", hidden(form, "op", "send", "typed", typed)...), http.StatusUnprocessableEntity, "To confirm, type 17. Nothing was sent.")
	}
	want(t, b.Follow(b.Post("/requests/"+id+"/approve", hidden(form, "op", "send", "typed", "17")...)), http.StatusOK, "Approved by ann")
}

func TestEdit_TypesTheNameOfTheEditedObject(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, editable: [""], confirm: [/order]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/edit")
	want(t, form, http.StatusOK, "To confirm, type the value after your edit: order")
	sent := hidden(form, "op", "send", "v/order", "18", "v/payment", "7", "v/amount", "120.00")
	want(t, b.Post("/requests/"+id+"/edit", append(sent, "typed", "17")...), http.StatusUnprocessableEntity, "as it is after your edit. Nothing was sent.", `value="18"`)
	want(t, b.Follow(b.Post("/requests/"+id+"/edit", append(sent, "typed", "18")...)), http.StatusOK, "Approved by ann")
}

func TestReject_ReasonsOfTheRules(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, reject_reasons: [too-much, not-needed]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/reject")
	want(t, form, http.StatusOK, `name="code" value="too-much" required>`, `name="code" value="not-needed" required>`)
	want(t, b.Post("/requests/"+id+"/reject", hidden(form, "op", "send", "text", "no")...), http.StatusUnprocessableEntity, "Choose a reason.")
	want(t, b.Follow(b.Post("/requests/"+id+"/reject", hidden(form, "op", "send", "code", "too-much")...)), http.StatusOK, "Rejected by ann")
}

func TestDelegate_ListsEligiblePeople(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/delegate")
	want(t, form, http.StatusOK, `<select id="to"`, "<option>bob</option><option>carl</option></select>")
	if strings.Contains(form.Body, "<option>ann</option>") {
		t.Error("ann can delegate to herself")
	}
	want(t, b.Post("/requests/"+id+"/delegate", hidden(form, "op", "send", "to", "zoe")...), http.StatusUnprocessableEntity, "zoe is not in a group that decides this")
	want(t, b.Follow(b.Post("/requests/"+id+"/delegate", hidden(form, "op", "send", "to", "carl")...)), http.StatusOK, "Delegated.")
}

func TestEscalate_SaysWhatHappensNext(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/escalate")
	want(t, form, http.StatusOK, "Now: pages on-call of dba.")
	want(t, b.Follow(b.Post("/requests/"+id+"/escalate", hidden(form, "op", "send")...)), http.StatusOK, "Escalated.")
	if page := b.Get("/requests/" + id).Body; strings.Contains(page, "/escalate") {
		t.Error("it is offered again, although there is no further step")
	}
}

// The form offers only times that the server accepts.
func TestSpans_OnlyPossibleOnes(t *testing.T) {
	route := pagingRoute
	route.Cap = timespan.Duration(5 * time.Hour)
	s := openGroups(t, route, `deadline: 10h`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	for act, c := range map[string]struct{ has, hasNot []string }{
		"snooze": {[]string{`value="1h"`}, []string{`value="4h"`, `value="1d"`, `value="most"`}},
		"extend": {[]string{`value="1h"`, `value="most"`}, []string{`value="4h"`, `value="1d"`}},
	} {
		form := b.Get("/requests/" + id + "/" + act)
		want(t, form, http.StatusOK, c.has...)
		for _, text := range c.hasNot {
			if strings.Contains(form.Body, text) {
				t.Errorf("%s offers %s", act, text)
			}
		}
	}
	form := b.Get("/requests/" + id + "/extend")
	want(t, b.Follow(b.Post("/requests/"+id+"/extend", hidden(form, "op", "send", "span", "most")...)), http.StatusOK, "Deadline extended.")
	if page := b.Get("/requests/" + id).Body; strings.Contains(page, "/extend") {
		t.Error("it is offered again, although the deadline is the latest possible one")
	}
}
