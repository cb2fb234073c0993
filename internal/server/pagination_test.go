package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// largeAnswer is the maximum page size in this test, in bytes. The clients read 16 MiB of a
// response.
const largeAnswer = 3 << 20

// Large requests used to make pages of a hundred megabytes: eight readers used 1.4 GB of memory,
// and our own clients could not read them.
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
			t.Errorf("at position %d is %s", i, key)
		}
	}
	if len(keys) != asked {
		t.Errorf("%d of %d are listed", len(keys), asked)
	}
}

// A polling agent could not get past large answers, because it could not read the page.
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
			t.Errorf("at position %d is %s", i, key)
		}
	}
	if len(keys) != asked {
		t.Errorf("%d of %d are listed", len(keys), asked)
	}
}
