package clientcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
)

func TestApprove_ConditionFlags(t *testing.T) {
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		flags conditionFlags
		want  fermata.Conditions
		err   string
	}{
		{conditionFlags{Until: "2h"}, fermata.Conditions{Until: now.Add(2 * time.Hour)}, ""},
		{conditionFlags{Until: "2026-11-19T00:00:00Z"}, fermata.Conditions{Until: now.Add(12 * time.Hour)}, ""},
		{conditionFlags{Until: "soon"}, fermata.Conditions{}, "neither a time"},
		{conditionFlags{OnlyIf: `args.region == "eu"`, UpTo: []string{"amount=100", "order.unit-price=2.5"}},
			fermata.Conditions{OnlyIf: `((args.region == "eu") && (args.amount <= 100)) && (args.order["unit-price"] <= 2.5)`}, ""},
		{conditionFlags{UpTo: []string{"amount=100"}}, fermata.Conditions{OnlyIf: "args.amount <= 100"}, ""},
		{conditionFlags{UpTo: []string{"amount"}}, fermata.Conditions{}, "the name of an argument, = and a number"},
		{conditionFlags{UpTo: []string{"amount=null"}}, fermata.Conditions{}, "the name of an argument, = and a number"},
		{conditionFlags{UpTo: []string{`amount="1"`}}, fermata.Conditions{}, "the name of an argument, = and a number"},
	} {
		got, err := tt.flags.conditions(now)
		if tt.err == "" && (err != nil || got != tt.want) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%+v: %+v, %v", tt.flags, got, err)
		}
	}
}
