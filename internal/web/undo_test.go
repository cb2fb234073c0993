package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

func TestRequest_UndoWithinTheWindow(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte("default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 24h, undo: 10m}}\nrules: []\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := new(paid)
	s := open(t, func(c *webtest.Config) {
		c.Graphs = append(c.Graphs, refundGraph(t, p.add))
		c.Desk = executor.DeskConfig{Policy: set}
	})
	id := ask(t, s, "inproc:refund", "r1", refundInput)
	ann, bob := s.SignIn("ann"), s.SignIn("bob")
	form := ann.Get("/requests/" + id + "/approve?list=")
	done := ann.Post("/requests/"+id+"/approve", hidden(form)...)
	if to := done.Header.Get("Location"); to != "/inbox?id="+id {
		t.Errorf("it leads to %s, not to the request with its undo button", to)
	}
	want(t, ann.Follow(done), http.StatusOK, "It takes effect when the undo time is over", "Approved by ann. It takes effect", `action="/requests/`+id+`/undo"`)
	other := bob.Get("/requests/" + id)
	want(t, other, http.StatusOK, "Approved by ann. It takes effect")
	for _, hide := range []string{`action="/requests/` + id + `/undo"`, `href="/requests/` + id + `/approve"`} {
		if strings.Contains(other.Body, hide) {
			t.Errorf("bob sees %s", hide)
		}
	}
	want(t, bob.Post("/requests/"+id+"/undo", seenOn(bob, id)...), http.StatusForbidden, "only ann can withdraw")
	want(t, ann.Follow(ann.Post("/requests/"+id+"/undo", seenOn(ann, id)...)), http.StatusOK, "Your vote is withdrawn", `href="/requests/`+id+`/approve"`)
	if len(p.all()) != 0 {
		t.Error("it ran")
	}
}
