package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
)

// noon is the start time of these tests.
var noon = time.Date(2026, 11, 14, 12, 0, 0, 123456789, time.UTC)

var (
	alice = audit.Actor{Principal: "alice", Kind: audit.ActorPerson, Via: "slack", Auth: "slack_linked", Identity: "slack:T1/UALICE", Link: "lnk_1"}
	clock = audit.Actor{Principal: "clock", Kind: audit.ActorClock}
	self  = audit.Actor{Principal: "fermata", Kind: audit.ActorSystem}
	place = audit.Location{Run: "run_1", StateKey: "demo-1", Graph: "ops", Address: "runnable:ops;node:pay", Interrupt: "int_1", Request: "req_1", Revision: 2}
)

// payload returns a payload with a public salt, for golden files only.
func payload(id, data string) audit.Payload {
	p := audit.Payload{ID: id, Data: []byte(data)}
	copy(p.Salt[:], "golden salt of "+id)
	return p
}

func digest(id, data string) audit.Digest { return payload(id, data).Digest() }

// bodies returns one body of each kind, with every field set.
func bodies() []audit.Body {
	at := func(minutes int) audit.Timestamp {
		return audit.TimestampOf(noon.Add(time.Duration(minutes) * time.Minute))
	}
	args := digest("pay_args", "action digest")
	action := audit.Action{Name: "db.execute", Args: args, Effects: []string{"write", "delete"}, Cost: "1.20 USD"}
	need := []audit.GroupCount{{Group: "dba", Count: 1}, {Group: "finance", Count: 1}}
	shown := audit.Shown{
		Surface: "slack", Rendered: digest("pay_view", "the view"), Screen: digest("pay_screen", "the screen"), Template: "approval@7", Visible: audit.VisiblePart, Clipped: true,
		Evidence: []audit.Evidence{{Name: "plan", Digest: digest("pay_plan", "the plan")}}, At: at(1),
	}
	ruling := audit.Ruling{
		Digest: "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", Version: "2026-11-14.3", Rules: []string{"bulk-delete"},
		Trace: digest("pay_trace", "the trace"), Grant: "grt_1", BreakGlass: true,
	}
	timing := audit.Timing{Created: at(0), Delivered: at(1), FirstView: at(2), Decided: at(3), LatencyMS: 180000, ReadingMS: 60000, Deadline: at(60)}
	click := audit.Click{Key: "v0=abc", Raw: digest("pay_click", "the click")}
	trace := audit.Trace{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7"}
	reason := digest("pay_reason", "looks right")
	return []audit.Body{
		audit.RequestAsked{Kind: "fermata-approval", Action: action, Question: digest("pay_question", "may I?"), Need: need, Ruling: ruling, Route: "ops@4", Deadline: at(60)},
		audit.RequestDelivered{Surface: "slack", Copy: "C1/1.2", State: audit.DeliveryFailed, Attempt: 2, Error: "channel_not_found", Rendered: shown.Rendered, Clipped: true},
		audit.RequestViewed{Shown: shown},
		audit.RequestClaimed{Until: at(30)},
		audit.RequestReleased{Why: "timeout"},
		audit.RequestEscalated{To: []string{"group:dba", "bob"}, Step: "page", Reason: reason},
		audit.RequestDelegated{To: "bob", Reason: reason},
		audit.RequestSnoozed{Until: at(30)},
		audit.RequestCommented{Text: digest("pay_comment", "why now?")},
		audit.RequestDecided{
			Verb: audit.VerbApproveWithEdits, Settles: true, Action: action, Edited: digest("pay_edited", "edited digest"), Approved: digest("pay_edited", "edited digest"), Codes: []string{"scope"}, Answer: digest("pay_answer", "the answer"),
			Reason: reason, Shown: shown, Groups: []string{"dba"}, Quorum: audit.Quorum{Need: need, Have: []string{"alice", "carol"}}, Ruling: ruling,
			Conditions: audit.Conditions{Until: at(90), OnlyIf: digest("pay_condition", "args.rows < 10")}, ApprovedConditions: audit.Conditions{Until: at(90), OnlyIf: digest("pay_condition", "args.rows < 10")},
			Timing: timing, Click: click, ResumeID: "res_1", Trace: trace,
		},
		audit.RequestRefused{Verb: audit.VerbApprove, Act: "delegate", Why: audit.RefusedDigestMismatch, Shown: shown, Ruling: ruling, Click: click, ResumeID: "res_2", Trace: trace},
		audit.RequestExpired{Deadline: at(60), Why: "stale", Then: "default", Answer: digest("pay_default", "the default answer"), Timing: timing},
		audit.RequestWithdrawn{Why: "cancelled"},
		audit.PolicyLoaded{Ruling: ruling, Previous: "sha256:00", Rules: 12},
		audit.GrantMade{Grant: "grt_1", Scope: digest("pay_scope", "the scope"), Rule: "bulk-delete", Until: at(600), Uses: 3},
		audit.GrantUsed{Grant: "grt_1", Action: action, Ruling: ruling},
		audit.GrantRevoked{Grant: "grt_1", Why: "policy_changed"},
		audit.EffectBegun{Number: 1, Action: action, Key: "eff_1", Repeatable: true, Fence: 7, Ruling: ruling, Trace: trace},
		audit.EffectEnded{Number: 1, Action: action, State: audit.EffectStateFailed, Receipt: digest("pay_receipt", "done"), Error: digest("pay_error", "no"), Trace: trace},
		audit.RunStarted{Provider: "inproc", Generation: 2, Input: digest("pay_input", "in"), Adopted: true},
		audit.RunEnded{Status: "completed", Outcome: digest("pay_outcome", "out")},
		audit.LogExported{Format: "jsonl", From: 1, To: 22, SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		audit.PayloadsErased{Payloads: []string{"pay_reason", "pay_comment"}, Order: "dsr-17"},
		audit.LogVerified{From: 1, To: 23, Signed: 20, Problem: "edited", At: 7},
		audit.RequestChanged{What: "extended", Deadline: at(90)},
		audit.LogSigned{Verifier: "fermata-go.github.io/audit/ab+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Size: 24, Root: audit.HashOf([]byte("x"))},
		audit.PolicyDenied{Action: action, Ruling: ruling},
		audit.RunParked{Attempts: 25},
		audit.RunRetried{Attempts: 25},
		audit.APIKeyMade{Key: "7n3bd4k2m9x0c1qf", Name: "release-bot", Role: "agent", Until: at(600)},
		audit.APIKeyRevoked{Key: "7n3bd4k2m9x0c1qf"},
		audit.SessionBegun{Session: "session_1", Roles: []string{"approver", "auditor"}, Until: at(480)},
		audit.SessionEnded{Session: "session_1"},
		audit.PolicyAllowed{Kind: "approval-gate", Action: action, Question: digest("pay_question", "the question"), Ruling: ruling},
		audit.RequestRevealed{Fields: []string{"/card", "/customer/email"}},
		audit.RequestRendered{Shown: shown},
		audit.AgentReceipt{Outcome: audit.ReceiptDone, Ran: digest("pay_ran", "ran"), Result: digest("pay_result", "result")},
		audit.NotificationsChanged{What: "settings", Channel: "webpush", Person: "ann", AwayFrom: at(30), AwayUntil: at(90), Delegate: "bob", Quiet: true},
		audit.ChannelLinked{Link: "slack/l_7n3bd4k2", Channel: "slack", Roles: []string{"approver"}, Until: at(10080)},
		audit.ChannelUnlinked{Link: "slack/l_7n3bd4k2", Channel: "slack", Principal: "bob"},
		audit.WebhookChanged{Webhook: "wh_7n3bd4k2", What: "created", Host: "hooks.example.com"},
	}
}

// sample returns the i-th record of a fixed log.
func sample(i int, body audit.Body) audit.Record {
	r := audit.NewRecord(noon.Add(time.Duration(i)*time.Second), alice, place, body)
	r.Nonce = audit.Nonce{0: byte(i + 1), 15: 0xff}
	return r
}

// appendedLog is a log in a test, as a store would keep it.
type appendedLog struct {
	head   audit.Head
	raw    [][]byte
	hashes []audit.Hash
	heads  []audit.Head // after each record
}

func (w *appendedLog) append(t testing.TB, r audit.Record) {
	t.Helper()
	entry, head, err := audit.Append(w.head, r)
	if err != nil {
		t.Fatal(err)
	}
	w.head, w.raw, w.hashes, w.heads = head, append(w.raw, entry.Raw), append(w.hashes, entry.Hashes...), append(w.heads, head)
}

// newLog returns a log of n small records.
func newLog(t testing.TB, account string, n int) *appendedLog {
	t.Helper()
	w := &appendedLog{head: audit.EmptyHead(account)}
	for i := range n {
		w.append(t, sample(i, audit.RequestClaimed{Until: audit.TimestampOf(noon.Add(time.Duration(i) * time.Hour))}))
	}
	return w
}

// memoryLog returns a log in memory with records.
func memoryLog(t testing.TB, account string, records ...audit.Record) *audit.Memory {
	t.Helper()
	m := new(audit.Memory)
	for _, r := range records {
		if _, err := m.Append(t.Context(), account, r); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func samples(n int) []audit.Record {
	var records []audit.Record
	for i := range n {
		records = append(records, sample(i, audit.RequestCommented{Text: digest(fmt.Sprintf("pay_%d", i), "text")}))
	}
	return records
}
