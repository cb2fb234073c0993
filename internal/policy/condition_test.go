package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

func TestCondition_HoldsOrSaysWhyNot(t *testing.T) {
	rated, err := policy.Load("p.yaml", []byte("default: allow\ntools:\n  refund: {risk: 2}\n"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source string
		set    *policy.Set
		want   string // "" holds, "false", or a part of the error
	}{
		{source: `args.amount <= 100`},
		{source: `args.amount < 100`, want: "false"},
		{source: `req.environment == "prod" && now < timestamp("2026-11-19T00:00:00Z")`},
		{source: `now.local("Asia/Singapore").day == 18`},
		{source: `args.missing > 1`, want: "missing key missing"},
		{source: `req.risk < 3`, want: "unknown"},
		{source: `req.risk < 3`, set: rated},
		{source: `req.risk < 2`, set: rated, want: "false"},
		{source: `"x".matches(args.text)`, want: "literal pattern"},
		{source: `history.count("tool", "1h") < 3`, want: "history is not available"},
		{source: `args.amount`, want: "must be a bool"},
		{source: `agrs.amount < 3`, want: `did you mean "args"`},
		{source: `args.amount <`, want: "Syntax error"},
		{source: strings.Repeat(" ", 10_001), want: "bytes"},
		{source: `args.list.all(x, args.list.all(y, args.list.all(z, x + y + z >= 0)))`, want: "cost limit"},
	} {
		t.Run(tt.source[:min(40, len(tt.source))], func(t *testing.T) {
			list := "[" + strings.Repeat("1,", 99) + "1]"
			in := policy.Input{Tool: "refund", Environment: "prod", Args: json.RawMessage(`{"amount":100,"text":"a","list":` + list + `}`),
				At: time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC), UnknownFields: policy.OptionalFields}
			c, err := policy.CompileCondition(tt.source)
			if err == nil {
				err = c.Check(t.Context(), tt.set, in)
			}
			switch {
			case tt.want == "" && err != nil, tt.want == "false" && !errors.Is(err, policy.ErrConditionFalse),
				tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
