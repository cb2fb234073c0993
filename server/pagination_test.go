package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// largeAnswer is what a page may have here, in bytes. The clients read 16 MiB of an answer.
const largeAnswer = 3 << 20

// One agent with large questions made pages of a hundred megabytes: eight who read them took a server 1.4 GB, and our own clients read none of them to the end.
func TestRequests_PageSizeIsBoundedByBytes(t *testing.T) {
	s := open(t, nil)
	const asked = 16
	for i := range asked {
		s.call("agent@acme", "POST", "/api/v1/requests", fmt.Sprintf(`{"stateKey":"k%02d","kind":"k","data":%q}`, i, strings.Repeat("x", 250_000)))
	}
	var keys []string
	for cursor := ""; ; {
		got := s.call("approver@acme", "GET", "/api/v1/requests?limit=1000&cursor="+cursor, "")
		var page api.Page[api.Request]
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.Items) == 0 {
			t.Fatalf("%d %.200s: %v", got.status, got.body, err)
		}
		if len(got.body) > largeAnswer {
			t.Errorf("a page has %d bytes", len(got.body))
		}
		for _, r := range page.Items {
			keys = append(keys, r.StateKey)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for i, key := range keys {
		if key != fmt.Sprintf("k%02d", i) {
			t.Errorf("in the place %d is %s", i, key)
		}
	}
	if len(keys) != asked {
		t.Errorf("%d of %d are listed", len(keys), asked)
	}
}

// An agent that pulls its answers could not get past large ones: the page that it had to read did not end.
func TestAnswers_PageSizeIsBoundedByBytes(t *testing.T) {
	s := open(t, nil)
	const asked = 100
	for i := range asked {
		got := s.call("agent@acme", "POST", "/api/v1/requests", fmt.Sprintf(`{"stateKey":"k%02d","kind":"k","data":1}`, i))
		var waits struct {
			Interrupts []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(got.body), &waits); err != nil || len(waits.Interrupts) != 1 {
			t.Fatalf("%s: %v", got.body, err)
		}
		body := fmt.Sprintf(`{"resumeId":"%d","answer":%q}`, i, strings.Repeat("x", 60_000))
		if got := s.call("approver@acme", "POST", "/api/v1/requests/"+waits.Interrupts[0].ID+"/decision", body); got.status != 200 {
			t.Fatalf("%.300s", got.body)
		}
	}
	var keys []string
	for cursor := ""; ; {
		got := s.call("agent@acme", "GET", "/api/v1/answers?cursor="+cursor, "")
		var page api.AnswersPage
		if err := json.Unmarshal([]byte(got.body), &page); err != nil {
			t.Fatalf("%d %.200s: %v", got.status, got.body, err)
		}
		if len(got.body) > largeAnswer {
			t.Errorf("a page has %d bytes", len(got.body))
		}
		for _, answered := range page.Items {
			keys = append(keys, answered.StateKey)
		}
		if page.Next == cursor {
			break
		}
		cursor = page.Next
	}
	for i, key := range keys {
		if key != fmt.Sprintf("k%02d", i) {
			t.Errorf("in the place %d is %s", i, key)
		}
	}
	if len(keys) != asked {
		t.Errorf("%d of %d are there", len(keys), asked)
	}
}
