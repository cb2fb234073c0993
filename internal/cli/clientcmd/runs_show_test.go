package clientcmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// The last line of show names the commands that can decide this request, and no others.
func TestShow_HintFollowsTheRequest(t *testing.T) {
	doubt, err := json.Marshal(fermata.InDoubtRequest{Action: "pay", Key: "k-17", Error: "i/o timeout"})
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]api.Request{
		"\nfermata answer int_1":                                {Kind: "name", AnswerSchema: json.RawMessage(`{"type":"string"}`)},
		"\nfermata approve int_1\tApprove":                      {Kind: "hold", Presentation: &api.Presentation{Shape: "hold", Actions: []api.Action{{Name: "approve", Label: "Approve", Answer: json.RawMessage(`{"verb":"approve"}`)}}}},
		"\nfermata reject int_1 --reason TEXT\tReject":          {Kind: "hold", Presentation: &api.Presentation{Shape: "hold", Actions: []api.Action{{Name: "reject", Label: "Reject…"}}}},
		"\nfermata answer int_1 '{\"choice\":\"02:00\"}'\tLast": {Kind: "choice", Presentation: &api.Presentation{Shape: "choice", Actions: []api.Action{{Name: "respond", Label: "Last night", Answer: json.RawMessage(`{"choice":"02:00"}`)}}}},
		"dataops is held before pay\n\nrequest":                 {Kind: "hold", Presentation: &api.Presentation{Sentence: "dataops is held before pay"}},
		`fermata answer int_1 '{"happened":false}'`:             {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
		`but the call returned the error "i/o timeout". It is`:  {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
	} {
		r.ID, r.State = "int_1", "pending"
		var out bytes.Buffer
		printRequest(&out, r)
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
