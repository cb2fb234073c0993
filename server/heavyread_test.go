package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// blockingStore is a store in which looking at the past of some accounts takes as long as the caller has patience.
type blockingStore struct {
	store.Store
	accounts map[string]bool
	blocked  chan struct{}
}

func (s *blockingStore) wait(ctx context.Context, account string) error {
	if !s.accounts[account] {
		return nil
	}
	s.blocked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// Papers is what a replay and a report read.
func (s *blockingStore) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) ([]store.Document, error) {
	if kind == "ruling" || kind == "vote" {
		if err := s.wait(ctx, account); err != nil {
			return nil, err
		}
	}
	return s.Store.Documents(ctx, account, kind, f)
}

// AuditLines is what a comparison of the books reads.
func (s *blockingStore) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	if err := s.wait(ctx, account); err != nil {
		return nil, err
	}
	return s.Store.AuditLines(ctx, account, after, limit)
}

type slowCall struct{ name, method, path, body string }

// slowCalls are those that have turns.
var slowCalls = []slowCall{
	{"replay", "POST", "/api/v1/policies/replay", `{"policy":"default: deny\n","seconds":3600}`},
	{"findings", "GET", "/api/v1/audit/findings", ""},
	{"analytics", "GET", "/api/v1/analytics", ""},
}

// It is work for a processor, and whoever has one key can send a hundred at once: so there is one call of an account at a time, and no account waits
// for another. Who goes away ends theirs.
func TestHeavyRead_BusyAccountDoesNotBlockOthers(t *testing.T) {
	for _, call := range slowCalls {
		t.Run(call.name, func(t *testing.T) {
			t.Parallel() // they wait
			s := openBlocking(t, "acme")
			leave, _ := s.begin(call, "auditor@acme")
			if end, got := s.begin(call, "auditor@acme"); got != 503 {
				t.Errorf("another of the same account: %d", got)
				end()
			}
			if _, got := s.begin(call, "auditor@other"); got != 200 {
				t.Errorf("one of another account: %d", got)
			}
			leave()
			s.until("the turn is free again", func() bool {
				end, got := s.begin(call, "auditor@acme")
				end()
				return got == statusPending
			})
		})
	}
}

// There are only so many processors: so many accounts at once, whatever they want, and the next is told to come again.
func TestHeavyRead_AccountsAreLimited(t *testing.T) {
	var accounts []string
	for n := range server.MaxHeavyReads() {
		accounts = append(accounts, fmt.Sprint("busy-", n))
	}
	s := openBlocking(t, accounts...)
	for n, account := range accounts {
		leave, got := s.begin(slowCalls[n%len(slowCalls)], "auditor@"+account)
		defer leave()
		if got != statusPending {
			t.Fatalf("%s: %d", account, got)
		}
	}
	var others sync.WaitGroup
	for _, call := range slowCalls {
		others.Go(func() {
			if _, got := s.begin(call, "auditor@other"); got != 503 {
				t.Errorf("%s by one more: %d", call.name, got)
			}
		})
	}
	others.Wait()
	if text := s.metrics(); !strings.Contains(text, fmt.Sprintf(`fermata_http_limit_refusals_total{limit="reading"} %d`, len(slowCalls))) {
		t.Error("who was refused is not counted")
	}
}

// blockingSite is a server on such a store.
type blockingSite struct {
	*site
	kept *blockingStore
}

func openBlocking(t *testing.T, accounts ...string) blockingSite {
	t.Helper()
	kept := &blockingStore{Store: memory.NewStore(nil), accounts: make(map[string]bool), blocked: make(chan struct{})}
	for _, account := range accounts {
		kept.accounts[account] = true
	}
	return blockingSite{openWith(t, func(c *server.Config) { c.Auth = testPeople }, func(c *executor.Config) { c.Store = kept }), kept}
}

// statusPending is the status of a call that has none, because it is stuck.
const statusPending = -1

// begin sends a call, and waits until it is answered or stuck. leave goes away, and waits until the call has ended.
func (s blockingSite) begin(call slowCall, token string) (leave func(), status int) {
	ctx, end := context.WithCancel(s.Context())
	answered := make(chan int, 1)
	go func() {
		answered <- s.status(s.request(token, call.method, call.path, call.body).WithContext(ctx))
		close(answered)
	}()
	select {
	case <-s.kept.blocked:
		return func() { end(); <-answered }, statusPending
	case status := <-answered:
		return end, status
	}
}

// status is 0 if there was no answer.
func (s blockingSite) status(request *http.Request) int {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
		s.Error("nobody is told when to come again")
	}
	return response.StatusCode
}
