package audittest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

// tamperedLog returns a filled and signed log, and a function that applies a change, verifies and
// restores it.
func tamperedLog(t testing.TB, s Subject) (stored [][]byte, found func(what string, rows [][]byte)) {
	t.Helper()
	fill(t, s, "acme", 0, 5)
	_, trust := sign(t, s, "acme")
	fill(t, s, "acme", 5, 6) // one that is not signed yet
	stored = rows(t, s.Log, "acme", 0, 0)
	if err := verify(t, s, "acme", trust); err != nil {
		t.Fatalf("before any change: %v", err)
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
			t.Fatalf("%s, after restoring: %v", what, err)
		}
	}
}

func testBytes(t testing.TB, s Subject) {
	stored, found := tamperedLog(t, s)
	for i, raw := range stored {
		// trying every byte would take too long with a database; package audit does it for a whole
		// record
		for at := i; at < len(raw); at += 23 {
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
			found(fmt.Sprintf("records %d and %d swapped", i+1, j+1), changed)
		}
		found(fmt.Sprintf("record %d twice", i+1), slices.Insert(slices.Clone(stored), i, stored[i]))
	}
}

func testCut(t testing.TB, s Subject) {
	stored, found := tamperedLog(t, s)
	for i := range stored {
		found(fmt.Sprintf("truncated after record %d", i), slices.Clone(stored[:i]))
		found(fmt.Sprintf("without record %d", i+1), slices.Delete(slices.Clone(stored), i, i+1))
	}
	extra, err := reference(t, s, "acme", 6).Append(t.Context(), "acme", record(6))
	if err != nil {
		t.Fatal(err)
	}
	found("a record after the head", append(slices.Clone(stored), extra.Raw))
}
