package replay_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
)

func TestReadInputs_RoundTrips(t *testing.T) {
	recorded := slices.Clone(inputs[:5])
	recorded[0].History, recorded[0].Effects = map[string]int64{"x": 9007199254740993}, []string{"write"}
	var text strings.Builder
	for _, in := range recorded {
		line, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(string(line) + "\n\n")
	}
	var got []policy.Input
	for in, err := range replay.ReadInputs(strings.NewReader(text.String())) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in)
	}
	if diff := cmp.Diff(recorded, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadInputs_ErrorHasLineNumber(t *testing.T) {
	for _, broken := range []string{`{"tool":"t","tol":"x"}`, `{"tool":"t"`, `{"tool":"t","Tool":"u"}`} {
		count := 0
		var last error
		for _, err := range replay.ReadInputs(strings.NewReader("{\"tool\":\"t\",\"account\":\"a\",\"at\":\"2026-11-16T10:00:00Z\"}\n" + broken + "\n{}\n")) {
			count++
			last = err
		}
		if count != 2 || !errors.Is(last, policy.ErrInput) || !strings.Contains(last.Error(), "line 2") {
			t.Errorf("%s: %d, %v", broken, count, last)
		}
	}
}

func TestSummary_Print(t *testing.T) {
	s, err := replay.Summarize(load(t, before), all(inputs...))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := s.Print(&text); err != nil {
		t.Fatal(err)
	}
	want := "6 inputs\n  deny  1\n  ask   3\n  allow 1\ndecided by\n  default 2\n  night 1\n  small 1\n  staff 1\n1 were invalid\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &text, want)
	}
}
