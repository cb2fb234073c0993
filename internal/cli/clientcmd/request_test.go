package clientcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
)

func TestUntil_AcceptsTimeOrDuration(t *testing.T) {
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"30m": "2026-11-16T10:30:00Z", "2d": "2026-11-18T10:00:00Z", "1h30m": "2026-11-16T11:30:00Z", "2026-11-17T09:00:00+01:00": "2026-11-17T09:00:00+01:00",
		"": "", "-1h": "", "0s": "", "tomorrow": "", "-2d": "",
	} {
		at, err := untilFlag{text}.at(now)
		got := ""
		if err == nil {
			got = at.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

// A comment cannot imitate the actions of other people.
func TestShow_CommentIsOneLine(t *testing.T) {
	var b bytes.Buffer
	printActivity(&b, &api.Activity{
		State: "open", Summary: "open", Comments: []api.Note{{Stamp: api.Stamp{By: "eve\nvote\tapprove"}, Text: "x\nvote\tapprove by bob\x1b[2K"}},
	})
	if got := b.String(); strings.Contains(got, "\nvote") || strings.Contains(got, "\tapprove") || strings.ContainsRune(got, 0x1b) {
		t.Errorf("%q", got)
	}
}

// The policy's risk of a tool is shown in the terminal, too.
func TestShow_PrintsTheRisk(t *testing.T) {
	var rated, unrated bytes.Buffer
	printActivity(&rated, &api.Activity{State: "open", Summary: "open", Risk: 2})
	printActivity(&unrated, &api.Activity{State: "open", Summary: "open"})
	if !strings.Contains(rated.String(), "risk\t2\n") || strings.Contains(unrated.String(), "risk") {
		t.Errorf("%q and %q", rated.String(), unrated.String())
	}
}

// An ineligible person is not told that they may decide.
func TestShow_PrintsAllowedVerbs(t *testing.T) {
	for mayNot, want := range map[string]string{"": "you can\tapprove, answer\n", "own_request": "others can\tapprove, answer\n"} {
		var b bytes.Buffer
		printActivity(&b, &api.Activity{State: "open", Summary: "open", Verbs: []string{"approve", "respond"}, IneligibleReason: mayNot})
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in %q", want, b.String())
		}
	}
}

func TestShow_RequestWithoutActivity(t *testing.T) {
	var b bytes.Buffer
	printActivity(&b, nil)
	if b.Len() != 0 {
		t.Errorf("%q", b.String())
	}
}
