package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// many is rules of one sort, as many as fit into so many bytes.
func many(bytes int, rule func(n int) string) string {
	var text strings.Builder
	text.WriteString("default: deny\nrules:\n")
	for n := 0; text.Len() < bytes; n++ {
		text.WriteString("- {" + rule(n) + "}\n")
	}
	return text.String()
}

func replayOf(t *testing.T, rules string) string {
	t.Helper()
	return `{"policy":` + asJSON(t, rules) + `,"seconds":3600}`
}

// Rules that are no rules get an answer that somebody can read, and not one for each of ten thousand mistakes.
func TestAttack_MistakesDoNotComeBackByTheMegabyte(t *testing.T) {
	s := openDesk(t)
	for name, rules := range map[string]string{
		"without anything": many(100_000, func(n int) string { return fmt.Sprint("id: r", n) }),
		"a long word":      many(10, func(int) string { return "id: r, when: 'true', then: " + strings.Repeat("d", 400_000) }),
		"keys":             many(10, func(int) string { return strings.Repeat("k: 1, ", 50_000) + "id: r" }),
	} {
		got := s.call("auditor@acme", "POST", "/api/v1/policies/replay", replayOf(t, rules))
		if got.status != 400 || len(got.body) > 32<<10 || len(got.body) < 100 {
			t.Errorf("%s: %d with %d bytes", name, got.status, len(got.body))
		}
	}
}

// Rules that look at the past in thousands of ways would take days for what an account did in an hour.
func TestAttack_RulesThatWouldTakeDaysAreNotReplayed(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	for name, rules := range map[string]string{
		"counts": many(100_000, func(n int) string {
			return fmt.Sprintf(`id: r%d, when: 'history.count("tool","%ds")>1', then: deny`, n, n+1)
		}),
		"limits": many(100_000, func(n int) string {
			return fmt.Sprintf("id: r%d, when: 'true', then: deny, limit: {max: 1, window: 1h}", n)
		}),
	} {
		if got := s.call("auditor@acme", "POST", "/api/v1/policies/replay", replayOf(t, rules)); got.status != 400 || !strings.Contains(got.body, "rules") {
			t.Errorf("%s: %d %.200s", name, got.status, got.body)
		}
	}
}

// stuck is a store in which looking for rulings takes as long as the caller has patience.
type stuck struct {
	store.Store
	once   sync.Once
	looked chan struct{}
}

func (s *stuck) Papers(ctx context.Context, account string, kind store.PaperKind, f store.PaperFilter) ([]store.Paper, error) {
	if kind != "ruling" {
		return s.Store.Papers(ctx, account, kind, f)
	}
	s.once.Do(func() { close(s.looked) })
	<-ctx.Done()
	return nil, ctx.Err()
}

// One look at the past at a time: it is work for a processor, and whoever has one key can send a hundred at once. Who goes away ends theirs.
func TestAttack_OneReplayAtATime(t *testing.T) {
	kept := &stuck{Store: memory.NewRuns(nil), looked: make(chan struct{})}
	s := openWith(t, func(c *server.Config) { c.Auth = people }, func(c *executor.Config) { c.Store = kept })
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		request := s.request("auditor@acme", "POST", "/api/v1/policies/replay", replayOf(t, "default: deny\n"))
		if response, err := http.DefaultClient.Do(request.WithContext(ctx)); err == nil {
			response.Body.Close()
			t.Error("it was answered", response.StatusCode)
		}
	}()
	<-kept.looked
	patience, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	second := s.request("auditor@other", "POST", "/api/v1/policies/replay", replayOf(t, "default: deny\n"))
	response, err := http.DefaultClient.Do(second.WithContext(patience))
	if err != nil {
		t.Fatal("the second is served, too: ", err)
	}
	defer response.Body.Close()
	if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("the second: %d", response.StatusCode)
	}
	leave()
	<-first
}
