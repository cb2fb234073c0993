package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store/storetest"
)

func TestI2_I16_KilledProcessesShareRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	over := func() { s.clock = func() time.Time { return time.Now().Add(time.Hour) } }
	storetest.Processes(t, s, over, childTask+"=work", childPath+"="+path)
	for _, pragma := range []string{`PRAGMA integrity_check`, `SELECT count(*) || '' FROM pragma_foreign_key_check`} {
		var result string
		if err := s.readers.QueryRowContext(t.Context(), pragma).Scan(&result); err != nil || result != "ok" && result != "0" {
			t.Errorf("%s: %s, %v", pragma, result, err)
		}
	}
}
