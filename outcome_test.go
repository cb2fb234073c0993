package fermata_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
)

func TestOutcome_JSONHasStatusAndFields(t *testing.T) {
	question := fermata.OpenInterrupt{
		ID: "int_1", Address: fermata.Address{{Type: "node", ID: "review"}},
		Envelope: fermata.Envelope{Kind: "content-review", Data: json.RawMessage(`{"draft":"x"}`)},
	}
	cases := map[string]struct {
		outcome fermata.Outcome
		json    string
	}{
		"completed": {
			fermata.Completed{Run: "r", Content: "done", Usage: &fermata.Usage{InputTokens: 3}},
			`{"status":"completed","runId":"r","content":"done","usage":{"inputTokens":3,"outputTokens":0}}`,
		},
		"needs input": {
			fermata.NeedsInput{Run: "r", StateKey: "demo-1", Interrupts: []fermata.OpenInterrupt{question}},
			`{"status":"needs_input","interrupt":{"kind":"content-review","data":{"draft":"x"}},"runId":"r","stateKey":"demo-1",` +
				`"interrupts":[{"id":"int_1","address":"node:review","kind":"content-review","data":{"draft":"x"}}]}`,
		},
		"failed": {
			fermata.Failed{Run: "r", Code: "node_failed", Message: "no"},
			`{"status":"error","runId":"r","error":"node_failed","message":"no"}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(c.outcome)
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != c.json {
				t.Errorf("encoded as\n%s, not\n%s", data, c.json)
			}
			back, err := fermata.UnmarshalOutcome(data)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, c.outcome) {
				t.Errorf("decoded as %#v", back)
			}
		})
	}
}

func TestUnmarshalOutcome_FieldOfOtherStatusReturnsError(t *testing.T) {
	for name, text := range map[string]string{
		"an interrupt of a completed run": `{"status":"completed","runId":"r","interrupt":{"kind":"k"}}`,
		"an error of a waiting one":       `{"status":"needs_input","runId":"r","stateKey":"s","interrupts":[],"error":"x"}`,
		"an unknown status":               `{"status":"active","runId":"r"}`,
		"no status":                       `{"runId":"r"}`,
		"a status in another case":        `{"status":"completed","Status":"error","runId":"r"}`,
		"two values":                      `{"status":"completed","runId":"r"} {}`,
		"a run twice":                     `{"status":"completed","runId":"r","runId":"s"}`,
		"a run in another case":           `{"status":"completed","runID":"r"}`,
		"a duplicate member":              `{"status":"needs_input","runId":"r","stateKey":"s","interrupts":[{"id":"i","kind":"k","data":{"a":1,"a":2}}]}`,
	} {
		if got, err := fermata.UnmarshalOutcome([]byte(text)); err == nil {
			t.Errorf("%s was decoded as %#v", name, got)
		}
	}
}

// Regression: an outcome could not be decoded if a map in it had two keys that differ only in case,
// or a number that is too large for a float.
func TestUnmarshalOutcome_ReadsAnyOutput(t *testing.T) {
	for _, output := range []string{`{"ETag":"1","etag":"2"}`, `{"n":1e400}`, strings.Repeat("[", 150) + strings.Repeat("]", 150), `null`} {
		data, err := json.Marshal(fermata.Completed{Run: "r", Output: json.RawMessage(output), FinishReason: "stop"})
		if err != nil {
			t.Fatal(err)
		}
		back, err := fermata.UnmarshalOutcome(data)
		if done, ok := back.(fermata.Completed); err != nil || !ok || string(done.Output) != output || done.Run != "r" || done.FinishReason != "stop" {
			t.Errorf("%.30s was decoded as %+v, %v", output, back, err)
		}
	}
}
