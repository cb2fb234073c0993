package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/tool"
)

func TestWrappers_OfNoToolSayWhatToDo(t *testing.T) {
	type args struct{ N int }
	for name, wrap := range map[string]func(){
		"Approve":      func() { tool.Approve(nil) },
		"Review":       func() { tool.Review(nil) },
		"Guard":        func() { tool.Guard(nil, nil) },
		"Respond":      func() { tool.Respond(nil) },
		"ReportErrors": func() { tool.ReportErrors(nil) },
		"FollowUp":     func() { tool.FollowUp[args](nil, nil) },
		"use tool_test.args": func() {
			tool.New("pay", "Pays.", func(context.Context, *args) (string, error) { return "", nil })
		},
	} {
		message := func() (message string) {
			defer func() { message = fmt.Sprint(recover()) }()
			wrap()
			return ""
		}()
		if !strings.Contains(message, name) || !strings.Contains(message, "the tool is nil: pass the result of New") && !strings.Contains(message, "use ") {
			t.Errorf("%s: got %q", name, message)
		}
	}
}

func TestCall_IntegerWithAFractionOfZeroIsAccepted(t *testing.T) {
	pay := tool.New("pay", "Pays.", func(_ context.Context, in struct{ Cents int }) (int, error) { return in.Cents, nil })
	if got, err := pay.Call(t.Context(), json.RawMessage(`{"Cents":1000.0}`)); err != nil || got.Failed || got.Text != "1000" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := pay.Call(t.Context(), json.RawMessage(`{"Cents":1000.5}`)); err != nil || !got.Failed {
		t.Errorf("got %+v, %v", got, err)
	}
}
