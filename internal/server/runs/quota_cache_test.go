package runs

import (
	"fmt"
	"testing"
	"time"
)

func TestQuotaCache_CountIsValidForATimeAndAShare(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	if r.Take("acme", now) {
		t.Error("there is quota before any count")
	}
	saw := func(account string, more int) {
		l, _ := r.Join(account)
		r.Finish(account, l, more, nil, now)
	}
	saw("acme", 3*quotaShare)
	for n := range 3 {
		if !r.Take("acme", now) {
			t.Errorf("start %d has to count", n)
		}
	}
	if r.Take("acme", now) {
		t.Error("more than a share of the quota is used")
	}
	saw("acme", 3*quotaShare)
	if r.Take("other", now) {
		t.Error("the quota of one account is used by another")
	}
	if !r.Take("acme", now.Add(quotaTTL-1)) {
		t.Error("a count is not reused")
	}
	if r.Take("acme", now.Add(quotaTTL)) {
		t.Error("a count never expires")
	}
	saw("acme", quotaShare-1)
	if r.Take("acme", now) {
		t.Error("near the limit, not every start counts")
	}
}

func TestQuotaCache_DropsExpiredEntries(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	for n := range 3 * quotaCacheSize {
		account := fmt.Sprint("account ", n)
		l, _ := r.Join(account)
		r.Finish(account, l, 100, nil, now)
		now = now.Add(quotaTTL / 10)
	}
	if len(r.accounts) > quotaCacheSize {
		t.Errorf("%d accounts are cached", len(r.accounts))
	}
}

// Near the limit every start counts, but concurrent starts share one count, and together use no
// more than it found.
func TestQuotaCache_ConcurrentCallersShareOneCount(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	l, owner := r.Join("acme")
	if !owner {
		t.Fatal("no count is running, and it is not mine")
	}
	for range 5 {
		if other, owner := r.Join("acme"); owner || other != l {
			t.Error("two counts run at once")
		}
	}
	if _, owner := r.Join("other"); !owner {
		t.Error("an account waits for the count of another")
	}
	r.Finish("acme", l, 4, nil, now)
	<-l.Done
	got := 0
	for range 5 {
		if r.Take("acme", now) {
			got++
		}
	}
	if got != 3 {
		t.Errorf("there were 4 left, and %d other than the one that counted", got)
	}
	if _, owner := r.Join("acme"); !owner {
		t.Error("a finished count is waited for")
	}
}
