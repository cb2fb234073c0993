package compat

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/store"
)

// reopenAfter is when the database is opened again, after the start of the bubble in which it was
// made.
const reopenAfter = 20 * time.Minute

var installationFiles = []string{databaseFile, sealKeyFile, auditKeyFile, principalsFile}

// An addressedRequest is an open request with its address.
type addressedRequest struct {
	address string
	openRequest
}

var nodeName = regexp.MustCompile(`(?:node:|hold:before#)(\w+)`)

// node is the name of the first node in the address.
func (q addressedRequest) node() string {
	if m := nodeName.FindStringSubmatch(q.address); m != nil {
		return m[1]
	}
	return ""
}

func sorted(open map[string]openRequest) []addressedRequest {
	var list []addressedRequest
	for _, address := range slices.Sorted(maps.Keys(open)) {
		list = append(list, addressedRequest{address, open[address]})
	}
	return list
}

func copyFile(t *testing.T, from, to string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyFiles copies an installation, with the file modes that it needs.
func copyFiles(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range installationFiles {
		copyFile(t, filepath.Join(from, name), filepath.Join(to, name), 0o600)
	}
	return to
}

// replay sends recorded requests and compares the responses.
func replay(t *testing.T, w *world, names renames, list []exchange) {
	t.Helper()
	c := newComparer(names)
	c.changes = currentChanges(t)
	last := time.Time{}
	for i, recorded := range list {
		e := names.exchange(recorded)
		if at := bubbleStart.Add(time.Duration(e.At) * time.Second); at.After(last) {
			time.Sleep(time.Until(at))
			last = at
		}
		e.Request.Path = c.expand(e.Request.Path)
		e.Request.Body = c.expandAll(e.Request.Body)
		got, err := w.send(e)
		if err != nil {
			t.Fatalf("%03d %s: %v", i+1, e.Name, err)
		}
		c.differences, c.unordered = nil, e.Unordered
		c.compare(e.Response, got)
		for _, difference := range c.differences {
			t.Errorf("%03d %s: %s", i+1, e.Name, difference)
		}
	}
}

func currentNames(t *testing.T) renames {
	t.Helper()
	names, err := readRenames(filepath.Join("testdata", "renames.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// base is the set of files that the tests compare with.
var base = filepath.Join("testdata", "base")

func TestDatabase_IsReadAndResumedAsBefore(t *testing.T) {
	names, list := currentNames(t), readExchanges(t, filepath.Join(base, "exchanges", "stored"))
	dir := copyFiles(t, base)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(reopenAfter)
		w := openWorld(t, dir)
		defer w.close()
		w.allowDevSessions()
		before := verifyAudit(t, w, "acme")
		replay(t, w, names, list)
		if after := verifyAudit(t, w, "acme"); after <= before {
			t.Errorf("the audit log has %d records after %d", after, before)
		}
		completed := map[string]bool{}
		runs, err := w.executor.ListRuns(t.Context(), "acme", store.RunFilter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			completed[run.StateKey] = completed[run.StateKey] || run.Status == store.StatusCompleted
		}
		for _, key := range waitingRuns {
			// of this one a hold is asked again, because the state that it showed has changed
			if !completed[key] && key != "waiting-everything" {
				t.Errorf("%s is not completed", key)
			}
		}
	})
}

// verifyAudit verifies the audit log of an account with its signed checkpoints, and returns its
// size.
func verifyAudit(t *testing.T, w *world, account string) int64 {
	t.Helper()
	log := audit.NewStoreLog(w.store)
	head, err := log.Head(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := w.auditKey.Trust(head.Origin())
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), log, account, audit.VerifyOptions{Trust: trust}, io.Discard)
	if err != nil || report.Problem != nil {
		t.Fatalf("audit log: %v, %v", err, report.Problem)
	}
	if report.Signed == 0 {
		t.Errorf("no signed checkpoint was verified: %+v", report)
	}
	return head.Size
}
