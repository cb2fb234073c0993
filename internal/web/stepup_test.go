package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// A sign-in that is too weak loses nothing: the form keeps what was typed and offers a new sign-in.
func TestRequest_StepUpKeepsWhatWasTyped(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 24h, min_auth: sso_mfa}}\nrules: []\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := new(paid)
	s := open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, p.add))
		c.Desk = executor.DeskConfig{Policy: set}
	})
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	b := s.SignIn("ann")
	form := b.Get("/requests/" + id + "/reject")
	got := b.Post("/requests/"+id+"/reject", hidden(form, "text", "too <much>")...)
	want(t, got, http.StatusForbidden, "sign in with at least sso_mfa", "too &lt;much&gt;</textarea>", `href="/signin?again=1&amp;return=%2Frequests%2F`+id+`"`, `action="/requests/`+id+`/reject"`)
	before, after := hidden(form), hidden(got)
	if strings.Join(before, " ") != strings.Join(after, " ") {
		t.Errorf("the form has other hidden fields: %q, before %q", after, before)
	}
	signIn := b.Get("/signin?again=1&return=%2Frequests%2F" + id)
	want(t, signIn, http.StatusOK, `value="/requests/`+id+`"`)
	if to := b.Get("/signin?return=%2Frequests%2F" + id).Header.Get("Location"); to != "/requests/"+id {
		t.Errorf("a signed-in person is sent to %q", to)
	}
}
