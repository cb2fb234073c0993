package executor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/timespan"
)

// A reminder says whether its address has the request already, so that a channel without
// replacement does not post it twice.
func TestOutbox_ReminderNamesAnEarlierCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		e := notifying(t, memory.NewStore(nil), dm, nil,
			desk.Step{Notify: []string{"dm:C0OPS"}}, desk.Step{At: timespan.Duration(time.Hour), Remind: []string{"dm:C0OPS", "dm:C0DBA"}})
		startAs(t, e, "req")
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		again := make(map[string]bool)
		for _, m := range dm.all() {
			if m.kind == desk.NoticeRemind {
				again[m.to] = m.again
			} else if m.again {
				t.Errorf("%s to %s", m.kind, m.to)
			}
		}
		if len(again) != 2 || !again["C0OPS"] || again["C0DBA"] {
			t.Errorf("the reminders: %v", again)
		}
	})
}
