package storetest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"reflect"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// unusualStrings are byte strings that cause problems in some databases, drivers or encodings.
var unusualStrings = []string{
	"\x00",
	"\x00\x00",
	"a\x00b",
	"a\x00c",
	"\xff\xfe",
	"\xc3\x28", // invalid UTF-8
	"\xed\xa0\x80",
	"é",       // composed
	"e\u0301", // the same letter decomposed: another name
	"'; DROP TABLE checkpoints; --",
	`"quoted"`,
	"`", `\`, "%", "_", "?1", ":x", "$1",
	" ", "  ", "\t", "\r\n", "\n",
	"🎼", "👩‍👩‍👧‍👦",
	"NULL", "null", "0", "00", "1e1", "10", "true",
	"name", "NAME",
	"../../etc", "C:",
	string(bytes.Repeat([]byte("long"), 1000)),
}

func testBytes(t *testing.T, s store.Checkpoints) {
	want := parts{}
	for _, name := range unusualStrings {
		want[name] = "data of " + name
	}
	for i, text := range unusualStrings {
		key := store.Key{Account: text, Run: unusualStrings[len(unusualStrings)-1-i]}
		mustSave(t, s, key, 0, parts{"is": text}.delta())
		mustSave(t, s, store.Key{Run: text}, 0, want.delta())
	}
	for i, text := range unusualStrings {
		key := store.Key{Account: text, Run: unusualStrings[len(unusualStrings)-1-i]}
		wantStored(t, s, key, parts{"is": text}.checkpoint(1))
		wantEqualBytes(t, mustLoad(t, s, store.Key{Run: text}), want.checkpoint(1))
	}
	for _, name := range unusualStrings { // each is deleted by its exact bytes
		key := store.Key{Run: name}
		mustSave(t, s, key, 1, parts{}.delta(name))
		left := want.checkpoint(2)
		delete(left.Parts, name)
		wantEqualBytes(t, mustLoad(t, s, key), left)
	}
}

func testEmptyData(t *testing.T, s store.Checkpoints) {
	mustSave(t, s, demo, 0, store.Delta{Put: []store.Part{
		{Name: "nil", Data: nil},
		{Name: "empty", Data: []byte{}},
		{Name: "full", Data: []byte("x")},
	}})
	mustSave(t, s, demo, 1, parts{"full": ""}.delta())
	checkpoint := mustLoad(t, s, demo)
	for _, name := range []string{"nil", "empty", "full"} {
		if data, ok := checkpoint.Parts[name]; !ok || len(data) != 0 {
			t.Errorf("part %q: %q, exists: %t; want an empty part", name, data, ok)
		}
	}
	if data, ok := checkpoint.Parts["missing"]; ok {
		t.Errorf("an unknown part exists: %q", data)
	}
	mustSave(t, s, demo, 2, parts{}.delta("nil", "empty"))
	wantStored(t, s, demo, parts{"full": ""}.checkpoint(3))
}

func testAliasIn(t *testing.T, s store.Checkpoints) {
	want := parts{"a": "aaaa", "b": "bbbb"}
	mustSave(t, s, demo, 0, parts{"gone": "x"}.delta())
	delta := store.Delta{
		Put:    []store.Part{{Name: "a", Data: []byte("aaaa")}, {Name: "b", Data: []byte("bbbb")}},
		Delete: []string{"gone"},
	}
	mustSave(t, s, demo, 1, delta)
	if got := string(delta.Put[0].Data) + string(delta.Put[1].Data) + delta.Delete[0]; got != "aaaabbbbgone" {
		t.Fatalf("Save changed its argument: %q", got)
	}
	// the lists belong to the caller; only the bytes do not
	delta.Put[0], delta.Delete[0] = store.Part{Name: "z"}, "a"
	wantStored(t, s, demo, want.checkpoint(2))
}

func testAliasOut(t *testing.T, s store.Checkpoints) {
	want := parts{"a": "aaaa", "b": "bbbb", "c": "", "d": "dddd"}
	mustSave(t, s, demo, 0, want.delta())

	first, second := mustLoad(t, s, demo), mustLoad(t, s, demo)
	for name := range first.Parts { // appending to one part must not affect another
		_ = append(first.Parts[name], "overrun"...)
		_ = append(second.Parts[name], "OVERRUN"...)
	}
	wantEqual(t, first, want.checkpoint(1))
	first.Parts["b"] = nil // the map belongs to the caller
	delete(first.Parts, "d")
	first.Parts["e"] = []byte("new")

	wantEqual(t, second, want.checkpoint(1))
	wantStored(t, s, demo, want.checkpoint(1))
	mustSave(t, s, demo, 1, parts{"a": "AAAA", "b": "longer than before"}.delta("d"))
	wantEqual(t, second, want.checkpoint(1)) // a later save does not change earlier results
}

func testBigParts(t *testing.T, s store.Checkpoints) {
	const size = 8 << 20
	fill := func(seed byte, size int) string {
		data := make([]byte, size)
		for i := range data {
			data[i] = seed + byte(i) + byte(i>>8)*7 + byte(i>>16)*13
		}
		return string(data)
	}
	want := parts{"big": fill(1, size), "bigger": fill(2, size+1), "small": "s"}
	mustSave(t, s, demo, 0, want.delta())
	wantEqualBytes(t, mustLoad(t, s, demo), want.checkpoint(1))

	want["big"], want["small"] = "shrunk", fill(3, size) // they swap sizes
	mustSave(t, s, demo, 1, parts{"big": want["big"], "small": want["small"]}.delta())
	wantEqualBytes(t, mustLoad(t, s, demo), want.checkpoint(2))
}

func testManyParts(t *testing.T, s store.Checkpoints) {
	const n = 2000
	want, even, gone := parts{}, parts{}, []string(nil)
	for i := range n {
		name := fmt.Sprintf("part/%d", i)
		want[name] = fmt.Sprint("data ", i)
		if i%2 == 0 {
			even[name] = fmt.Sprint("changed ", i)
		} else {
			gone = append(gone, name)
		}
	}
	mustSave(t, s, demo, 0, want.delta())
	wantEqualBytes(t, mustLoad(t, s, demo), want.checkpoint(1))
	mustSave(t, s, demo, 1, even.delta(gone...))
	wantEqualBytes(t, mustLoad(t, s, demo), even.checkpoint(2))
}

// wantEqualBytes is wantEqual for data that is too big to print.
func wantEqualBytes(t *testing.T, got, want store.Checkpoint) {
	t.Helper()
	if got.Version != want.Version || len(got.Parts) != len(want.Parts) {
		t.Fatalf("version %d with %d parts; want version %d with %d parts", got.Version, len(got.Parts), want.Version, len(want.Parts))
	}
	for name, data := range want.Parts {
		if stored, ok := got.Parts[name]; !ok || !bytes.Equal(stored, data) {
			t.Fatalf("part %q has %d bytes (there: %t); want other %d bytes", name, len(stored), ok, len(data))
		}
	}
}

// testNames checks that runs are found by names with any bytes.
func testNames(t *testing.T, h *storeTester) {
	next := func(n int) string { return unusualStrings[(n+1)%len(unusualStrings)] }
	for n, text := range unusualStrings {
		h.runWithNames(text, text, next(n))
		h.runWithNames("", text, next(n))
	}
	for n, text := range unusualStrings {
		other := next(n)
		run, err := h.store.Get(h.ctx(), text, text)
		if err != nil || run.ID != other || run.Account != text || run.StateKey != text || run.Provider != text || run.Graph != other || run.Owner != text || run.Fence != 2 {
			t.Errorf("run %+v, %v", run, err)
		}
		history, err := h.store.History(h.ctx(), text, other)
		if err != nil || len(history.Resumes) != 1 || len(history.Effects) != 1 || len(history.Events) != 6 || len(history.Interrupts) != 1 {
			t.Fatalf("history %+v, %v", history, err)
		}
		if history.Resumes[0].Actor != other || history.Resumes[0].ID != text || history.Effects[0].Interrupt != text || history.Events[3].Interrupt != text {
			t.Errorf("history %+v", history)
		}
		if i := history.Interrupts[0]; i.ID != text || i.DecidedBy != other || i.ResumeID != text || i.ApprovedDigest != text || i.DecidedVia != text || i.ShownDigest != other || i.Address != other || i.Kind != text {
			t.Errorf("interrupt %+v", i)
		}
		listed, err := h.store.List(h.ctx(), text, store.RunFilter{Provider: text, Graph: other, Status: []store.Status{store.StatusRunning}})
		if err != nil || len(listed) != 1 || listed[0].ID != other {
			t.Errorf("listed are %+v, %v", listed, err)
		}
		receipt, err := h.store.Receipt(h.ctx(), text, other, text)
		if err != nil || receipt.Run != other || receipt.Result != store.ResultAccepted {
			t.Errorf("receipt %+v, %v", receipt, err)
		}
	}
}

// testLongNames checks names of any length. An index entry of PostgreSQL has at most 2704
// incompressible bytes.
func testLongNames(t *testing.T, h *storeTester) {
	random := make([]byte, 20_000)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	a, b := string(random[1:]), string(random)
	h.runWithNames(a, a, b)
	h.runWithNames(b, a, b)
	if runs, err := h.store.List(h.ctx(), a, store.RunFilter{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if history, err := h.store.History(h.ctx(), a, b); err != nil || len(history.Events) != 6 {
		t.Errorf("history %v, %v", len(history.Events), err)
	}
	if events, _, err := h.store.Feed(h.ctx(), b, "", 0); err != nil || len(events) != 6 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if _, err := h.store.PutIfAbsent(h.ctx(), a, []byte("x")); err != nil {
		t.Error(err)
	}
}

// runWithNames takes a run with these names through every call.
func (h *storeTester) runWithNames(account, a, b string) {
	h.t.Helper()
	lease, err := h.store.Create(h.ctx(), store.NewRun{Account: account, ID: b, StateKey: a, Provider: a, Graph: b, InputDigest: b, Owner: a, Lease: leaseDuration})
	h.must(err)
	h.endExecution(lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: []store.NewInterrupt{{ID: a, Address: b, Kind: a, ShownDigest: b, ActionDigest: a}}})
	h.wantResult(store.Decision{
		Account: account, Run: b, ResumeID: a, Actor: b, BodyDigest: a, Via: a, Answers: []store.Answer{{Interrupt: a, Verdict: store.VerdictApprove, ShownDigest: b, ApprovedDigest: a}},
	}, store.ResultAccepted)
	work, err := h.store.Claim(h.ctx(), store.Claim{Owner: a, Lease: leaseDuration, Account: account, Run: b})
	h.must(err)
	effect := store.NewEffect{Interrupt: a, Attempt: 1, ActionDigest: a, IdempotencyKey: b}
	line, begun, err := h.store.BeginEffect(h.ctx(), work.Lease, effect)
	if err != nil || !begun || !reflect.DeepEqual(line.NewEffect, effect) {
		h.t.Fatal(line, begun, err)
	}
	h.must(h.store.EndEffect(h.ctx(), store.EffectEnd{Account: account, Interrupt: a, Attempt: 1, State: store.EffectFailed, Error: a}))
	line, begun, err = h.store.BeginEffect(h.ctx(), work.Lease, effect)
	if err != nil || begun || line.Error != a || !reflect.DeepEqual(line.NewEffect, effect) {
		h.t.Fatal(line, begun, err)
	}
}
