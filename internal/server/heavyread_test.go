package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// blockingStore is a store in which history reads of some accounts block until the caller's context
// ends.
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

// Documents are read by a replay and a report.
func (s *blockingStore) Documents(ctx context.Context, account string, kind store.DocumentKind, f store.DocumentFilter) ([]store.Document, error) {
	if kind == "ruling" || kind == "vote" {
		if err := s.wait(ctx, account); err != nil {
			return nil, err
		}
	}
	return s.Store.Documents(ctx, account, kind, f)
}

// AuditLines are read by a reconciliation.
func (s *blockingStore) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	if err := s.wait(ctx, account); err != nil {
		return nil, err
	}
	return s.Store.AuditLines(ctx, account, after, limit)
}

type slowCall struct{ name, method, path, body string }

// slowCalls are the heavy reads.
var slowCalls = []slowCall{
	{"replay", "POST", "/api/v1/policies/replay", `{"policy":"default: deny\n","seconds":3600}`},
	{"findings", "GET", "/api/v1/audit/findings", ""},
	{"analytics", "GET", "/api/v1/analytics", ""},
	{"verification", "GET", "/api/v1/audit/verification", ""},
	{"records of a request", "GET", "/api/v1/audit/requests/int_1", ""},
	{"evidence of a request", "GET", "/api/v1/audit/requests/int_1/bundle", ""},
	{"trail of a run", "GET", "/api/v1/audit/runs/drop-1/trail", ""},
}

// Heavy reads are CPU-bound, and one key can send a hundred at once: so each account has one at a
// time, and no account waits for another. A cancelled call releases its permit.
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
			if _, got := s.begin(call, "auditor@other"); got != 200 && got != 404 { // it has no such request
				t.Errorf("one of another account: %d", got)
			}
			leave()
			s.until("the permit is free again", func() bool {
				end, got := s.begin(call, "auditor@acme")
				end()
				return got == statusPending
			})
		})
	}
}

// The number of concurrent accounts is limited by the processors, and the next one gets a
// Retry-After.
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
	if text := s.metrics(); !strings.Contains(text, fmt.Sprintf(`fermata_http_limit_rejections_total{limit="heavy_reads"} %d`, len(slowCalls))) {
		t.Error("rejections are not counted")
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

// statusPending is the status of a blocked call.
const statusPending = -1

// begin sends a call, and waits until it is answered or blocked. leave cancels it, and waits until
// it has ended.
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

// status is 0 if there was no response.
func (s blockingSite) status(request *http.Request) int {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if response.StatusCode == 503 && response.Header.Get("Retry-After") == "" {
		s.Error("there is no Retry-After")
	}
	return response.StatusCode
}
