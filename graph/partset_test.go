package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShortNames_AreReadBack(t *testing.T) {
	for _, names := range [][]string{
		{"run", "frame ", "parked node:agent#1;agent:clerk", "parked node:agent#1;agent:clerk;tool:book#1", "do node:agent#1;agent:clerk;model:1"},
		// two places with the same short form
		{"do node:aaaaaaaaaaaaaaaa;x:1", "do node:aaaaaaaaaaaaaaaa;y:1", "do node:bbbbbbbbbbbbbbbb;x:1", "do node:bbbbbbbbbbbbbbbb;y:1"},
		{"do node:aaaaaaaaaaaaaaaaaaa;x:1", "do node:aaaaaaaaaaaaaaaaaaa", "do node:aaaaaaaaaaaaaaaaaaa;x:12"},
	} {
		checkShortNames(t, names)
	}
}

func TestProperty_ShortNamesAreReadBack(t *testing.T) {
	segment := rapid.StringMatching(`(node|tool|agent):[ab%^,0-9]{1,12}(#[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			name := rapid.SampledFrom([]string{"do", "parked", "task"}).Draw(t, "kind") + " "
			for i := range rapid.IntRange(1, 5).Draw(t, "depth") {
				if i > 0 {
					name += ";"
				}
				name += segment.Draw(t, "segment")
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		checkShortNames(t, names)
	})
}

func checkShortNames(t rapid.TB, names []string) {
	t.Helper()
	var in, out nameCompressor
	var seen []string
	for _, name := range names {
		short := in.write(name)
		if slices.Contains(seen, short) {
			t.Errorf("%q exists twice in %q", short, seen)
		}
		seen = append(seen, short)
		if back := out.read(short); back != name {
			t.Errorf("%q was written as %q and read as %q", name, short, back)
		}
	}
}
