package fermata_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata"
)

func TestAddress_PrintsAndParses(t *testing.T) {
	for _, test := range []struct {
		address fermata.Address
		text    string
	}{
		{nil, ""},
		{fermata.Address{{Type: "runnable", ID: "my_graph"}, {Type: "node", ID: "tools"}, {Type: "tool", ID: "search", SubID: "call_1"}}, "runnable:my_graph;node:tools;tool:search#call_1"},
		{fermata.Address{{Type: "node", ID: "a;b:c#d%e"}}, "node:a%3Bb%3Ac%23d%25e"},
		{fermata.Address{{Type: "node", ID: "ünï 🎵"}}, "node:ünï 🎵"},
		{fermata.Address{{Type: "node", ID: "\xff\n"}}, "node:%FF%0A"},
		{fermata.Address{{}}, ":"},
		{fermata.Address{{ID: "\ufffd"}}, ":\ufffd"},
	} {
		if got := test.address.String(); got != test.text {
			t.Errorf("got %q, want %q", got, test.text)
		}
		parsed, err := fermata.ParseAddress(test.text)
		if err != nil || !parsed.Equal(test.address) {
			t.Errorf("%q: got %v, %v", test.text, parsed, err)
		}
	}
}

func TestParseAddress_InvalidTextReturnsError(t *testing.T) {
	for _, text := range []string{"node", "node:a;", ";node:a", "node:%4", "node:%zz", "node:%41", "node:%ff", "node:a#", "node:\xff", "node:a\n", "a:b:c", "node:a#b#c"} {
		if address, err := fermata.ParseAddress(text); err == nil {
			t.Errorf("%q was parsed as %#v", text, address)
		}
	}
}

func TestAddress_IsAStringInJSON(t *testing.T) {
	in := map[string]fermata.Address{"at": {{Type: "node", ID: "x"}}}
	data, err := json.Marshal(in)
	if err != nil || string(data) != `{"at":"node:x"}` {
		t.Fatalf("got %s, %v", data, err)
	}
	var out map[string]fermata.Address
	if err := json.Unmarshal(data, &out); err != nil || !out["at"].Equal(in["at"]) {
		t.Fatalf("got %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"at":"node"}`), &out); err == nil {
		t.Error("an invalid address must be rejected")
	}
}

func TestAddress_HasPrefix(t *testing.T) {
	deep, _ := fermata.ParseAddress("runnable:g;node:a;tool:t#1")
	for prefix, want := range map[string]bool{"": true, "runnable:g": true, "runnable:g;node:a;tool:t#1": true, "runnable:h": false, "runnable:g;node:a;tool:t#1;do:x": false} {
		p, err := fermata.ParseAddress(prefix)
		if err != nil || deep.HasPrefix(p) != want {
			t.Errorf("%q: %v, %v", prefix, !want, err)
		}
	}
}

func FuzzAddress_EverySegmentSurvives(f *testing.F) {
	f.Add("node", "a;b", "c#d", "tool", "%", "")
	f.Add("\xff", "\x00", ":", "", "", "")
	f.Fuzz(func(t *testing.T, type1, id1, sub1, type2, id2, sub2 string) {
		address := fermata.Address{{fermata.SegmentType(type1), id1, sub1}, {fermata.SegmentType(type2), id2, sub2}}
		parsed, err := fermata.ParseAddress(address.String())
		if err != nil || !parsed.Equal(address) {
			t.Fatalf("%#v printed as %q, parsed as %#v, %v", address, address.String(), parsed, err)
		}
	})
}

func FuzzParseAddress_OneSpelling(f *testing.F) {
	f.Add("node:a;tool:b#c")
	f.Add("%41:;:")
	f.Fuzz(func(t *testing.T, text string) {
		address, err := fermata.ParseAddress(text)
		if err == nil && address.String() != text {
			t.Fatalf("%q was parsed as %#v, which prints as %q", text, address, address.String())
		}
	})
}
