package powerloss

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// images loses power many times at the same moment.
func images(d *Disk, moment int) []Image {
	var all []Image
	for seed := range uint64(300) {
		all = append(all, d.LosePower(moment, RandomSurvival(rand.New(rand.NewPCG(seed, 0)))))
	}
	return all
}

// seen counts the possible contents of a file afterwards; "gone" if it does not exist.
func seen(d *Disk, moment int, name string) map[string]int {
	all := map[string]int{}
	for _, image := range images(d, moment) {
		text := "gone"
		if data, ok := image[name]; ok {
			text = string(data)
		}
		all[text]++
	}
	return all
}

func page(letter string) []byte { return bytes.Repeat([]byte(letter), 4096) }

func kept(text ...string) *Disk {
	image := Image{}
	for n := 0; n < len(text); n += 2 {
		image[text[n]] = []byte(text[n+1])
	}
	return NewDisk(image)
}

func TestLosePower_SyncedDataSurvives(t *testing.T) {
	d := NewDisk(nil)
	file := d.Open("f")
	d.Write(file, 0, page("a"))
	d.Write(file, 4096, page("b"))
	d.Truncate(file, 5000)
	d.Sync(file)
	d.SyncNames()
	want := append(page("a"), page("b")[:904]...)
	for _, image := range images(d, d.Changes()) {
		if !bytes.Equal(image["f"], want) {
			t.Fatalf("%d bytes, %.10q", len(image["f"]), image["f"])
		}
	}
}

func TestLosePower_UnsyncedDataMaySurvivePartly(t *testing.T) {
	d := kept("f", string(page("a")))
	d.Write(d.Open("f"), 0, page("b"))
	var old, fresh, mixed, spoilt int
	for _, image := range images(d, d.Changes()) {
		as, bs := bytes.Count(image["f"], []byte("a")), bytes.Count(image["f"], []byte("b"))
		switch {
		case as == 4096:
			old++
		case bs == 4096:
			fresh++
		case as+bs == 4096 && as%512 == 0:
			mixed++
		default:
			spoilt++
		}
	}
	if old == 0 || fresh == 0 || mixed == 0 || spoilt == 0 {
		t.Errorf("old %d, new %d, mixed %d, corrupt %d; want some of each", old, fresh, mixed, spoilt)
	}
}

// Sectors are aligned to the disk, not to the write.
func TestLosePower_SectorsAreAlignedToTheDisk(t *testing.T) {
	d := kept("f", string(page("a")))
	d.Write(d.Open("f"), 500, page("b")[:100])
	seen := map[int]bool{}
	for seed := range uint64(100) {
		data := d.LosePower(d.Changes(), Survival{Rand: rand.New(rand.NewPCG(seed, 0)), Sector: 512, Keep: 0.5})["f"]
		seen[bytes.Count(data, []byte("b"))] = true
	}
	if want := map[int]bool{0: true, 12: true, 88: true, 100: true}; !maps.Equal(seen, want) {
		t.Errorf("bytes kept: %v; want %v", seen, want)
	}
}

func TestLosePower_WritesMayBeReordered(t *testing.T) {
	d := kept("f", "..")
	file := d.Open("f")
	d.Write(file, 0, []byte("1"))
	d.Write(file, 1, []byte("2"))
	if all := seen(d, d.Changes(), "f"); all["12"] == 0 || all["1."] == 0 || all[".2"] == 0 || all[".."] == 0 {
		t.Errorf("%v; want all four", all)
	}
}

func TestLosePower_SizeMaySurviveWithoutData(t *testing.T) {
	d := kept("f", "")
	d.Write(d.Open("f"), 0, []byte("x"))
	if all := seen(d, d.Changes(), "f"); all["x"] == 0 || all[""] == 0 || all["\x00"] == 0 {
		t.Errorf("%v; want old, new and zeros", all)
	}
}

func TestLosePower_TruncateMayBeUndone(t *testing.T) {
	d := kept("f", "long")
	file := d.Open("f")
	d.Truncate(file, 1)
	if all := seen(d, d.Changes(), "f"); all["l"] == 0 || all["long"] == 0 || len(all) != 2 {
		t.Errorf("%v; want l and long", all)
	}
	d.Truncate(file, 3)
	d.Sync(file)
	if all := seen(d, d.Changes(), "f"); all["l\x00\x00"] == 0 || len(all) != 1 {
		t.Errorf("%v; want zeros where it was cut", all)
	}
}

// Linux treats data that a failed sync could not write as written.
func TestLosePower_FailedSyncIsNotRepairedByTheNext(t *testing.T) {
	d := kept("f", "a")
	file := d.Open("f")
	d.Write(file, 0, []byte("b"))
	d.SyncFailed(file)
	d.Sync(file)
	if all := seen(d, d.Changes(), "f"); all["a"] == 0 || all["b"] == 0 {
		t.Errorf("%v; want a and b", all)
	}
	d.Write(file, 0, []byte("b"))
	d.Sync(file)
	if all := seen(d, d.Changes(), "f"); all["b"] == 0 || len(all) != 1 {
		t.Errorf("%v; want b, which was written again", all)
	}
}

func TestLosePower_NamesSurviveOnlyAfterSyncNames(t *testing.T) {
	d := kept("old", "o")
	file := d.Open("new")
	d.Write(file, 0, []byte("n"))
	d.Sync(file)
	d.Delete("old")
	if all := seen(d, d.Changes(), "new"); all["n"] == 0 || all["gone"] == 0 || len(all) != 2 {
		t.Errorf("new is %v; want n and gone", all)
	}
	if all := seen(d, d.Changes(), "old"); all["o"] == 0 || all["gone"] == 0 || len(all) != 2 {
		t.Errorf("old is %v; want o and gone", all)
	}
	d.SyncNames()
	if all := seen(d, d.Changes(), "new"); all["n"] == 0 || len(all) != 1 {
		t.Errorf("new is %v; want n", all)
	}
	if all := seen(d, d.Changes(), "old"); all["gone"] == 0 || len(all) != 1 {
		t.Errorf("old is %v; want gone", all)
	}
}

func TestLosePower_ReusedNameMayNameTheFirstFile(t *testing.T) {
	d := kept("f", "first")
	d.Delete("f")
	file := d.Open("f")
	d.Write(file, 0, []byte("second"))
	d.Sync(file)
	if all := seen(d, d.Changes(), "f"); all["first"] == 0 || all["second"] == 0 || all["gone"] == 0 {
		t.Errorf("%v; want first, second and gone", all)
	}
}

func TestLosePower_IgnoresLaterChanges(t *testing.T) {
	d := kept("f", "a")
	file := d.Open("f")
	moment := d.Changes()
	data := []byte("b")
	d.Write(file, 0, data)
	data[0] = 'c' // the caller may reuse its buffer
	d.Sync(file)
	if all := seen(d, moment, "f"); all["a"] == 0 || len(all) != 1 {
		t.Errorf("before the write: %v; want a", all)
	}
	if all := seen(d, d.Changes(), "f"); all["b"] == 0 || len(all) != 1 {
		t.Errorf("at the end: %v; want b", all)
	}
	if all := seen(d, moment, "f"); all["a"] == 0 || len(all) != 1 {
		t.Errorf("before the write, again: %v; want a", all)
	}
}

func TestOperation_OneFails(t *testing.T) {
	d := NewDisk(nil)
	d.SetFault(Fault{At: 2, Kinds: []Kind{Writing, Syncing}, Err: io.ErrShortWrite})
	for n, step := range []struct {
		kind  Kind
		fails bool
	}{{Reading, false}, {Writing, false}, {Reading, false}, {Syncing, true}, {Syncing, false}, {Writing, false}} {
		if err := d.Operation(step.kind); errors.Is(err, io.ErrShortWrite) != step.fails || err != nil != step.fails {
			t.Errorf("operation %d: %v", n, err)
		}
		if met := n >= 3; d.FaultHit() != met {
			t.Errorf("after operation %d: Met is %v", n, !met)
		}
	}
	d.SetFault(Fault{At: 1, Kinds: Kinds(), Err: io.EOF})
	if d.FaultHit() {
		t.Error("FaultHit before the fault")
	}
	d.WithoutFaults(func() {
		if err := d.Operation(Writing); err != nil {
			t.Errorf("aside: %v", err)
		}
	})
	if err := d.Operation(Mapping); !errors.Is(err, io.EOF) {
		t.Errorf("%v; want EOF", err)
	}
}

func TestImage_Save(t *testing.T) {
	dir := t.TempDir()
	if err := (Image{"a": []byte("1"), "b": nil}).Save(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1", "b": ""} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
