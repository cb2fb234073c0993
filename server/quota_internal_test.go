package server

import (
	"fmt"
	"testing"
	"time"
)

func TestQuotaCache_CountIsValidForATimeAndAShare(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	if r.take("acme", now) {
		t.Error("there is room before anybody looked")
	}
	saw := func(account string, more int) {
		l, _ := r.join(account)
		r.finish(account, l, more, nil, now)
	}
	saw("acme", 3*quotaShare)
	for n := range 3 {
		if !r.take("acme", now) {
			t.Errorf("start %d has to look", n)
		}
	}
	if r.take("acme", now) {
		t.Error("more than a part of the room is given away")
	}
	saw("acme", 3*quotaShare)
	if r.take("other", now) {
		t.Error("the room of one account is taken by another")
	}
	if !r.take("acme", now.Add(quotaTTL-1)) {
		t.Error("a look does not hold")
	}
	if r.take("acme", now.Add(quotaTTL)) {
		t.Error("a look holds for ever")
	}
	saw("acme", quotaShare-1)
	if r.take("acme", now) {
		t.Error("near the limit, not every start looks")
	}
}

func TestQuotaCache_DropsExpiredEntries(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	for n := range 3 * quotaCacheSize {
		account := fmt.Sprint("account ", n)
		l, _ := r.join(account)
		r.finish(account, l, 100, nil, now)
		now = now.Add(quotaTTL / 10)
	}
	if len(r.accounts) > quotaCacheSize {
		t.Errorf("%d accounts are remembered", len(r.accounts))
	}
}

// Near the limit everybody looks, but not all at once: whoever comes while somebody looks has the room that is found, and no more than there is.
func TestQuotaCache_ConcurrentCallersShareOneCount(t *testing.T) {
	var r quotaCache
	now := time.Unix(1_000_000, 0)
	l, mine := r.join("acme")
	if !mine {
		t.Fatal("nobody looks, and it is not mine to look")
	}
	for range 5 {
		if other, mine := r.join("acme"); mine || other != l {
			t.Error("two look at once")
		}
	}
	if _, mine := r.join("other"); !mine {
		t.Error("an account waits for the look of another")
	}
	r.finish("acme", l, 4, nil, now)
	<-l.done
	got := 0
	for range 5 {
		if r.take("acme", now) {
			got++
		}
	}
	if got != 3 {
		t.Errorf("there was room for 4, and for %d beside the one who looked", got)
	}
	if _, mine := r.join("acme"); !mine {
		t.Error("a look that is over is waited for")
	}
}
