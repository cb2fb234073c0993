package client_test

import (
	"testing"

	"github.com/fermata-go/fermata/api"
)

// The client follows the queue from the ready event on, and resumes after any event.
func TestQueueEvents_FollowsAndResumes(t *testing.T) {
	c := serve(t, plain)
	var opened api.QueueEvent
	for e, err := range c.QueueEvents(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == api.QueueReady {
			if _, err := c.Chat(t.Context(), api.Chat{GraphID: "inproc:memo", StateKey: "queue-1", Input: []byte(`{"text":"Hello"}`)}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		opened = e
		break
	}
	if opened.Type != "opened" || opened.Request == "" {
		t.Fatalf("%+v", opened)
	}
	if err := c.ReportViewing(t.Context(), opened.Request); err != nil {
		t.Fatal(err)
	}
	q, err := c.Request(t.Context(), opened.Request)
	if err != nil || len(q.Activity.Viewers) != 1 || q.Activity.Viewers[0].By != "ann" {
		t.Errorf("%+v, %v", q.Activity, err)
	}
	for e, err := range c.QueueEvents(t.Context(), "0") {
		if err != nil || e.ID != opened.ID {
			t.Errorf("%+v, %v", e, err)
		}
		break
	}
}
