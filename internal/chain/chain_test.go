package chain

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

func TestNext_PrependsChainFields(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 1000, time.FixedZone("CET", 3600))
	first, head, err := Next(Head{}, at, []byte(`{"type":"asked", "n": 1.0}`))
	want := `{"v":1,"seq":1,"prev":"0000000000000000000000000000000000000000000000000000000000000000","time":"2026-11-15T11:00:00.000001Z","type":"asked", "n": 1.0}`
	if err != nil || string(first) != want || head.Seq != 1 || head.Hash != Hash(first) {
		t.Fatalf("%s, %v, %v", first, head, err)
	}
	second, head, err := Next(head, at, []byte(`{"type":"decided"}`))
	before := Hash(first)
	if prev := hex.EncodeToString(before[:]); err != nil || string(second[:len(`{"v":1,"seq":2,"prev":"`)+64]) != `{"v":1,"seq":2,"prev":"`+prev || head.Seq != 2 {
		t.Fatalf("%s, %v, %v", second, head, err)
	}
}

func TestNext_NonObjectReturnsErrLine(t *testing.T) {
	for _, bad := range []string{"", "{", "{}", "[1]", "null", ` {"a":1}`, `{ "a":1}`, `{"a":1`, `{"a":1}}`} {
		if line, _, err := Next(Head{}, time.Now(), []byte(bad)); !errors.Is(err, ErrLine) {
			t.Errorf("%q: %s, %v", bad, line, err)
		}
	}
}
