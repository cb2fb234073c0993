package executor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/external"
)

var bot = desk.From{Actor: desk.Actor{ID: "bot", Kind: desk.ActorAgent}}

// outside is an executor for external agents whose clock can be advanced.
type outside struct {
	*executor.Executor
	t     *testing.T
	store store.Store
	ahead atomic.Int64
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{t: t}
	p, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o.store = memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) })
	o.Executor = executorOf(t, o.store, p, nil)
	return o
}

// ask creates an approval and returns its id and the digest of its action.
func (o *outside) ask(key, more string) (id, digest string) {
	o.t.Helper()
	outcome := mustRun(o.t, o.Executor, executor.RunRequest{
		Account: "acme", StateKey: key, Graph: "external:request", Actor: "bot", Kind: desk.ActorAgent,
		Input: json.RawMessage(`{"kind":"approval","data":{"action":"refund","args":{"cents":5},"argsSchema":{"type":"object"}}` + more + `}`),
	})
	waiting := waits(o.t, outcome)
	var asked fermata.ApprovalRequest
	if err := json.Unmarshal(waiting.Interrupts[0].Data, &asked); err != nil {
		o.t.Fatal(err)
	}
	return waiting.Interrupts[0].ID, asked.Digest
}

func (o *outside) decide(key, id, answer string) {
	o.t.Helper()
	completed(o.t, mustRun(o.t, o.Executor, word("ann", key, "1 "+key, id, answer)))
}

func (o *outside) send(key, digest, outcome string) {
	o.t.Helper()
	if _, err := o.RecordReceipt(o.t.Context(), "acme", key, executor.Receipt{Digest: digest, Outcome: outcome}, bot); err != nil {
		o.t.Fatal(err)
	}
}

// codes returns the codes of all findings.
func (o *outside) codes() string {
	o.t.Helper()
	found, err := o.Reconcile(o.t.Context(), "acme")
	if err != nil {
		o.t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, string(f.Code))
	}
	return strings.Join(all, " ")
}

const otherDigest = "0000000000000000000000000000000000000000000000000000000000000000"

func TestReceipt_IsComparedWithTheDecision(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(o *outside)
		want reconcile.FindingCode
	}{
		"as approved": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"approve"}`)
			o.send("x", d, "done")
		}, ""},
		"failed": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"approve"}`)
			o.send("x", d, "failed")
		}, ""},
		"edited": {func(o *outside) {
			id, _ := o.ask("x", "")
			o.decide("x", id, `{"verb":"approve","args":{"cents":4}}`)
			edited, err := fermata.ApprovalRequest{Action: "refund"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"cents": 4}`)})
			if err != nil {
				o.t.Fatal(err)
			}
			o.send("x", edited, "done")
		}, ""},
		"not as edited": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"approve","args":{"cents":4}}`)
			o.send("x", d, "done")
		}, reconcile.FindingDigestsDiffer},
		"something else": {func(o *outside) {
			id, _ := o.ask("x", "")
			o.decide("x", id, `{"verb":"approve"}`)
			o.send("x", otherDigest, "done")
		}, reconcile.FindingDigestsDiffer},
		"rejected": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"reject"}`)
			o.send("x", d, "done")
		}, reconcile.FindingRunNotApproved},
		"rejected, failed": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"reject"}`)
			o.send("x", d, "failed")
		}, reconcile.FindingRunNotApproved},
		"rejected and not done": {func(o *outside) {
			id, d := o.ask("x", "")
			o.decide("x", id, `{"verb":"reject"}`)
			o.send("x", d, "not_done")
		}, ""},
		"still open": {func(o *outside) { _, d := o.ask("x", ""); o.send("x", d, "done") }, reconcile.FindingRunNotApproved},
		"approved afterwards": {func(o *outside) {
			id, d := o.ask("x", "")
			o.send("x", d, "done")
			o.ahead.Add(int64(time.Minute))
			o.decide("x", id, `{"verb":"approve"}`)
		}, reconcile.FindingRunNotApproved},
		"withdrawn": {func(o *outside) {
			_, d := o.ask("x", "")
			if err := o.Cancel(o.t.Context(), "acme", "x", bot); err != nil {
				o.t.Fatal(err)
			}
			o.send("x", d, "done")
		}, reconcile.FindingRunNotApproved},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			c.do(o)
			o.ahead.Add(int64(time.Hour))
			if got := o.codes(); got != string(c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// An approval without a receipt is reported after a day, if the agent sends receipts or the request
// asked for one.
func TestReceipt_MissingOneIsReportedWhereOneIsExpected(t *testing.T) {
	o := newOutside(t)
	id, _ := o.ask("never", "")
	o.decide("never", id, `{"verb":"approve"}`)
	o.ahead.Add(int64(25 * time.Hour))
	if got := o.codes(); got != "" {
		t.Errorf("an agent that sends no receipts: %q", got)
	}
	id, _ = o.ask("requested", `,"receipt":true`)
	o.decide("requested", id, `{"verb":"approve"}`)
	o.ahead.Add(int64(23 * time.Hour))
	if got := o.codes(); got != "" {
		t.Errorf("before the time is over: %q", got)
	}
	o.ahead.Add(int64(2 * time.Hour))
	if got := o.codes(); got != string(reconcile.FindingApprovedNotRun) {
		t.Errorf("a request that asked for one: %q", got)
	}
	id, digest := o.ask("first", "")
	o.decide("first", id, `{"verb":"approve"}`)
	o.send("first", digest, "done")
	o.ahead.Add(int64(time.Minute))
	id, _ = o.ask("second", "")
	o.decide("second", id, `{"verb":"approve"}`)
	id, _ = o.ask("rejected", `,"receipt":true`)
	o.decide("rejected", id, `{"verb":"reject"}`)
	o.ahead.Add(int64(25 * time.Hour))
	if got := o.codes(); got != "approved_not_run approved_not_run" {
		t.Errorf("an agent that sends receipts: %q", got)
	}
}

func TestReceipt_IsIdempotentAndCannotChange(t *testing.T) {
	o := newOutside(t)
	_, digest := o.ask("x", "")
	sent := executor.Receipt{Digest: digest, Outcome: "done", Result: json.RawMessage(`{"b":1, "a":"CANARY"}`)}
	first, err := o.RecordReceipt(t.Context(), "acme", "x", sent, bot)
	if err != nil || first.By != "bot" || first.At.IsZero() {
		t.Fatalf("%+v, %v", first, err)
	}
	o.ahead.Add(int64(time.Minute))
	sent.Result = json.RawMessage(`{"a":"CANARY","b":1}`)
	again, err := o.RecordReceipt(t.Context(), "acme", "x", sent, bot)
	if err != nil || again.By != "bot" || !again.At.Equal(first.At) {
		t.Errorf("%+v, %v", again, err)
	}
	for name, other := range map[string]executor.Receipt{
		"outcome": {Digest: digest, Outcome: "failed", Result: sent.Result}, "digest": {Digest: otherDigest, Outcome: "done", Result: sent.Result}, "result": {Digest: digest, Outcome: "done"},
	} {
		if _, err := o.RecordReceipt(t.Context(), "acme", "x", other, bot); !errors.Is(err, executor.ErrReceiptExists) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	lines := 0
	for record, err := range audit.ParseRecords(audit.NewStoreLog(o.store).Records(t.Context(), "acme", 0, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := record.Body.(audit.AgentReceipt); ok {
			lines++
			if line.Outcome != audit.ReceiptDone || record.Actor.Principal != "bot" || record.Actor.Kind != audit.ActorAgent || record.Location.Interrupt == "" {
				t.Errorf("%+v", record)
			}
		}
	}
	if lines != 1 {
		t.Errorf("%d audit lines", lines)
	}
}

func TestReceipt_InvalidOnesAreRejected(t *testing.T) {
	o := newOutside(t)
	_, digest := o.ask("x", "")
	waits(t, began(t, o.Executor, "question", "external:request", `{"kind":"refund","data":{"cents":5}}`))
	for name, c := range map[string]struct {
		key     string
		receipt executor.Receipt
		want    error
	}{
		"unknown run":        {"y", executor.Receipt{Digest: digest, Outcome: "done"}, executor.ErrRunNotFound},
		"short digest":       {"x", executor.Receipt{Digest: digest[1:], Outcome: "done"}, executor.ErrInvalid},
		"upper case":         {"x", executor.Receipt{Digest: strings.Repeat("A", 64), Outcome: "done"}, executor.ErrInvalid},
		"no hexadecimal":     {"x", executor.Receipt{Digest: strings.Repeat("x", 64), Outcome: "done"}, executor.ErrInvalid},
		"another outcome":    {"x", executor.Receipt{Digest: digest, Outcome: "maybe"}, executor.ErrInvalid},
		"no JSON":            {"x", executor.Receipt{Digest: digest, Outcome: "done", Result: json.RawMessage(`{`)}, executor.ErrInvalid},
		"a large result":     {"x", executor.Receipt{Digest: digest, Outcome: "done", Result: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)}, executor.ErrInvalid},
		"not of an approval": {"question", executor.Receipt{Digest: digest, Outcome: "done"}, executor.ErrInvalid},
		"another account's":  {"", executor.Receipt{Digest: digest, Outcome: "done"}, executor.ErrRunNotFound},
	} {
		if _, err := o.RecordReceipt(t.Context(), "acme", c.key, c.receipt, bot); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if view, err := o.GetRun(t.Context(), "acme", "x"); err != nil {
		t.Error(err)
	} else if kept, err := o.ReceiptOf(t.Context(), view.Run); err != nil || kept != nil {
		t.Errorf("%+v, %v", kept, err)
	}
}

// The receipt of an action that a rule or a grant allowed is compared with that action.
func TestReceipt_OfAnActionThatARuleAllowed(t *testing.T) {
	o := &outside{t: t}
	o.store = memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) })
	o.Executor = opsExecutor(t, o.store, `
default: ask
defaults: {ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}}
rules:
- {id: small, when: 'req.tool == "refund" && args.cents <= 100', then: allow}
- {id: never, when: 'req.tool == "drop"', then: deny}
`)
	ask := func(key, action string) (fermata.Outcome, string) {
		t.Helper()
		digest, err := fermata.ApprovalRequest{Action: action}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"cents":5}`)})
		if err != nil {
			t.Fatal(err)
		}
		return began(t, o.Executor, key, "external:request", `{"kind":"approval","data":{"action":"`+action+`","args":{"cents":5}},"receipt":true}`), digest
	}
	outcome, digest := ask("as allowed", "refund")
	completed(t, outcome)
	o.send("as allowed", digest, "done")
	// a grant
	outcome, digest = ask("granting", "pay")
	id := waits(t, outcome).Interrupts[0].ID
	o.decide("granting", id, `{"verb":"approve"}`)
	o.send("granting", digest, "done")
	if _, err := o.CreateGrant(t.Context(), "acme", id, executor.GrantRequest{By: "ann", TTL: time.Minute, MaxUses: 1}); err != nil {
		t.Fatal(err)
	}
	outcome, digest = ask("granted", "pay")
	completed(t, outcome)
	o.send("granted", digest, "done")
	o.ahead.Add(int64(time.Hour))
	if got := o.codes(); got != "" {
		t.Fatalf("what was allowed: %q", got)
	}
	outcome, _ = ask("something else", "refund")
	completed(t, outcome)
	o.send("something else", otherDigest, "done")
	if got := o.codes(); got != string(reconcile.FindingDigestsDiffer) {
		t.Errorf("something else: %q", got)
	}
	_, digest = ask("denied", "drop")
	o.send("denied", digest, "done")
	if got := o.codes(); got != "digests_differ run_not_approved" && got != "run_not_approved digests_differ" {
		t.Errorf("denied: %q", got)
	}
	outcome, _ = ask("no receipt", "refund")
	completed(t, outcome)
	o.ahead.Add(int64(25 * time.Hour))
	if got := o.codes(); !strings.HasSuffix(got, "approved_not_run") {
		t.Errorf("no receipt: %q", got)
	}
}

// Only the agent that asked can say what it did.
func TestReceipt_OfAnotherAgentIsRefused(t *testing.T) {
	e := opsExecutor(t, memory.NewStore(nil), "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}\nrules:\n- {id: small, when: 'args.cents < 100', then: allow}\n")
	refund := opsRequests[4]
	completed(t, mustRun(t, e, executor.RunRequest{Account: "acme", StateKey: "r", Graph: refund.graph, Input: json.RawMessage(refund.input), Actor: "bot"}))
	receipt := executor.Receipt{Digest: strings.Repeat("0", 64), Outcome: "done"}
	for who, want := range map[string]error{"other": executor.ErrRunNotFound, "bot": nil} {
		if _, err := e.RecordReceipt(t.Context(), "acme", "r", receipt, desk.From{Actor: desk.Actor{ID: who, Kind: desk.ActorAgent}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", who, err)
		}
	}
}
