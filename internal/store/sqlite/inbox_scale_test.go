package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
)

// inboxRows creates runs with one request each: a tenth is decided, one in ten thousand is rare.
const inboxRows = `
WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, created_at, updated_at)
SELECT b'acme', CAST('run-' || i AS BLOB), CAST('key-' || i AS BLOB), 1, b'inproc', b'g', b'', 'running', 1, b'', 9e15, i, i FROM n;

INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at)
SELECT account, CAST('asked-by-' || run AS BLOB), run, 1, b'', CASE WHEN created_at %% 10000 = 7 THEN b'rare' ELSE b'common' END, b'', b'', 0, created_at FROM runs;

INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
SELECT account, b'ann', run, b'', run, 'accepted', b'', 0 FROM runs WHERE created_at %% 10 = 0;

UPDATE interrupts SET state = 'decided', verdict = 'answer', final = b'', decided_by = b'ann', via = b'', source = 'person', decided_at = created_at + 5, resume = run
WHERE created_at %% 10 = 0;

INSERT INTO papers (account, kind, id, run, revision, body, facts, created_at, updated_at)
SELECT account, 'request', id, run, 1, zeroblob(500), '{}', created_at, created_at FROM interrupts;

ANALYZE`

// inboxSize is the number of requests: a million in a soak.
func inboxSize() int { return testtier.Count(20_000, 100_000, 1_000_000) }

// The inbox of an account with many requests uses its indexes, with the statistics of that account.
func TestInbox_ManyRequestsUseIndexes(t *testing.T) {
	testtier.Needs(t, "a large database")
	if raceDetector {
		t.Skip("it takes minutes, and has no concurrency")
	}
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	size := inboxSize()
	if _, err := s.writer.ExecContext(t.Context(), inHex(fmt.Sprintf(inboxRows, size))); err != nil {
		t.Fatal(err)
	}
	for index, texts := range map[string][]string{
		"interrupts_asked":     {oldestItemsSQL, newestItemsSQL},
		"interrupts_pending":   {oldestPendingItemsSQL, newestPendingItemsSQL, countPendingSQL},
		"interrupts_of_kind":   {oldestOfKindSQL, newestOfKindSQL},
		"interrupts_decided":   {oldestDecidedSQL, newestDecidedSQL},
		"(account=? AND id=?)": {inboxItemSQL},
	} {
		for _, text := range texts {
			lines := plan(t, s, text)
			if !strings.Contains(strings.Join(lines, "\n"), index) {
				t.Errorf("%q does not use %s in\n%s", lines, index, text)
			}
			for _, line := range lines {
				if !cheap(line) && allowedScans[text] == "" {
					t.Errorf("%q in the plan of\n%s", line, text)
				}
			}
		}
	}
	at := func(i int) store.InboxPosition { return store.InboxPosition{At: time.UnixMicro(int64(i))} }
	for name, c := range map[string]struct {
		filter store.InboxFilter
		want   string
	}{
		"oldest":      {store.InboxFilter{State: store.InterruptPending, Limit: 2}, "asked-by-run-1 asked-by-run-2"},
		"newest":      {store.InboxFilter{State: store.InterruptPending, Newest: true, Limit: 1}, fmt.Sprint("asked-by-run-", size-1)},
		"deep":        {store.InboxFilter{State: store.InterruptPending, After: at(size / 2), Limit: 1}, fmt.Sprint("asked-by-run-", size/2+1)},
		"rare":        {store.InboxFilter{State: store.InterruptPending, Kind: "rare", After: at(size / 2), Limit: 1}, fmt.Sprint("asked-by-run-", size/2+7)},
		"decided":     {store.InboxFilter{State: store.InterruptDecided, Newest: true, Limit: 1}, fmt.Sprint("asked-by-run-", size)},
		"in a period": {store.InboxFilter{After: at(100), Before: at(102), Limit: 5}, "asked-by-run-100 asked-by-run-101"},
	} {
		list, err := s.InboxItems(t.Context(), "acme", c.filter)
		var ids []string
		for _, item := range list {
			ids = append(ids, item.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || err != nil {
			t.Errorf("%s: %s, want %s, %v", name, got, c.want, err)
		}
	}
}
