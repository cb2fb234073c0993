package clientcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider/claude"
)

// ClaudeHook is a hook command of Claude Code.
//
// Claude Code continues with its own permission rules if a hook exits with a code other than 0 and
// 2, or exceeds its timeout. So a call is denied in every case in which it was not approved: with
// an answer, or with exit code 2.
type ClaudeHook struct {
	cli.Remote
	Wait          time.Duration `help:"How long to wait for the decision. The hook's timeout in the settings must be longer." default:"10m"`
	OnError       string        `help:"What to answer without a decision: deny, or ask to let Claude Code ask the person at the terminal." enum:"deny,ask" default:"deny"`
	PrintSettings bool          `help:"Print the hooks for the settings of Claude Code, and exit."`
	Matcher       string        `help:"With --print-settings, the tools whose calls need approval, as a regular expression." default:"Bash|PowerShell|Monitor|Edit|Write|NotebookEdit|WebFetch|mcp__.*" placeholder:"REGEXP"`
}

// The events of Claude Code that the hook handles.
const (
	EventBefore = "PreToolUse"
	EventAfter  = "PostToolUse"
	EventFailed = "PostToolUseFailure"
)

// HookEvent is an event on standard input, without the members that are not needed.
type HookEvent struct {
	Name    string          `json:"hook_event_name"`
	Session string          `json:"session_id"`
	Tool    string          `json:"tool_name"`
	Input   json.RawMessage `json:"tool_input"`
	ID      string          `json:"tool_use_id"`
}

// StateKey identifies the call. The session id itself does not leave this machine.
func (e HookEvent) StateKey() string { return ident.Derive("claude-hook", e.Session, e.ID) }

// HookReply is the decision about a call.
type HookReply struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
}

const (
	HookAllow = "allow"
	HookDeny  = "deny"
	HookAsk   = "ask"
)

func denyCall(format string, args ...any) HookReply {
	return HookReply{Event: EventBefore, Decision: HookDeny, Reason: fmt.Sprintf(format, args...)}
}

const (
	// hookCallTimeout limits each call of the server that does not wait for people.
	hookCallTimeout = 30 * time.Second
	// hookMargin is how much longer the timeout of the hook is than the wait for the decision.
	hookMargin = 90 * time.Second
)

// Errors of the hook.
var (
	errUndecided = errors.New("no decision in time")
	errReceipt   = errors.New("the receipt was not sent")
)

// Run handles one event.
func (c *ClaudeHook) Run(ctx context.Context, p *cli.Program) error {
	if c.Wait < time.Second {
		return cli.Usagef("--wait must be at least 1s")
	}
	if c.PrintSettings {
		return c.printSettings(p)
	}
	event, err := readHookEvent()
	if err != nil {
		return err
	}
	if event.Name != EventBefore {
		if err := c.sendReceipt(ctx, event); err != nil {
			return fmt.Errorf("%w: %v", errReceipt, err) // not %w: its exit code could be 2
		}
		return nil
	}
	reply, err := c.decide(ctx, event)
	if err != nil {
		reply = c.replyToError(err)
	}
	if err := json.NewEncoder(p.Out).Encode(map[string]any{"hookSpecificOutput": reply}); err != nil {
		return cli.Usagef("write the answer: %w", err) // exit code 2 blocks the call
	}
	return nil
}

func readHookEvent() (HookEvent, error) {
	var event HookEvent
	text, err := cli.ReadAll("-")
	if err == nil {
		err = json.Unmarshal(text, &event)
	}
	if err != nil {
		return event, cli.Usagef("standard input is not an event of Claude Code: %w", err)
	}
	switch {
	case event.Name != EventBefore && event.Name != EventAfter && event.Name != EventFailed:
		return event, cli.Usagef("the event %q is not %s, %s or %s", event.Name, EventBefore, EventAfter, EventFailed)
	case event.Session == "" || event.Tool == "" || event.ID == "" || len(event.Input) == 0 || event.Input[0] != '{':
		return event, cli.Usagef("the event has no session_id, tool_name, tool_use_id or tool_input")
	}
	return event, nil
}

// replyToError returns the answer about a call without a decision.
func (c *ClaudeHook) replyToError(err error) HookReply {
	problem, ok := errors.AsType[*api.Problem](err)
	if ok && (problem.Status == http.StatusBadRequest || problem.Status == http.StatusRequestEntityTooLarge || problem.Status == http.StatusConflict) {
		return denyCall("Fermata cannot ask for approval of this call: %v", err) // because of the call itself
	}
	cause := cli.Explain(err)
	text := cmp.Or(cause.Detail, cause.Code)
	if errors.Is(err, context.Canceled) {
		text = "the hook was interrupted"
	}
	reply := denyCall("Fermata did not approve this call: %s", text)
	if c.OnError == HookAsk {
		reply.Decision = HookAsk
	}
	return reply
}

// decide asks for approval of a call and waits for the decision.
func (c *ClaudeHook) decide(ctx context.Context, event HookEvent) (HookReply, error) {
	to, err := c.Client()
	if err != nil {
		return HookReply{}, err
	}
	question, err := claude.NewApproval(event.Tool, event.Input)
	if err != nil {
		return denyCall("Fermata cannot ask for approval of this call: %v", err), nil
	}
	data, err := json.Marshal(question)
	if err != nil {
		return HookReply{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Wait, fmt.Errorf("%w (%v)", errUndecided, c.Wait))
	defer cancel()
	key := event.StateKey()
	outcome, err := c.ask(ctx, to, api.CreateRequest{
		StateKey: key, Kind: fermata.Approval.Name(), Data: data, Receipt: true,
		Timeout: int64((c.Wait + hookMargin).Seconds()), // in case this process is killed
	})
	if err == nil && !isOver(outcome) {
		outcome, err = awaitDecision(ctx, to, key)
	}
	if ctx.Err() != nil && !isOver(outcome) {
		outcome, err = withdraw(ctx, to, key)
	}
	if err != nil {
		return HookReply{}, err
	}
	return c.reply(ctx, to, key, question, outcome)
}

// ask creates the request. The same call is asked about once.
func (c *ClaudeHook) ask(ctx context.Context, to *client.Client, request api.CreateRequest) (fermata.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, hookCallTimeout)
	defer cancel()
	outcome, err := to.CreateRequest(ctx, request)
	if errors.Is(err, client.ErrPending) {
		return nil, nil
	}
	return outcome, err
}

// isOver reports whether a run has ended.
func isOver(outcome fermata.Outcome) bool {
	switch outcome.(type) {
	case fermata.Completed, fermata.Failed:
		return true
	case fermata.NeedsInput, nil:
	}
	return false
}

// awaitDecision waits for the end of a run. It tolerates outages of the server until ctx ends.
func awaitDecision(ctx context.Context, to *client.Client, key string) (fermata.Outcome, error) {
	for {
		var lost error
		for event, err := range to.Events(ctx, key, "") {
			if isOver(event.Outcome) {
				return event.Outcome, nil
			}
			lost = err
		}
		if problem, ok := errors.AsType[*api.Problem](lost); ok && cli.StatusExits[problem.Status] != cli.ExitUnavailable {
			return nil, lost
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// withdraw withdraws a request without a decision, so that people do not decide it in vain. It
// returns a decision that was made in the meantime.
func withdraw(ended context.Context, to *client.Client, key string) (fermata.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), hookCallTimeout)
	defer cancel()
	if err := to.Cancel(ctx, key); err != nil {
		if run, err := to.Run(ctx, key); err == nil && isOver(run.Outcome) {
			return run.Outcome, nil
		}
	}
	return nil, context.Cause(ended)
}

// reply returns the answer for the outcome of a request.
func (c *ClaudeHook) reply(ctx context.Context, to *client.Client, key string, question fermata.ApprovalRequest, outcome fermata.Outcome) (HookReply, error) {
	completed, ok := outcome.(fermata.Completed)
	if !ok {
		failed, _ := outcome.(fermata.Failed)
		if failed.Code == "expired" {
			return HookReply{}, fmt.Errorf("%w: %s", errUndecided, failed.Message)
		}
		return denyCall("Fermata: %s: %s", failed.Code, failed.Message), nil
	}
	var decided struct {
		Answer         fermata.Decision `json:"answer"`
		By             string           `json:"by"`
		Rule           string           `json:"rule"`
		ApprovedDigest string           `json:"approvedDigest"`
	}
	if err := json.Unmarshal(completed.Output, &decided); err != nil {
		return HookReply{}, fmt.Errorf("decode the decision: %w", err)
	}
	by := cmp.Or(decided.By, decided.Rule)
	answer := decided.Answer
	if answer.Verb != fermata.VerbApprove {
		return denyCall("Fermata: %s by %s: %s", pastTense(answer.Verb), by, cmp.Or(answer.Reason, "no reason was given")), nil
	}
	digest, err := question.ApprovedDigest(answer)
	if err != nil || digest != decided.ApprovedDigest {
		return denyCall("Fermata: the approval is for other arguments"), nil
	}
	if why := voidReason(answer.Conditions, time.Now()); why != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookCallTimeout)
		defer cancel()
		_, err := to.SendReceipt(ctx, key, api.SendReceipt{Digest: digest, Outcome: "not_done"})
		return denyCall("Fermata: the approval by %s is void: %s%s", by, why, alsoFailed(err)), nil
	}
	allow := HookReply{Event: EventBefore, Decision: HookAllow, Reason: "Fermata: approved by " + by}
	if digest != question.Digest {
		allow.Input = answer.Args
		allow.Reason += ", with changed arguments"
	}
	return allow, nil
}

func alsoFailed(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (%v: %v)", errReceipt, err)
}

// pastTense returns the past tense of a verb that is not an approval.
func pastTense(verb fermata.Verb) string {
	switch verb {
	case fermata.VerbReject:
		return "rejected"
	case fermata.VerbReturn:
		return "returned"
	}
	return "not approved (" + string(verb) + ")"
}

// voidReason returns why the conditions of an approval do not hold now; "" if they do.
func voidReason(conditions fermata.Conditions, now time.Time) string {
	switch until := conditions.Until; {
	case !until.IsZero() && !now.Before(until):
		return "it was valid until " + until.UTC().Format(time.RFC3339)
	case conditions.OnlyIf != "":
		return "the hook cannot check its condition: " + conditions.OnlyIf
	}
	return ""
}

// sendReceipt reports a call that was made. Calls that the hook did not ask about have no receipt.
func (c *ClaudeHook) sendReceipt(ctx context.Context, event HookEvent) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	digest, err := fermata.ApprovalRequest{Action: event.Tool}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: event.Input})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookCallTimeout)
	defer cancel()
	if approved, ok := approvedDigest(ctx, to, event); ok {
		digest = approved
	}
	receipt := api.SendReceipt{Digest: digest, Outcome: "done"}
	if event.Name == EventFailed {
		receipt.Outcome = "failed"
	}
	_, err = to.SendReceipt(ctx, event.StateKey(), receipt)
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// approvedDigest returns the digest of edited arguments that a call was made with. The CLI writes
// edited numbers in its own way, 1.0 as 1, so they are compared by value.
func approvedDigest(ctx context.Context, to *client.Client, event HookEvent) (digest string, ok bool) {
	run, err := to.Run(ctx, event.StateKey())
	if err != nil {
		return "", false // the receipt reports the error
	}
	completed, _ := run.Outcome.(fermata.Completed)
	var decided struct {
		Answer         fermata.Decision `json:"answer"`
		ApprovedDigest string           `json:"approvedDigest"`
	}
	if json.Unmarshal(completed.Output, &decided) != nil || decided.Answer.Args == nil {
		return "", false
	}
	return decided.ApprovedDigest, strictjson.SameValue(decided.Answer.Args, event.Input)
}

// HookSettings is an entry of "hooks" in the settings of Claude Code.
type HookSettings struct {
	Matcher string        `json:"matcher"`
	Hooks   []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// printSettings prints the part of settings.json that registers the hook.
func (c *ClaudeHook) printSettings(p *cli.Program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := shellQuote(self) + " claude-hook"
	hooks := func(command string, timeout time.Duration) []HookSettings {
		return []HookSettings{{Matcher: c.Matcher, Hooks: []hookCommand{{"command", command, int(timeout.Seconds())}}}}
	}
	before := command + " --wait " + c.Wait.String()
	if c.OnError == HookDeny {
		before += " || exit 2" // a program that is missing or crashes must not let the call through
	} else {
		before += " --on-error " + c.OnError
	}
	settings := map[string]any{"hooks": map[string]any{
		EventBefore: hooks(before, c.Wait+hookMargin),
		EventAfter:  hooks(command, 2*hookCallTimeout),
		EventFailed: hooks(command, 2*hookCallTimeout),
	}}
	encoder := json.NewEncoder(p.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(settings)
}

// shellQuote quotes a word for a POSIX shell.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
