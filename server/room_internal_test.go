package server

import (
	"fmt"
	"testing"
	"time"
)

func TestRooms_ALookHoldsForAMomentAndForAPartOfTheRoom(t *testing.T) {
	var r rooms
	now := time.Unix(1_000_000, 0)
	if r.take("acme", now) {
		t.Error("there is room before anybody looked")
	}
	saw := func(account string, more int) {
		l, _ := r.join(account)
		r.saw(account, l, more, nil, now)
	}
	saw("acme", 3*roomShare)
	for n := range 3 {
		if !r.take("acme", now) {
			t.Errorf("start %d has to look", n)
		}
	}
	if r.take("acme", now) {
		t.Error("more than a part of the room is given away")
	}
	saw("acme", 3*roomShare)
	if r.take("other", now) {
		t.Error("the room of one account is taken by another")
	}
	if !r.take("acme", now.Add(roomHolds-1)) {
		t.Error("a look does not hold")
	}
	if r.take("acme", now.Add(roomHolds)) {
		t.Error("a look holds for ever")
	}
	saw("acme", roomShare-1)
	if r.take("acme", now) {
		t.Error("near the limit, not every start looks")
	}
}

func TestRooms_ForgetWhatIsTooOld(t *testing.T) {
	var r rooms
	now := time.Unix(1_000_000, 0)
	for n := range 3 * roomsKept {
		account := fmt.Sprint("account ", n)
		l, _ := r.join(account)
		r.saw(account, l, 100, nil, now)
		now = now.Add(roomHolds / 10)
	}
	if len(r.of) > roomsKept {
		t.Errorf("%d accounts are remembered", len(r.of))
	}
}

// Near the limit everybody looks, but not all at once: whoever comes while somebody looks has the room that is found, and no more than there is.
func TestRooms_OneLookCountsForAllWhoComeMeanwhile(t *testing.T) {
	var r rooms
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
	r.saw("acme", l, 4, nil, now)
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
