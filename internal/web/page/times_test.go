package page

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/texts"
)

func TestLocalProblem_TimesAreInTheViewersZone(t *testing.T) {
	v := &Visit{Texts: texts.English, Zone: time.FixedZone("UTC+2", 2*60*60), Now: time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC)}
	sent := &api.Problem{
		Detail: "the snooze must end before the deadline, 2026-11-19 12:44 UTC.",
		Fields: []api.Field{{Message: "effective at 2026-11-19 22:30:05 UTC, not on 2026-13-45 12:44 UTC"}},
	}
	got := v.LocalProblem(sent)
	if want := "the snooze must end before the deadline, 14:44."; got.Detail != want {
		t.Errorf("%q, want %q", got.Detail, want)
	}
	if want := "effective at 20 Nov 00:30, not on 2026-13-45 12:44 UTC"; got.Fields[0].Message != want {
		t.Errorf("%q, want %q", got.Fields[0].Message, want)
	}
	if sent.Fields[0].Message == got.Fields[0].Message {
		t.Error("the problem itself was changed")
	}
}
