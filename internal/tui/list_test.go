package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
)

// lineWith returns the line of a frame that contains a text; -1 if there is none.
func (b *harness) lineWith(text string) int {
	b.t.Helper()
	for i, line := range strings.Split(b.frame(), "\n") {
		if strings.Contains(line, text) {
			return i
		}
	}
	return -1
}

// The request with the highest risk is the first when the list opens; a later one is added below.
func TestList_HighestRiskFirst(t *testing.T) {
	rated := func(r api.Request, risk int) api.Request {
		r.Activity = &api.Activity{Risk: risk}
		return r
	}
	b := newHarness(t, 80, 24, rated(review(), 1), refund(), rated(dropUsers(), 3))
	if drop, ref, rev := b.lineWith("high risk · drop-users"), b.lineWith("refund-17"), b.lineWith("article-tea"); drop < 0 || drop > rev || rev > ref {
		t.Errorf("drop at line %d, review at %d, refund at %d:\n%s", drop, rev, ref, b.frame())
	}
	late := rated(requestNamed("int_late", "late"), 3)
	b.poll(rated(review(), 1), refund(), rated(dropUsers(), 3), late)
	if b.lineWith("high risk · late") < b.lineWith("refund-17") {
		t.Errorf("a new request moves the others:\n%s", b.frame())
	}
}

func TestList_RowsDoNotMoveWhileViewed(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers(), refund(), review())
	b.keys("j")
	before := b.lineWith("▌ approval          Refund")
	b.poll(refund(), requestNamed("int_new", "brand-new"))
	if at := b.lineWith("▌ approval          Refund"); at != before {
		t.Errorf("the selection was at line %d, now at %d", before, at)
	}
	b.sees("no longer open", "brand-new")
	if new, old := b.lineWith("brand-new"), b.lineWith("article-tea"); new < old {
		t.Error("the new row is not at the end")
	}
	b.keys("j") // closed rows are removed now
	b.seesNot("no longer open", "drop-users", "article-tea")
	b.keys("enter")
	b.sees("brand-new")
}

func requestNamed(id, key string) api.Request {
	r := review()
	r.ID, r.StateKey = id, key
	return r
}

func TestList_SelectedRowStaysWhenClosed(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers(), refund(), review())
	b.keys("j")
	b.poll(dropUsers(), review())
	b.advance(2 * closedRowTTL)
	b.poll(dropUsers(), review())
	if b.lineWith("▌ approval          Refund") < 0 {
		t.Errorf("the cursor is somewhere else:\n%s", b.frame())
	}
	b.keys("j", "enter")
	b.sees("article-tea")
}

func TestList_ClosedRowsDisappear(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers(), refund())
	b.poll(dropUsers())
	b.sees("refund-17", "no longer open", "Inbox 1 open")
	b.advance(closedRowTTL)
	b.poll(dropUsers())
	b.seesNot("refund-17")
}

func TestList_FilterMatchesAllWords(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers(), refund(), review())
	b.keys("/")
	b.types("USERS dro")
	b.sees("filter: USERS dro", "drop-users")
	b.seesNot("refund-17", "article-tea")
	b.keys("q") // is a letter here
	b.sees("Nothing matches.")
	if b.quit {
		t.Error("a letter of the filter ended the program")
	}
	b.keys("backspace", "enter", "enter")
	b.sees("run      drop-users")
	b.keys("esc", "esc")
	b.sees("refund-17", "article-tea")
}

func TestList_ShowsThatThereIsMore(t *testing.T) {
	b := newHarness(t, 80, 24)
	b.update(pollResult{seq: b.m.pollSeq, items: []api.Request{dropUsers(), refund()}, more: true})
	b.sees("Inbox the oldest 2")
}

func TestList_ScrollsWithTheCursor(t *testing.T) {
	var many []api.Request
	for i := range 30 {
		many = append(many, requestNamed("int_"+string(rune('A'+i)), "run-"+string(rune('A'+i))))
	}
	b := newHarness(t, 40, 20, many...)
	b.sees("run-A")
	b.keys("G")
	b.sees("run-^")
	b.seesNot("run-A")
	b.keys("g")
	b.sees("run-A")
}

func TestConnection_LossIsShownAndStateKept(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, maxReconnectDelay, maxReconnectDelay} {
		b.update(pollResult{seq: b.m.pollSeq, err: errors.New("connection refused")})
		if got := b.delays[len(b.delays)-1]; got != want {
			t.Errorf("the retry delay is %s, not %s", got, want)
		}
		b.advance(time.Second)
	}
	b.sees("OFFLINE 5s, retry in 14s", "drop-users")
	b.poll(dropUsers())
	b.sees("live 03:12:49")
	b.update(pollResult{seq: b.m.pollSeq, err: &api.Problem{Status: 401, Code: "unauthenticated"}})
	b.sees("REJECTED: unauthenticated")
}

func TestConnection_SlowPollIsNotLive(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	b.advance(20 * time.Second)
	b.sees("no response for 20s")
	b.seesNot("live")
}

func TestConnection_LatePollIsIgnored(t *testing.T) {
	b := newHarness(t, 80, 24, dropUsers())
	old := b.m.pollSeq
	b.keys("ctrl+r")
	b.poll(refund(), review())
	b.update(pollResult{seq: old, items: []api.Request{dropUsers()}})
	b.sees("Inbox 2 open")
}

func TestResize_AnySizeRenders(t *testing.T) {
	for _, keys := range [][]string{nil, {"enter"}, {"enter", "a"}, {"j", "enter", "e"}, {"enter", "r", "x"}, {"?"}, {"/", "t"}} {
		b := newHarness(t, 80, 24, dropUsers(), refund(), review())
		b.keys(keys...)
		b.m.notice = notice{text: strings.Repeat("something went wrong ", 40), bad: true}
		for width := minWidth; width < 130; width += 17 {
			for height := minHeight; height < 50; height += 9 {
				b.resize(width, height)
				b.frame()
			}
		}
		b.resize(3, 2)
		if got := b.m.View().Content; got != "The\n " {
			t.Errorf("%q", got)
		}
	}
}

// The sentence was cut off in a window of 20 columns.
func TestResize_TooSmallMessageFits(t *testing.T) {
	b := newHarness(t, 20, 24, refund())
	if got := b.m.View().Content; got != "The window is too \nsmall." {
		t.Errorf("%q", got)
	}
	b.resize(80, minHeight-1)
	if got := b.m.View().Content; got != "The window is too small." {
		t.Errorf("%q", got)
	}
}

// Nothing can be decided in a window that is too small to show anything.
func TestResize_TooSmallDisablesDecisions(t *testing.T) {
	b := newHarness(t, minWidth-1, 24, refund())
	b.keys("enter", "a", "y")
	b.resize(80, 24)
	b.keys("enter", "a")
	b.resize(80, minHeight-1)
	b.keys("y", "esc")
	if len(b.sends) != 0 {
		t.Errorf("sent %v", b.sends)
	}
	b.resize(80, 24)
	b.keys("y")
	if len(b.sends) != 1 {
		t.Errorf("sent %v when it is visible again", b.sends)
	}
	b.resize(20, 5)
	b.keys("ctrl+c", "ctrl+c") // the first asks, because a decision is being sent
	if !b.quit {
		t.Error("it cannot be left")
	}
}
