package audittest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/audit"
)

// tamperedLog is a log that was filled and signed, and can be changed again and again.
func tamperedLog(t testing.TB, s Subject) (stored [][]byte, found func(what string, rows [][]byte)) {
	t.Helper()
	fill(t, s, "acme", 0, 5)
	_, trust := sign(t, s, "acme")
	fill(t, s, "acme", 5, 6) // and one that is not signed yet
	stored = rows(t, s.Log, "acme", 0, 0)
	if err := verify(t, s, "acme", trust); err != nil {
		t.Fatalf("before anything was changed: %v", err)
	}
	return stored, func(what string, rows [][]byte) {
		t.Helper()
		s.Tamper(t, "acme", rows)
		err := verify(t, s, "acme", trust)
		if _, ok := errors.AsType[*audit.Problem](err); !ok {
			t.Errorf("%s: %v; want a problem", what, err)
		}
		s.Tamper(t, "acme", stored)
		if err := verify(t, s, "acme", trust); err != nil {
			t.Fatalf("%s, and everything put back: %v", what, err)
		}
	}
}

func testBytes(t testing.TB, s Subject) {
	stored, found := tamperedLog(t, s)
	for i, raw := range stored {
		for at := i; at < len(raw); at += 23 { // every byte would take a database long; a whole record is tried in the tests of package audit
			changed := slices.Clone(stored)
			changed[i] = bytes.Clone(raw)
			changed[i][at] ^= 1
			found(fmt.Sprintf("record %d, byte %d", i+1, at), changed)
		}
	}
}

func testOrder(t testing.TB, s Subject) {
	stored, found := tamperedLog(t, s)
	for i := range stored {
		for j := i + 1; j < len(stored); j++ {
			changed := slices.Clone(stored)
			changed[i], changed[j] = changed[j], changed[i]
			found(fmt.Sprintf("records %d and %d exchanged", i+1, j+1), changed)
		}
		found(fmt.Sprintf("record %d twice", i+1), slices.Insert(slices.Clone(stored), i, stored[i]))
	}
}

func testCut(t testing.TB, s Subject) {
	stored, found := tamperedLog(t, s)
	for i := range stored {
		found(fmt.Sprintf("cut behind record %d", i), slices.Clone(stored[:i]))
		found(fmt.Sprintf("without record %d", i+1), slices.Delete(slices.Clone(stored), i, i+1))
	}
	extra, err := reference(t, s, "acme", 6).Append(t.Context(), "acme", record(6))
	if err != nil {
		t.Fatal(err)
	}
	found("a record behind the head", append(slices.Clone(stored), extra.Raw))
}
