package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// orderRules need finance for high order numbers, and deny the highest.
const orderRules = `
version: "1"
default: ask
defaults: {ask: {groups: [{from: [anyone]}], editable: [""], deadline: 24h}}
rules:
- id: refunds
  when: req.tool == "refund"
  then: ask
  ask: {groups: [{from: ["group:support"]}], editable: [""], deadline: 24h}
- id: large
  when: req.graph == "refund" && req.tool == "refund" && args.order > 1000
  then: ask
  ask: {groups: [{from: ["group:finance"]}], editable: [""], deadline: 24h}
- id: never
  when: req.tool == "refund" && args.order > 5000
  then: deny
  reason: such orders do not exist
`

// Values that the rules do not let people change are text, below the inputs.
func TestEdit_LockedValuesAreText(t *testing.T) {
	s := openDefaults(t, `editable: ["/amount"]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/edit")
	input, locked, found := strings.Cut(form.Body, "The rules do not let you change these values:")
	if !found || !strings.Contains(input, `name="v/amount"`) || strings.Contains(form.Body, `name="v/order"`) || !strings.Contains(locked, ">17<") {
		t.Errorf("form: %s", form.Body)
	}
	sent := hidden(form, "v/amount", "80.00", "v/order", "18", "op", "send") // a forged value is ignored
	want(t, b.Follow(b.Post("/requests/"+id+"/edit", sent...)), http.StatusOK, "Approved by ann", "80.00")
	if body := b.Get("/api/v1/requests/" + id).Body; !strings.Contains(body, `"order":17`) || strings.Contains(body, `"order":18`) {
		t.Errorf("decided: %s", body)
	}
}

// Where the rules ask for the reason of an edit, the form offers their list.
func TestEdit_ReasonsOfTheRules(t *testing.T) {
	s := openDefaults(t, `editable: [""], edit_reasons: [typo, scope]`)
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/edit")
	want(t, form, http.StatusOK, "Why do you change it?", `name="code" value="typo" required>`, `name="code" value="scope" required>`)
	fields := hidden(form, "v/order", "17", "v/payment", "7", "v/amount", "80.00", "op", "send")
	want(t, b.Post("/requests/"+id+"/edit", fields...), http.StatusUnprocessableEntity, "Choose why you change it.", `value="80.00"`)
	want(t, b.Follow(b.Post("/requests/"+id+"/edit", append(fields, "code", "scope")...)), http.StatusOK, "Approved by ann")
	want(t, b.Get("/api/v1/requests/"+id), http.StatusOK, `"codes":["scope"]`)
}

// The preview of an edit says what the policy requires for the new values. Nothing is sent.
func TestEdit_PreviewSaysWhoElseMustAgree(t *testing.T) {
	rules, err := policy.Load("policy.yaml", []byte(orderRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := new(paid)
	s := open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, p.add))
		c.Desk = executor.DeskConfig{Policy: rules, Directory: desk.StaticDirectory{"group:support": {"ann"}, "group:finance": {"bob"}}}
	})
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/edit")
	preview := func(order string) webtest.Response {
		return b.Post("/requests/"+id+"/edit", hidden(form, "v/order", order, "v/payment", "7", "v/amount", "120.00", "op", "preview")...)
	}
	want(t, preview("18"), http.StatusOK, "The policy needs no other approvals", "<ins>")
	large := preview("2000")
	want(t, large, http.StatusOK, "The policy also requires for these values:", "1 × group:finance")
	if strings.Contains(large.Body, "1 × group:support") {
		t.Error("an approval that the request needs anyway is named")
	}
	want(t, preview("6000"), http.StatusOK, "The policy denies the action with these values.", "such orders do not exist")
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
}
