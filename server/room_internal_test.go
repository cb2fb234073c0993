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
	r.saw("acme", 3*roomShare, now)
	for n := range 3 {
		if !r.take("acme", now) {
			t.Errorf("start %d has to look", n)
		}
	}
	if r.take("acme", now) {
		t.Error("more than a part of the room is given away")
	}
	r.saw("acme", 3*roomShare, now)
	if r.take("other", now) {
		t.Error("the room of one account is taken by another")
	}
	if !r.take("acme", now.Add(roomHolds-1)) {
		t.Error("a look does not hold")
	}
	if r.take("acme", now.Add(roomHolds)) {
		t.Error("a look holds for ever")
	}
	r.saw("acme", roomShare-1, now)
	if r.take("acme", now) {
		t.Error("near the limit, not every start looks")
	}
}

func TestRooms_ForgetWhatIsTooOld(t *testing.T) {
	var r rooms
	now := time.Unix(1_000_000, 0)
	for n := range 3 * roomsKept {
		r.saw(fmt.Sprint("account ", n), 100, now)
		now = now.Add(roomHolds / 10)
	}
	if len(r.of) > roomsKept {
		t.Errorf("%d accounts are remembered", len(r.of))
	}
}
