package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/fermata-go/fermata/store"
)

// nasty are byte strings that some database, driver or encoding is known to trip over.
var nasty = []string{
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
	for _, name := range nasty {
		want[name] = "data of " + name
	}
	for i, text := range nasty {
		key := store.Key{Account: text, Run: nasty[len(nasty)-1-i]}
		mustSave(t, s, key, 0, parts{"is": text}.delta())
		mustSave(t, s, store.Key{Run: text}, 0, want.delta())
	}
	for i, text := range nasty {
		key := store.Key{Account: text, Run: nasty[len(nasty)-1-i]}
		wantStored(t, s, key, parts{"is": text}.at(1))
		wantSame(t, mustLoad(t, s, store.Key{Run: text}), want.at(1))
	}
	for _, name := range nasty { // each is deleted by its exact bytes
		key := store.Key{Run: name}
		mustSave(t, s, key, 1, parts{}.delta(name))
		left := want.at(2)
		delete(left.Parts, name)
		wantSame(t, mustLoad(t, s, key), left)
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
			t.Errorf("part %q: %q, there: %t; want it to be there and empty", name, data, ok)
		}
	}
	if data, ok := checkpoint.Parts["missing"]; ok {
		t.Errorf("a part that nobody put is there: %q", data)
	}
	mustSave(t, s, demo, 2, parts{}.delta("nil", "empty"))
	wantStored(t, s, demo, parts{"full": ""}.at(3))
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
		t.Fatalf("Save changed what it was given: %q", got)
	}
	delta.Put[0], delta.Delete[0] = store.Part{Name: "z"}, "a" // the lists are the caller's, only the bytes are not
	wantStored(t, s, demo, want.at(2))
}

func testAliasOut(t *testing.T, s store.Checkpoints) {
	want := parts{"a": "aaaa", "b": "bbbb", "c": "", "d": "dddd"}
	mustSave(t, s, demo, 0, want.delta())

	first, second := mustLoad(t, s, demo), mustLoad(t, s, demo)
	for name := range first.Parts { // appending to one part must not run into the next, nor into what others append
		_ = append(first.Parts[name], "overrun"...)
		_ = append(second.Parts[name], "OVERRUN"...)
	}
	wantEqual(t, first, want.at(1))
	first.Parts["b"] = nil // the map is the caller's
	delete(first.Parts, "d")
	first.Parts["e"] = []byte("new")

	wantEqual(t, second, want.at(1))
	wantStored(t, s, demo, want.at(1))
	mustSave(t, s, demo, 1, parts{"a": "AAAA", "b": "longer than before"}.delta("d"))
	wantEqual(t, second, want.at(1)) // a later save changes nothing that was handed out before
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
	wantSame(t, mustLoad(t, s, demo), want.at(1))

	want["big"], want["small"] = "shrunk", fill(3, size) // they change places
	mustSave(t, s, demo, 1, parts{"big": want["big"], "small": want["small"]}.delta())
	wantSame(t, mustLoad(t, s, demo), want.at(2))
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
	wantSame(t, mustLoad(t, s, demo), want.at(1))
	mustSave(t, s, demo, 1, even.delta(gone...))
	wantSame(t, mustLoad(t, s, demo), even.at(2))
}

// wantSame is wantEqual for what is too much to print.
func wantSame(t *testing.T, got, want store.Checkpoint) {
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
