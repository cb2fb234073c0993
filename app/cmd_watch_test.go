package app

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
)

// Steps and tokens have no time and no request: watch used to print "00:00:00 step" for each,
// without the node.
func TestWatch_PrintsSteps(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range [][2]string{
			{"created", `{"id":"run_1:1","type":"created","createdAt":"2026-11-17T03:00:00Z"}`},
			{"step", `{"address":"node:pay/tool:refund#\u001b[2J","state":"started"}`},
			{"token", `{"address":"agent:clerk","agent":"clerk","text":"Hel"}`},
			{"outcome", `{"status":"completed","runId":"run_1","content":"paid"}`},
		} {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event[0], event[1])
		}
	}))
	defer s.Close()
	watch := func(args ...string) string {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), append([]string{"watch", "refund-1", "--url", s.URL, "--token", "fermata_key"}, args...), &out, &errOut); code != cli.ExitOK {
			t.Fatalf("it ended with %d: %s", code, errOut.String())
		}
		return out.String()
	}
	text := watch()
	if !regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  step +started node:pay/tool:refund#\\u001b\[2J$`).MatchString(text) || strings.Contains(text, "token") {
		t.Errorf("people see\n%s", text)
	}
	for _, line := range []string{`{"type":"step","address":"node:pay/tool:refund#\u001b[2J","state":"started"}`, `{"type":"token","address":"agent:clerk","agent":"clerk","text":"Hel"}`} {
		if json := watch("--json"); !strings.Contains(json, line+"\n") {
			t.Errorf("the JSON output does not have %s, but\n%s", line, json)
		}
	}
}
