package fermata_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fermata-go/fermata"
)

func TestOutcome_HasItsStatusAndItsFieldsInJSON(t *testing.T) {
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
				t.Errorf("it is written as\n%s, not\n%s", data, c.json)
			}
			back, err := fermata.UnmarshalOutcome(data)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, c.outcome) {
				t.Errorf("it came back as %#v", back)
			}
		})
	}
}

func TestOutcome_RefusesWhatBelongsToAnotherStatus(t *testing.T) {
	for name, text := range map[string]string{
		"an interrupt of a completed run": `{"status":"completed","runId":"r","interrupt":{"kind":"k"}}`,
		"an error of a waiting one":       `{"status":"needs_input","runId":"r","stateKey":"s","interrupts":[],"error":"x"}`,
		"an unknown status":               `{"status":"active","runId":"r"}`,
		"no status":                       `{"runId":"r"}`,
		"a status in another case":        `{"status":"completed","Status":"error","runId":"r"}`,
		"two values":                      `{"status":"completed","runId":"r"} {}`,
	} {
		if got, err := fermata.UnmarshalOutcome([]byte(text)); err == nil {
			t.Errorf("%s was taken for %#v", name, got)
		}
	}
}
