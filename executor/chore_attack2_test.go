package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// A chore that was done while the clock was wrong would be due again when the clock has come there once more: in years, perhaps, and until then
// nothing would be signed, and nobody would notice.
func TestI12_AClockThatWasWrongDoesNotEndTheChores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &passes{Store: memory.NewRuns(nil)}
		err := s.Amend(t.Context(), "", store.Beside{Papers: []store.PaperChange{{
			Kind: executor.ChorePaper, ID: executor.CheckChore, Facts: []byte(`{}`), Next: time.Now().AddDate(10, 0, 0),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		keeper(t, s, executor.Audit{CheckEvery: time.Hour}, t.Output()).Start()
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		if got := s.begun.Load(); got < 3 || got > 4 {
			t.Errorf("in three hours there were %d passes", got)
		}
	})
}
