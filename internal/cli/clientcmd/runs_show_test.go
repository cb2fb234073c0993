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
		"\nfermata answer int_1":                               {Kind: "name", AnswerSchema: json.RawMessage(`{"type":"string"}`)},
		"\nfermata approve|reject|answer int_1":                {Kind: "approval", AnswerSchema: fermata.Approval.HumanAnswerSchema()},
		"\nfermata approve|answer int_1":                       {Kind: "hold", Address: "runnable:g;hold:before#pay"},
		`fermata answer int_1 '{"happened":false}'`:            {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
		`but the call returned the error "i/o timeout". It is`: {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
	} {
		r.ID, r.State = "int_1", "pending"
		var out bytes.Buffer
		printRequest(&out, r)
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
