package presence

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTracker_ViewerExpiresUnlessReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tracker Tracker
		changed, stop := tracker.Watch("acme")
		defer stop()
		tracker.Report("acme", "int_1", "bob")
		tracker.Report("other", "int_1", "eve")
		time.Sleep(20 * time.Second)
		tracker.Report("acme", "int_1", "ann")
		tracker.Report("acme", "int_1", "bob")
		if got := tracker.Viewers("acme", "int_1"); len(got) != 2 || got[0].ID != "ann" || got[1].ID != "bob" {
			t.Fatalf("the viewers are %v", got)
		}
		if len(changed) != 2 { // ann and bob came; a repeated report is not a change
			t.Errorf("there are %d changes", len(changed))
		}
		time.Sleep(TTL + time.Second)
		synctest.Wait()
		if got := tracker.Viewers("acme", "int_1"); len(got) != 0 {
			t.Errorf("still there: %v", got)
		}
		if len(changed) != 4 {
			t.Errorf("there are %d changes", len(changed))
		}
		if len(tracker.requests) != 0 {
			t.Error("requests without viewers are kept")
		}
	})
}
