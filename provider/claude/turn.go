package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"

	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// turn is one process of the CLI: from its start, or from the decision about the deferred call, to
// the next deferred call or the end.
type turn struct {
	graph   *Graph
	session string
	owner   *execution
	cancel  context.CancelCauseFunc
	prompt  string // of a start

	// resumes says that the process continues with a decision about call.
	resumes bool
	call    call
	decide  func(context.Context) (reply, error)
	answer  json.RawMessage // what the tool of a question returns

	mu       sync.Mutex
	over     bool     // the process has ended; nothing below changes any more
	asked    []string // the ids of the calls that the hook was asked about
	answers  bool     // the tool of the question may return the answer
	performs bool     // the ledger has the call, and its result is not known yet
	deferred *call
	last     *resultLine
}

// reply is the hook's decision about a call.
type reply struct {
	Decision string
	Reason   string
	Input    json.RawMessage // other arguments; nil keeps those of the model
}

// The decisions of the hook protocol.
const (
	decisionAllow = "allow"
	decisionDeny  = "deny"
	decisionDefer = "defer"
)

// Texts for the model about calls that are not made.
const (
	textSibling  = "Another call of this message waits for a person, so this one was not made. If it is still needed, make it again alone, after the result of the other call."
	textSubagent = "This call needs a person, and a subagent cannot wait for one. Make it in the main conversation."
	textTooLarge = "This call needs a person, and its arguments are too large to be shown. Split it into smaller calls."
	textNoTool   = "This tool is not available."
	textUnclear  = "This call needs a person, and its arguments cannot be shown: "
)

// maxShown is the maximum size of the arguments of a call that people see, in bytes. The schema for
// edits repeats their names, and both together must be smaller than limits.MaxDataBytes.
const maxShown = 120 << 10

// hookCall is the input of the hook.
type hookCall struct {
	Event   string          `json:"hook_event_name"`
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"tool_input"`
	ID      string          `json:"tool_use_id"`
	AgentID string          `json:"agent_id"`
}

// hook decides about a call. The first call that needs a person is deferred, which ends the
// process.
func (t *turn) hook(ctx context.Context, c hookCall) reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := slices.Contains(t.asked, c.ID)
	t.asked = append(t.asked, c.ID)
	rule := t.graph.rule(c.Tool)
	switch {
	case t.over:
		return reply{Decision: decisionDeny, Reason: textSibling}
	case t.resumes && c.ID == t.call.ID && !again:
		return t.decided(ctx, c)
	case rule == ruleUnknown:
		return reply{Decision: decisionDeny, Reason: textNoTool}
	case t.deferred != nil && t.deferred.ID == c.ID:
		return reply{Decision: decisionDefer}
	case t.deferred != nil: // the CLI would lose it, or its result
		return reply{Decision: decisionDeny, Reason: textSibling}
	case rule == ruleAllow:
		return reply{Decision: decisionAllow}
	case c.AgentID != "":
		return reply{Decision: decisionDeny, Reason: textSubagent}
	}
	if problem := t.graph.unclear(c); problem != "" {
		return reply{Decision: decisionDeny, Reason: problem}
	}
	t.deferred = &call{ID: c.ID, Tool: c.Tool, Input: c.Input}
	return reply{Decision: decisionDefer}
}

// unclear returns why a call cannot be shown to people; "" if it can.
func (g *Graph) unclear(c hookCall) string {
	if len(c.Input) > maxShown {
		return textTooLarge
	}
	if err := strictjson.CheckValue(c.Input); err != nil {
		return textUnclear + err.Error()
	}
	if q := g.question(c.Tool); q != nil {
		if err := schema.CheckData("arguments", q.Input, c.Input); err != nil {
			return textUnclear + err.Error()
		}
	} else if c.Tool == askUserQuestion {
		if _, err := decodeAsked(c.Input); err != nil {
			return textUnclear + "each question needs its own text and options"
		}
	}
	return ""
}

// decided replies to the call that a person decided about. The arguments must be those that were
// shown.
func (t *turn) decided(ctx context.Context, c hookCall) reply {
	was, err1 := strictjson.Canonical(t.call.Input)
	is, err2 := strictjson.Canonical(c.Input)
	if c.Tool != t.call.Tool || errors.Join(err1, err2) != nil || !bytes.Equal(was, is) {
		t.cancel(&CLIError{Problem: "the resumed call differs from the one that was shown"})
		return reply{Decision: decisionDeny, Reason: textSibling}
	}
	r, err := t.decide(ctx)
	if err != nil {
		t.cancel(err)
		return reply{Decision: decisionDeny, Reason: textSibling}
	}
	t.answers = r.Decision == decisionAllow && t.answer != nil
	return r
}

// question returns the answer for the tool of a question: only for the call that it was given for.
func (t *turn) question(id, kind string) (json.RawMessage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.graph.question(t.call.Tool)
	if !t.answers || t.over || id != t.call.ID || q == nil || q.Kind != kind {
		return nil, false
	}
	return t.answer, true
}

// outputLine is a line of the CLI's output.
type outputLine struct {
	Type    string `json:"type"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	resultLine
}

// resultLine is the last line.
type resultLine struct {
	Subtype    string   `json:"subtype"`
	IsError    bool     `json:"is_error"`
	Result     string   `json:"result"`
	StopReason string   `json:"stop_reason"`
	Errors     []string `json:"errors"`
	Deferred   *struct {
		ID string `json:"id"`
	} `json:"deferred_tool_use"`
	Denials []struct {
		ID string `json:"tool_use_id"`
	} `json:"permission_denials"`
	Usage struct {
		Input        int64 `json:"input_tokens"`
		Output       int64 `json:"output_tokens"`
		CacheRead    int64 `json:"cache_read_input_tokens"`
		CacheCreated int64 `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

// block is a block of a message.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"tool_use_id"`
	IsError bool            `json:"is_error"`
	Content json.RawMessage `json:"content"`
}

// line handles a line of the output. Other lines than these do not matter.
func (t *turn) line(text []byte) {
	var l outputLine
	if json.Unmarshal(text, &l) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch l.Type {
	case "result": // the last one counts
		t.last = &l.resultLine
	case "control_request": // a call that the hook did not decide about
		t.cancel(&CLIError{Problem: "the hook was not asked about a call"})
	case "assistant", "user":
		var blocks []block
		if json.Unmarshal(l.Message.Content, &blocks) != nil {
			return
		}
		for _, b := range blocks {
			t.block(l.Type, b)
		}
	}
}

func (t *turn) block(from string, b block) {
	switch {
	case from == "assistant" && b.Type == "text":
		t.owner.ReportProgress(provider.Token{Address: "runnable:" + t.graph.Name, Agent: Name, Text: b.Text})
	case from == "user" && b.Type == "tool_result" && t.resumes && b.ID == t.call.ID:
		if err := t.owner.finished(context.Background(), t, b.Content, b.IsError); err != nil {
			t.cancel(err)
		}
	}
}

// finish returns why the process cannot be used; nil if it deferred a call or ended the run.
func (t *turn) finish(ctx context.Context, err error, stderr string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	exited, isExit := errors.AsType[*exec.ExitError](err)
	l := t.last
	switch {
	case err != nil && !isExit:
		return &CLIError{"the CLI cannot be started", err}
	case l == nil:
		return &CLIError{fmt.Sprintf("the CLI ended without a result (%v)", exited), errors.New(stderr)}
	case t.resumes && !slices.Contains(t.asked, t.call.ID):
		return &CLIError{Problem: "the hook was not asked about the resumed call"}
	case slices.ContainsFunc(l.Denials, func(d struct {
		ID string `json:"tool_use_id"`
	}) bool {
		return !slices.Contains(t.asked, d.ID)
	}):
		return &CLIError{Problem: "the hook was not asked about a call"}
	case l.StopReason == "tool_deferred":
		if t.deferred == nil || l.Deferred == nil || l.Deferred.ID != t.deferred.ID {
			return &CLIError{Problem: "the CLI deferred another call than the hook"}
		}
		return nil
	case l.StopReason == "tool_deferred_unavailable":
		return &CLIError{Problem: "the tool of the deferred call is not available"}
	case t.deferred != nil:
		return &CLIError{Problem: "the CLI did not defer a call"}
	case l.Subtype == "error_max_turns":
		return nil
	case l.IsError || l.Subtype != "success":
		return &CLIError{fmt.Sprintf("the CLI failed (%s)", l.Subtype), errors.Join(errors.New(l.Result), fmt.Errorf("%q", l.Errors))}
	}
	return nil
}

// ended returns the outcome of a run that has ended.
func (t *turn) ended() *ended {
	if t.last.Subtype == "error_max_turns" {
		return &ended{Code: "max_turns", Message: "the agent reached the maximum number of model calls"}
	}
	return &ended{Text: t.last.Result}
}
