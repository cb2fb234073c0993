package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// nextHint returns the next hint.
func nextHint(t *testing.T, hints <-chan store.Key) store.Key {
	t.Helper()
	patience := time.NewTimer(time.Minute) // a failing test must not hang
	defer patience.Stop()
	select {
	case key, open := <-hints:
		if !open {
			t.Fatal("the channel was closed")
		}
		return key
	case <-patience.C:
		t.Fatal("no hint")
	}
	return store.Key{}
}

// watchAndListen watches, and waits until the Store listens to others.
func watchAndListen(t *testing.T, s *Store) <-chan store.Key {
	t.Helper()
	hints := s.Watch(t.Context())
	if key := nextHint(t, hints); key != (store.Key{}) {
		t.Fatalf("the first hint is %q; want a zero key", key)
	}
	return hints
}

func TestWatch_AcrossStores(t *testing.T) {
	connString := prepared(t)
	first, second := mustOpen(t, connString, Config{}), mustOpen(t, connString, Config{})
	hints := watchAndListen(t, second)
	fixture.CreateRun(t, first, "r")
	if key := nextHint(t, hints); key != (store.Key{Account: "acme", Run: "r"}) {
		t.Errorf("a hint at %q", key)
	}
	odd := fixture.NewRun("\x00 \xff")
	odd.Account = "a b\x00"
	if _, err := first.Create(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	if key := nextHint(t, hints); key != (store.Key{Account: odd.Account, Run: odd.ID}) {
		t.Errorf("a hint at %q", key)
	}
	// in hexadecimal it is too long for a notification
	long := fixture.NewRun(strings.Repeat("long", 2000))
	if _, err := first.Create(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if key := nextHint(t, hints); key != (store.Key{}) {
		t.Errorf("hint %q; want a zero key", key)
	}
}

// Another schema is another store.
func TestWatch_StaysInTheSchema(t *testing.T) {
	connString := prepared(t)
	hints := watchAndListen(t, mustOpen(t, connString, Config{}))
	fixture.CreateRun(t, mustOpen(t, connString, Config{Schema: "other"}), "theirs")
	fixture.CreateRun(t, mustOpen(t, connString, Config{}), "ours")
	if key := nextHint(t, hints); key.Run != "ours" {
		t.Errorf("a hint at %q", key)
	}
}

// A Store's own hints are sent at once, and once: its own notifications are ignored.
func TestWatch_OwnHintsComeOnce(t *testing.T) {
	connString := prepared(t)
	s, other := mustOpen(t, connString, Config{}), mustOpen(t, connString, Config{})
	hints := watchAndListen(t, s)
	others := watchAndListen(t, other)
	for n := range 3 {
		id := fmt.Sprint("r", n)
		fixture.CreateRun(t, s, id)
		if key := nextHint(t, hints); key.Run != id {
			t.Errorf("a hint at %q, want %s", key, id)
		}
		if key := nextHint(t, others); key.Run != id { // the notification has arrived by then
			t.Errorf("others get the hint %q, want %s", key, id)
		}
	}
}

// Changes during a lost connection are unknown, so any run may have changed.
func TestWatch_LostConnectionGivesAZeroKey(t *testing.T) {
	connString := prepared(t)
	first, second := mustOpen(t, connString, Config{}), mustOpen(t, connString, Config{})
	hints := watchAndListen(t, second)
	for n := range 2 {
		mustExec(t, raw(t, connString), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
		if key := nextHint(t, hints); key != (store.Key{}) {
			t.Errorf("hint %q; want a zero key", key)
		}
		id := fmt.Sprint("r", n)
		fixture.CreateRun(t, first, id)
		if key := nextHint(t, hints); key.Run != id {
			t.Errorf("a hint at %q, want %s", key, id)
		}
	}
}

// Hints are not part of the transactions: a transaction with a NOTIFY blocks all other commits.
func TestWatch_TransactionsDoNotNotify(t *testing.T) {
	for name, text := range statements(t) {
		if name != "notifySQL" && strings.Contains(strings.ToLower(text), "notify") {
			t.Errorf("%s notifies", name)
		}
	}
}

// Several hints are sent as one notification each in one transaction; too many become one.
func TestWatch_ManyHintsAtOnce(t *testing.T) {
	h := newWatchers("fermata", "origin")
	for n := range maxPending {
		h.add(store.Key{Account: "acme", Run: fmt.Sprint(n)})
	}
	if payloads := h.take(); len(payloads) != maxPending {
		t.Errorf("%d payloads, want %d", len(payloads), maxPending)
	}
	for n := range maxPending + 10 {
		h.add(store.Key{Account: "acme", Run: fmt.Sprint(n)})
	}
	if payloads := h.take(); len(payloads) != 1 || payloads[0] != "origin" {
		t.Errorf("payloads %q, want one without a run", payloads)
	}
	if payloads := h.take(); len(payloads) > 0 {
		t.Errorf("payloads %q are sent again", payloads)
	}
}

// A payload that is not understood may be about any run.
func TestWatch_UnknownPayloadGivesAZeroKey(t *testing.T) {
	h := newWatchers("fermata", "origin")
	s := &Store{watch: h}
	h.listening = true
	hints := s.Watch(t.Context())
	for payload, want := range map[string]store.Key{
		"other 61 62":     {Account: "a", Run: "b"},
		"other  62":       {Run: "b"},
		"other":           {},
		"other 6":         {},
		"other 61 6x":     {},
		"other 61 62 new": {},
		"":                {},
	} {
		h.receive(payload)
		if key := nextHint(t, hints); key != want {
			t.Errorf("%q is a hint at %q, want %q", payload, key, want)
		}
	}
	h.receive("origin 61 62")
	if len(hints) > 0 {
		t.Error("received its own hint")
	}
}

func TestWatch_EndsWithTheStore(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	hints := watchAndListen(t, s)
	s.Close()
	for range hints { // until it is closed
	}
	for range s.Watch(t.Context()) { // so is one of a closed Store
	}
}

// Pending hints are sent when the Store is closed.
func TestWatch_CloseSendsPendingHints(t *testing.T) {
	connString := prepared(t)
	hints := watchAndListen(t, mustOpen(t, connString, Config{}))
	s := mustOpen(t, connString, Config{})
	s.watch.add(store.Key{Account: "acme", Run: "r"})
	<-s.watch.more // only the pause is left
	s.watch.cancel()
	s.notifyLoop()
	if key := nextHint(t, hints); key.Run != "r" {
		t.Errorf("a hint at %q", key)
	}
}

// A NOTIFY whose connection was lost may have failed. The next one has no run.
func TestWatch_UnsentHintsGiveAZeroKey(t *testing.T) {
	direct := prepared(t)
	network, connString := newProxy(t, direct)
	hints := watchAndListen(t, mustOpen(t, direct, Config{}))
	s := mustOpen(t, connString, Config{MaxConns: 1})
	network.Reset()
	s.publish("acme", "r") // as after a commit
	if key := nextHint(t, hints); key != (store.Key{}) {
		t.Errorf("hint %q; want a zero key", key)
	}
}

// A silent connection is detected.
func TestWatch_SilentConnectionIsDetected(t *testing.T) {
	network, connString := newProxy(t, prepared(t))
	conn := raw(t, connString)
	if !ping(t.Context(), conn) {
		t.Fatal("the server does not answer")
	}
	network.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), shortTimeouts)
	defer cancel()
	if ping(ctx, conn) {
		t.Error("the network is silent, but the server responds")
	}
}
