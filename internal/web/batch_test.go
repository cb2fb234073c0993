package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

var batchItem = regexp.MustCompile(`name="item" value="([^"]+)"`)

func TestBatch_DecidesEachAndLeavesOutliers(t *testing.T) {
	s, p := openRefunds(t)
	var ids []string
	for i, amount := range []string{"24.90", "31.50", "18.75", "29.00", "4900.00"} {
		ids = append(ids, ask(t, s, "inproc:refund", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"%s"}`, 1040+i, amount)))
	}
	b := s.SignIn("ann")
	want(t, b.Get("/inbox"), http.StatusOK, "Review as batch")
	form := b.Get("/batch?like=" + ids[0])
	want(t, form, http.StatusOK, "Outliers", "4900.00")
	var items []string
	for _, match := range batchItem.FindAllStringSubmatch(form.Body, -1) {
		items = append(items, match[1])
	}
	if len(items) != 4 || strings.Contains(strings.Join(items, " "), ids[4]) {
		t.Fatalf("%d items: %v", len(items), items)
	}
	want(t, b.Post("/batch", hidden(form, "op", "approve")...), http.StatusUnprocessableEntity, "Select at least one")
	again := b.Post("/batch", hidden(form, "op", "reject", "item", items[0])...)
	want(t, again, http.StatusUnprocessableEntity, "Give a reason")
	if n := strings.Count(again.Body, " checked>"); n != 1 {
		t.Errorf("%d requests are selected after an error, 1 was before", n)
	}
	outlier := ids[4] + " " + seenOn(b, ids[4])[1]
	other := ask(t, s, "inproc:content-review", "c1", `{"topic":"tea"}`)
	selected := []string{"item", items[0], "item", items[1], "item", ids[2] + " another", "item", outlier, "item", other + " " + seenOn(b, other)[1]}
	fields := hidden(form, append(selected, "op", "approve")...)
	want(t, b.Post("/batch?like="+other, hidden(form, "item", items[0])...), http.StatusUnprocessableEntity, "does not say what its page showed")
	want(t, b.Post("/batch", fields...), http.StatusOK, "Approve 3 × refund, 75.15 in all", `value="send-approve"`)
	if got := p.all(); len(got) != 0 {
		t.Fatalf("before the confirmation: %+v", got)
	}
	fields = hidden(form, append(selected, "op", "send-approve")...)
	want(t, b.Post("/batch", fields...), http.StatusOK, "Recorded", "Changed since you opened it", "An outlier needs its own decision", "was not in the list")
	if got := p.all(); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	b.Post("/batch", fields...) // the same form again
	if got := p.all(); len(got) != 2 {
		t.Errorf("after a repeated form: %+v", got)
	}
}

// A person who has voted is not asked again by a batch.
func TestBatch_LeavesOutWhatThePersonVotedOn(t *testing.T) {
	rules, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {groups: [{from: [anyone], count: 2}], deadline: 24h}}\nrules: []\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, func(refund) {}))
		c.Desk = executor.DeskConfig{Policy: rules}
	})
	var ids []string
	for i := range 4 {
		ids = append(ids, ask(t, s, "inproc:refund", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"20.00"}`, i)))
	}
	b := s.SignIn("ann")
	want(t, b.Follow(b.Post("/requests/"+ids[3]+"/approve", hidden(b.Get("/requests/"+ids[3]+"/approve"))...)), http.StatusOK, "Your vote is recorded. Others have to agree.")
	items := batchItem.FindAllStringSubmatch(b.Get("/batch?like="+ids[0]).Body, -1)
	if len(items) != 3 {
		t.Fatalf("%d items, want 3", len(items))
	}
	for _, item := range items {
		if strings.HasPrefix(item[1], ids[3]+" ") {
			t.Error("the batch asks the person again")
		}
	}
}

// Order numbers are never unusual, a requester who differs is shown, and numbers are aligned.
func TestBatch_IdentifiersAreNoOutliers(t *testing.T) {
	s, _ := openRefunds(t)
	var ids []string
	for i, order := range []int{1040, 1041, 1042, 1043, 9000} {
		ids = append(ids, ask(t, s, "inproc:refund", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"%s"}`, order, []string{"20", "20.50"}[i%2])))
	}
	form := s.SignIn("ann").Get("/batch?like=" + ids[0])
	if n := len(batchItem.FindAllStringSubmatch(form.Body, -1)); n != 5 || strings.Contains(form.Body, "Outliers") {
		t.Errorf("%d items, want 5 and no outlier", n)
	}
	want(t, form, http.StatusOK, "Select all", `<th class="mono num">amount</th>`, "</span></span>\u00a0\u00a0\u00a0</td>")
	want(t, s.SignIn("ann").Post("/batch", hidden(form, "op", "none")...), http.StatusOK, `name="item"`)
}

func TestBatch_LeavesOutWhatIsTyped(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, confirm: [/order]`)
	var ids []string
	for i := range 3 {
		ids = append(ids, ask(t, s, "inproc:refund", fmt.Sprintf("r%d", i), fmt.Sprintf(`{"order":%d,"payment":7,"amount":"20.00"}`, i)))
	}
	form := s.SignIn("ann").Get("/batch?like=" + ids[0])
	want(t, form, http.StatusOK, "its approval needs a typed name")
	if items := batchItem.FindAllStringSubmatch(form.Body, -1); len(items) > 0 {
		t.Errorf("items %v", items)
	}
}

// An approval is remembered with the limits of the form, and the page of grants says them.
func TestRemember_ProposesLimits(t *testing.T) {
	s := openGroups(t, pagingRoute, `deadline: 3h, remember_max: 8h`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/remember")
	want(t, form, http.StatusOK, "What may differ the next time", `name="op/order"`, `<option value="eq" selected>the same</option><option value="le">at most</option>`)
	fields := hidden(form, "op", "send", "span", "1h", "uses", "3", "op/order", "le", "op/payment", "any", "op/amount", "eq")
	want(t, b.Post("/requests/"+id+"/remember", append(fields, "most/order", "5")...), http.StatusUnprocessableEntity, "A limit is a number")
	for range 2 { // the browser sends the form again
		want(t, b.Follow(b.Post("/requests/"+id+"/remember", append(fields, "most/order", "50")...)), http.StatusOK, "Approved and remembered.")
	}
	if page := b.Get("/grants"); strings.Count(page.Body, "3 uses left") != 1 {
		t.Errorf("the form sent twice does not make one grant: %s", page.Body)
	}
	want(t, b.Get("/grants"), http.StatusOK, "3 uses left", `order</span> at most <b class="mono">`, `payment</span> any value`, `amount</span> = <b`)
}
