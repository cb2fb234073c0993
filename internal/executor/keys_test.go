package executor_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// Regression: a server whose key file was removed, or given to another user, did not report it. It
// encrypted with a key that others no longer had, or did not start again.
func TestKeys_UnreadableKeyFileIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "key")
		if err := seal.CreateKeyFile(path); err != nil {
			t.Fatal(err)
		}
		file, err := seal.OpenKeyFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var log syncBuffer
		e := executorOf(t, memory.NewStore(nil), spy(t), func(c *executor.Config) {
			c.Sealer, c.Poll, c.Log = file, time.Second, slog.New(slog.NewTextHandler(&log, nil))
		})
		e.StartWorkers()
		said := func(what string, unread bool) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if text := log.String(); (text != "") != (what != "") || !strings.Contains(text, what) || strings.Count(text, "\n") > 1 || e.Stats().KeyReloadFailing != unread {
				t.Errorf("want %q and %v, got %v and %q", what, unread, e.Stats().KeyReloadFailing, text)
			}
			log.Reset()
		}
		said("", false)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		said("key file cannot be reloaded", true)
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		said("key file reloaded", false)
	})
}
