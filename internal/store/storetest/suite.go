// Package storetest is the conformance suite for stores, and provides test helpers for code that
// uses a store.
//
// An implementation runs the suite:
//
//	func TestStore(t *testing.T) {
//		storetest.Store(t, func(t *testing.T) store.Store { return memory.NewStore(nil) })
//	}
//
// A partial implementation runs a part of it: [Checkpoints], [Runs]. [Reference] compares a store
// with the one in memory, in random histories.
//
// Code that uses a store is tested with one that fails at a chosen moment ([Faulty]). A crash at
// every possible save:
//
//	for n := 1; ; n++ {
//		faulty := storetest.NewFaulty(memory.New())
//		faulty.CrashSave(n, storetest.AfterWrite) // applied, but not acknowledged; the process is gone
//		run(faulty)
//		if faulty.Saves() < n {
//			break // the run needs fewer than n saves
//		}
//		faulty.Restart()
//		recoverAndCheck(faulty)
//	}
package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-go/fermata/internal/store"
)

// Checkpoints tests an implementation of [store.Checkpoints]. open is called once per test and
// returns an empty store; it registers its cleanup with t.Cleanup.
func Checkpoints(t *testing.T, open func(t *testing.T) store.Checkpoints) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s store.Checkpoints)
	}{
		{"Load_UnknownRunIsNotFound", testLoadUnknown},
		{"Save_CreatesAtVersionOne", testCreate},
		{"Save_EmptyDeltaIsAVersion", testEmptyDelta},
		{"Save_PutsAndDeletesOnlyWhatTheDeltaNames", testDelta},
		{"Save_StaleBaseChangesNothing", testStale},
		{"Save_EmptyNameChangesNothing", testEmptyNames},
		{"Delete_RestartsAtVersionOne", testDelete},
		{"Accounts_DoNotReachEachOther", testAccounts},
		{"Bytes_AnyInKeysNamesAndData", testBytes},
		{"Bytes_EmptyDataIsNotMissing", testEmptyData},
		{"Bytes_DeltaIsNotModified", testAliasIn},
		{"Bytes_ReturnedDataIsImmutable", testAliasOut},
		{"Size_BigParts", testBigParts},
		{"Size_ManyParts", testManyParts},
		{"Concurrent_OneSaverWinsEachRound", testOneWinner},
		{"Concurrent_ReadersSeeOneGeneration", testTornReads},
		{"Concurrent_RunsDoNotDisturbEachOther", testManyRuns},
		{"Cancel_BeforeTheCall", testCancelBefore},
		{"Cancel_DuringSaveIsAllOrNothing", testCancelDuring},
		{"Model_RandomHistories", testModel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// parts is a short form of the parts of a checkpoint.
type parts map[string]string

func (p parts) delta(gone ...string) store.Delta {
	var delta store.Delta
	for name, data := range p {
		delta.Put = append(delta.Put, store.Part{Name: name, Data: []byte(data)})
	}
	delta.Delete = gone
	return delta
}

func (p parts) checkpoint(version int64) store.Checkpoint {
	checkpoint := store.Checkpoint{Version: version, Parts: map[string][]byte{}}
	for name, data := range p {
		checkpoint.Parts[name] = []byte(data)
	}
	return checkpoint
}

// fataler is *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustSave(t *testing.T, s store.Checkpoints, key store.Key, base int64, delta store.Delta) int64 {
	t.Helper()
	version, err := s.Save(t.Context(), key, base, delta)
	if err != nil {
		t.Fatalf("Save on base %d: %v", base, err)
	}
	if version != base+1 {
		t.Fatalf("Save on base %d returned version %d", base, version)
	}
	return version
}

func mustLoad(t *testing.T, s store.Checkpoints, key store.Key) store.Checkpoint {
	t.Helper()
	checkpoint, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if checkpoint.Parts == nil {
		t.Fatal("Load returned a nil map; the caller may write to it")
	}
	return checkpoint
}

func wantStored(t *testing.T, s store.Checkpoints, key store.Key, want store.Checkpoint) {
	t.Helper()
	wantEqual(t, mustLoad(t, s, key), want)
}

func wantEqual(t fataler, got, want store.Checkpoint) {
	t.Helper()
	// nil and empty data are equal; the map tells whether a part exists.
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the stored checkpoint differs (-want +got):\n%s", diff)
	}
}
