package clientcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
)

// A command sends the same call as the JSON API and the forms of the inbox, for which
// internal/web.TestRequest_FormAndAPIAreTheSame compares effect and audit record. So it has the
// same effect.
func TestCommands_SendTheCallOfTheAPI(t *testing.T) {
	question, err := json.Marshal(fermata.ApprovalRequest{Action: "refund", Args: json.RawMessage(`{"amount":120}`)})
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]api.Request{
		"approval": {Kind: "approval", Data: question, AnswerSchema: fermata.Approval.HumanAnswerSchema(), Presentation: &api.Presentation{Shape: "approval", Title: "Refund"}},
		"hold":     {Kind: "hold", Data: json.RawMessage(`{"table":"users"}`), Presentation: &api.Presentation{Shape: "hold", Title: "Drop"}},
		"gate":     {Kind: "approval-gate", Data: json.RawMessage(`{"gate":"g"}`), AnswerSchema: json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"}}}`), Presentation: &api.Presentation{Shape: "gate", Title: "Review"}},
		"review":   {Kind: "content-review", Data: json.RawMessage(`{}`), AnswerSchema: json.RawMessage(`{"type":"object","properties":{"action":{"enum":["approve","reject"]},"feedback":{"type":"string"}}}`), Presentation: &api.Presentation{Shape: "review", Title: "Text"}},
	}
	type runner interface {
		Run(context.Context, *cli.Program) error
	}
	var server *httptest.Server
	decide := func() decideFlags {
		return decideFlags{Remote: cli.Remote{URL: server.URL, Token: "key"}, ID: "int_1", ResumeID: "r1", Shown: "d1"}
	}
	act := func() actionFlags { return actionFlags{Remote: cli.Remote{URL: server.URL, Token: "key"}, ID: "int_1"} }
	for name, c := range map[string]struct {
		shape   string
		command func() runner
		path    string
		body    string // of a decision: its answer
	}{
		"approve": {"approval", func() runner { return &ApproveCommand{decideFlags: decide()} }, "decision", `{"verb":"approve"}`},
		"edit":    {"approval", func() runner { return &ApproveCommand{decideFlags: decide(), Args: `{"amount":80}`} }, "decision", `{"args":{"amount":80},"verb":"approve"}`},
		"edit with a code": {"approval", func() runner {
			return &ApproveCommand{decideFlags: decide(), Args: `{"amount":80}`, Code: []string{"typo"}}
		}, "decision", `{"args":{"amount":80},"codes":["typo"],"verb":"approve"}`},
		"reject": {"approval", func() runner {
			return &RejectCommand{decideFlags: decide(), Reason: "too much", Code: []string{"too_risky"}}
		}, "decision", `{"codes":["too_risky"],"reason":"too much","verb":"reject"}`},
		"approve a hold":   {"hold", func() runner { return &ApproveCommand{decideFlags: decide()} }, "decision", `{"verb":"approve"}`},
		"edit a hold":      {"hold", func() runner { return &ApproveCommand{decideFlags: decide(), Args: `{"table":"logs"}`} }, "decision", `{"args":{"table":"logs"},"verb":"approve"}`},
		"reject a hold":    {"hold", func() runner { return &RejectCommand{decideFlags: decide(), Reason: "too early"} }, "decision", `{"reason":"too early","verb":"reject"}`},
		"approve a gate":   {"gate", func() runner { return &ApproveCommand{decideFlags: decide(), Reason: "fine"} }, "decision", `{"reason":"fine","verb":"approve"}`},
		"reject a gate":    {"gate", func() runner { return &RejectCommand{decideFlags: decide(), Reason: "no"} }, "decision", `{"reason":"no","verb":"reject"}`},
		"approve a review": {"review", func() runner { return &ApproveCommand{decideFlags: decide()} }, "decision", `{"action":"approve"}`},
		"reject a review":  {"review", func() runner { return &RejectCommand{decideFlags: decide(), Reason: "dull"} }, "decision", `{"action":"reject","feedback":"dull"}`},
		"answer":           {"review", func() runner { return &AnswerCommand{decideFlags: decide(), Answer: `{"action":"approve"}`} }, "decision", `{"action":"approve"}`},
		"comment":          {"approval", func() runner { return &CommentCommand{actionFlags: act(), Text: "looks fine"} }, "comment", `{"text":"looks fine"}`},
		"clarify":          {"approval", func() runner { return &ClarifyCommand{actionFlags: act(), Question: "Why 120?"} }, "clarify", `{"text":"Why 120?"}`},
		"claim":            {"approval", func() runner { return &ClaimCommand{act()} }, "claim", `{}`},
		"release":          {"approval", func() runner { return &ReleaseCommand{act()} }, "release", `{}`},
		"undo":             {"approval", func() runner { return &UndoCommand{act()} }, "undo", `{}`},
		"delegate":         {"approval", func() runner { return &DelegateCommand{actionFlags: act(), To: "bob"} }, "delegate", `{"to":"bob"}`},
		"escalate":         {"approval", func() runner { return &EscalateCommand{actionFlags: act(), Reason: "urgent"} }, "escalate", `{"text":"urgent"}`},
		"abandon":          {"approval", func() runner { return &AbandonCommand{actionFlags: act(), Reason: "not needed"} }, "abandon", `{"text":"not needed"}`},
		"snooze": {"approval", func() runner {
			return &SnoozeCommand{actionFlags: act(), untilFlag: untilFlag{Until: "2999-01-01T00:00:00Z"}}
		}, "snooze", `{"until":"2999-01-01T00:00:00Z"}`},
		"extend": {"approval", func() runner {
			return &ExtendCommand{actionFlags: act(), untilFlag: untilFlag{Until: "2999-01-01T00:00:00Z"}}
		}, "extend", `{"until":"2999-01-01T00:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var reply any = shapes[c.shape]
				if r.Method == http.MethodPost && path.Base(r.URL.Path) != "view" {
					body, _ := io.ReadAll(r.Body)
					var sent api.Decide
					if path.Base(r.URL.Path) == "decision" && json.Unmarshal(body, &sent) == nil {
						if sent.ResumeID != "r1" || sent.Shown != "d1" {
							t.Errorf("sent %s", body)
						}
						body, reply = sent.Answer, map[string]any{"status": "completed", "runId": "run_1"}
					}
					var compact bytes.Buffer
					if err := json.Compact(&compact, body); err != nil {
						t.Error(err)
					}
					calls = append(calls, path.Base(r.URL.Path)+" "+compact.String())
				} else {
					request := shapes[c.shape]
					request.ID, request.State, request.Shown = "int_1", "pending", "d1"
					reply = request
				}
				if err := json.NewEncoder(w).Encode(reply); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			if err := c.command().Run(t.Context(), &cli.Program{Out: io.Discard, Err: io.Discard}); err != nil {
				t.Fatal(err)
			}
			if len(calls) != 1 || calls[0] != c.path+" "+c.body {
				t.Errorf("sent %q, want %q", calls, c.path+" "+c.body)
			}
		})
	}
}
