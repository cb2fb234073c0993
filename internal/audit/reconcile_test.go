package audit_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
)

// scenario has the sources of a small example. It begins consistent: one approval by alice of the
// group dba, one effect, all recorded.
type scenario struct {
	records    []audit.Record
	effects    []reconcile.EffectEntry
	interrupts []reconcile.InterruptEntry
	clicks     []reconcile.ChannelClick
	payloads   map[string]audit.Payload
	members    map[string]reconcile.Membership
	now        time.Time
}

func consistentScenario() *scenario {
	args := audit.NewPayload([]byte("digest of pay(100)"))
	action := audit.Action{Name: "pay", Args: args.Digest()}
	h := &scenario{
		effects:    []reconcile.EffectEntry{{Run: "run_1", Interrupt: "int_1", Number: 1, Digest: "digest of pay(100)", Key: "eff_1", State: audit.EffectStateSucceeded, Begun: noon.Add(time.Minute)}},
		interrupts: []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1", Outcome: reconcile.OutcomeApprove, Applied: true, Closed: true}},
		clicks:     []reconcile.ChannelClick{{Key: "click_1", Surface: "slack", At: noon}},
		payloads:   map[string]audit.Payload{args.ID: {ID: args.ID, Salt: args.Salt}},
		members:    map[string]reconcile.Membership{"alice/dba": reconcile.MemberYes},
		now:        noon.Add(24 * time.Hour),
	}
	h.add(noon, alice, audit.RequestDecided{Verb: audit.VerbApprove, Settles: true, Action: action, Groups: []string{"dba"}, Click: audit.Click{Key: "click_1"},
		Quorum: audit.Quorum{Need: []audit.GroupCount{{Group: "dba", Count: 1}}}})
	h.add(noon.Add(time.Minute), self, audit.EffectBegun{Number: 1, Action: action, Key: "eff_1"})
	h.add(noon.Add(2*time.Minute), self, audit.EffectEnded{Number: 1, State: audit.EffectStateSucceeded})
	return h
}

func (h *scenario) add(at time.Time, actor audit.Actor, body audit.Body) {
	r := audit.NewRecord(at, actor, audit.Location{Run: "run_1", Interrupt: "int_1"}, body)
	r.Seq = int64(len(h.records) + 1)
	h.records = append(h.records, r)
}

// drop removes the records of a kind.
func (h *scenario) drop(kind audit.Kind) {
	h.records = slices.DeleteFunc(h.records, func(r audit.Record) bool { return r.Kind() == kind })
}

// allowByRule lets a rule allow the effect, without a request.
func (h *scenario) allowByRule() {
	h.drop("request.decided")
	h.interrupts, h.clicks = nil, nil
	intent := h.records[0].Body.(audit.EffectBegun)
	intent.Ruling = audit.Ruling{Rules: []string{"small"}}
	h.records[0].Body = intent
}

// repeatEffect adds a second successful effect.
func (h *scenario) repeatEffect(key string, repeatable bool) {
	second := h.effects[0]
	second.Number, second.Key = 2, key
	h.effects = append(h.effects, second)
	intent := h.records[1].Body.(audit.EffectBegun)
	intent.Repeatable = repeatable
	h.records[1].Body = intent
	intent.Number, intent.Key = 2, key
	h.add(noon.Add(time.Hour), self, intent)
	h.add(noon.Add(time.Hour), self, audit.EffectEnded{Number: 2, State: audit.EffectStateSucceeded})
}

func (h *scenario) decide(change func(*audit.RequestDecided)) {
	d := h.records[0].Body.(audit.RequestDecided)
	change(&d)
	h.records[0].Body = d
}

func (h *scenario) reconcile(t *testing.T) []reconcile.Finding {
	t.Helper()
	findings, err := reconcile.Run(reconcile.Input{
		Audit: seq(h.records...), Effects: seq(h.effects...), Interrupts: seq(h.interrupts...), Clicks: seq(h.clicks...),
		Payload: func(id string) (audit.Payload, bool) { p, ok := h.payloads[id]; return p, ok },
		Member:  func(principal, group string, _ time.Time) reconcile.Membership { return h.members[principal+"/"+group] },
		Now:     h.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestReconcile_ConsistentInputHasNoFindings(t *testing.T) {
	if got := consistentScenario().reconcile(t); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
}

func TestReconcile_Findings(t *testing.T) {
	type want struct {
		severity reconcile.Severity
		code     reconcile.FindingCode
		text     string // a part of the text
	}
	edited := audit.NewPayload([]byte("digest of pay(90)"))
	for name, test := range map[string]struct {
		change func(*scenario)
		want   []want
	}{
		"effect without a decision": {func(h *scenario) { h.drop("request.decided"); h.interrupts, h.clicks = nil, nil },
			[]want{{reconcile.SeverityPage, reconcile.FindingRunNotApproved, "has no approval"}}},
		"effect by a rule": {func(h *scenario) { h.allowByRule() }, nil},
		"effect by a rule, with other arguments (I6)": {func(h *scenario) { h.allowByRule(); h.effects[0].Digest = "digest of pay(1000)" },
			[]want{{reconcile.SeverityPage, reconcile.FindingDigestsDiffer, "other arguments than were approved"}}},
		"effect by a rule, although people were asked": {func(h *scenario) {
			h.allowByRule()
			h.interrupts = []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1"}}
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingRunNotApproved, "has no approval"}}},
		"effect after a rejection": {func(h *scenario) {
			h.decide(func(d *audit.RequestDecided) { d.Verb = audit.VerbReject })
			h.interrupts[0].Outcome = reconcile.OutcomeReject
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingRunNotApproved, "is not an approval (reject)"}}},
		"effect after an expiry (I11)": {func(h *scenario) {
			h.records[0].Body = audit.RequestExpired{Deadline: audit.TimestampOf(noon)}
			h.interrupts[0].Outcome, h.clicks = reconcile.OutcomeExpire, nil
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingRunNotApproved, "is not an approval (expire)"}}},
		"effect before the approval": {func(h *scenario) { h.effects[0].Begun = noon.Add(-time.Second) },
			[]want{{reconcile.SeverityPage, reconcile.FindingRunNotApproved, "before it was approved"}}},
		"one vote of two required": {func(h *scenario) { h.decide(func(d *audit.RequestDecided) { d.Settles = false }) },
			[]want{{reconcile.SeverityPage, reconcile.FindingDecisionNotInAudit, "the audit log does not"}, {reconcile.SeverityPage, reconcile.FindingRunNotApproved, "has no approval"}}},
		"other arguments in the ledger (I6)": {func(h *scenario) { h.effects[0].Digest = "digest of pay(1000)" },
			[]want{{reconcile.SeverityPage, reconcile.FindingDigestsDiffer, "other arguments than were approved"}}},
		"other arguments in the record itself (I6)": {func(h *scenario) {
			h.decide(func(d *audit.RequestDecided) { d.Edited = edited.Digest() })
			h.payloads[edited.ID], h.effects[0].Digest = edited, "digest of pay(90)"
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingDigestsDiffer, "according to the audit log"}}},
		"the payload is erased": {func(h *scenario) { clear(h.payloads) },
			[]want{{reconcile.SeverityInfo, reconcile.FindingDigestGone, "erased"}}},
		"done twice": {func(h *scenario) { h.repeatEffect("eff_1", false) },
			[]want{{reconcile.SeverityPage, reconcile.FindingRanTwice, "approved once and executed 2 times"}}},
		"repeated under its key, and the target ignores duplicates": {func(h *scenario) { h.repeatEffect("eff_1", true) }, nil},
		"repeated under another key, and the target ignores duplicates": {func(h *scenario) { h.repeatEffect("eff_2", true) },
			[]want{{reconcile.SeverityPage, reconcile.FindingRanTwice, "approved once and executed 2 times"}}},
		"repeated without a key": {func(h *scenario) { h.effects[0].Key = ""; h.repeatEffect("", true) },
			[]want{{reconcile.SeverityPage, reconcile.FindingRanTwice, "approved once and executed 2 times"}}},
		"intent not recorded (I12)": {func(h *scenario) { h.drop("effect.begun") },
			[]want{{reconcile.SeverityPage, reconcile.FindingIntentNotRecorded, "intent is not in the audit log"}}},
		"receipt not recorded (I12)": {func(h *scenario) { h.drop("effect.ended") },
			[]want{{reconcile.SeverityWarn, reconcile.FindingReceiptNotRecorded, "has ended (succeeded)"}}},
		"ledger entry missing": {func(h *scenario) { h.effects = nil; h.interrupts[0].Closed = false },
			[]want{{reconcile.SeverityPage, reconcile.FindingApprovedNotRun, "nothing was executed since"}, {reconcile.SeverityPage, reconcile.FindingIntentNotInLedger, "the ledger has no entry"}}},
		"outcome unknown": {func(h *scenario) { h.effects[0].State = audit.EffectStateBegun; h.drop("effect.ended") },
			[]want{{reconcile.SeverityWarn, reconcile.FindingEffectInDoubt, "outcome is unknown"}}},
		"approved, but the resume was lost (I2)": {func(h *scenario) {
			h.effects, h.interrupts = nil, []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1", Outcome: reconcile.OutcomeApprove}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingApprovedNotRun, "nothing was executed since"}}},
		"approved and applied, but never executed": {func(h *scenario) { h.effects = nil; h.drop("effect.begun"); h.drop("effect.ended") },
			[]want{{reconcile.SeverityWarn, reconcile.FindingApprovedNotRun, "ended without executing it"}}},
		"approved, and executed by an external agent": {func(h *scenario) {
			h.effects = nil
			h.interrupts[0].EffectExternal = true
			h.drop("effect.begun")
			h.drop("effect.ended")
		}, nil},
		"approved, but an external agent never got it (I2)": {func(h *scenario) {
			h.effects, h.interrupts = nil, []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1", Outcome: reconcile.OutcomeApprove, EffectExternal: true}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingDecisionLost, "the run has not applied it"}}},
		"answered, but the receiver has not accepted it yet": {func(h *scenario) {
			h.effects, h.interrupts = nil, []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1", Outcome: reconcile.OutcomeApprove, EffectExternal: true, Redelivering: true}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{reconcile.SeverityWarn, reconcile.FindingDecisionLost, "being sent again"}}},
		"approved, but the run was cancelled": {func(h *scenario) {
			h.effects = nil
			h.interrupts[0].Applied = false
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{reconcile.SeverityInfo, reconcile.FindingApprovedNotRun, "ended before it executed anything"}}},
		"an answer that the run never got (I2)": {func(h *scenario) {
			h.effects, h.interrupts = nil, []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1"}}
			h.records = h.records[:1]
			h.decide(func(d *audit.RequestDecided) { d.Verb = audit.VerbRespond; d.Action = audit.Action{} })
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingDecisionLost, "has not applied it"}}},
		"the run has another outcome (I1)": {func(h *scenario) { h.interrupts[0].Outcome = reconcile.OutcomeReject },
			[]want{{reconcile.SeverityPage, reconcile.FindingOutcomesDiffer, "The audit log says approve for int_1, but the run says reject."}}},
		"two decisions (I1)": {func(h *scenario) {
			h.add(noon.Add(time.Hour), clock, audit.RequestExpired{Deadline: audit.TimestampOf(noon)})
		},
			[]want{{reconcile.SeverityPage, reconcile.FindingDecidedTwice, "decided by record 1 (approve), and again by record 4 (expire)"}}},
		"a lost click": {func(h *scenario) {
			h.clicks = append(h.clicks, reconcile.ChannelClick{Key: "click_2", Surface: "slack", At: noon})
		},
			[]want{{reconcile.SeverityWarn, reconcile.FindingClickLost, "delivery click_2"}}},
		"no longer a member": {func(h *scenario) { h.members["alice/dba"] = reconcile.MemberNo },
			[]want{{reconcile.SeverityPage, reconcile.FindingNotInGroup, "was not a member at that time"}}},
		"membership unknown": {func(h *scenario) { clear(h.members) },
			[]want{{reconcile.SeverityInfo, reconcile.FindingGroupUnknown, "no longer known"}}},
		"a vote without a group": {func(h *scenario) { h.decide(func(d *audit.RequestDecided) { d.Groups = nil }) },
			[]want{{reconcile.SeverityPage, reconcile.FindingNotInGroup, "for none of them"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := consistentScenario()
			test.change(h)
			got := h.reconcile(t)
			if len(got) != len(test.want) {
				t.Fatalf("found %+v", got)
			}
			for i, want := range test.want {
				f := got[i]
				if f.Severity != want.severity || f.Code != want.code || !strings.Contains(f.Text, want.text) || !strings.HasSuffix(f.Text, ".") {
					t.Errorf("found %+v; want %+v", f, want)
				}
				if f.Code != reconcile.FindingClickLost && (f.Run != "run_1" || f.Interrupt != "int_1") {
					t.Errorf("%+v has no location", f)
				}
			}
		})
	}
}

func TestReconcile_WithinGraceHasNoFindings(t *testing.T) {
	for name, change := range map[string]func(*scenario){
		"within the grace period": func(h *scenario) {
			h.now = noon.Add(10 * time.Minute)
			h.effects, h.interrupts = nil, []reconcile.InterruptEntry{{Run: "run_1", Interrupt: "int_1", Outcome: reconcile.OutcomeApprove}}
			h.records = h.records[:1]
			h.clicks = append(h.clicks, reconcile.ChannelClick{Key: "click_2", At: noon})
		},
		"effect in progress": func(h *scenario) {
			h.now, h.effects[0].State, h.records = noon.Add(2*time.Minute), audit.EffectStateBegun, h.records[:2]
		},
		"a refused click is not lost": func(h *scenario) {
			h.clicks = append(h.clicks, reconcile.ChannelClick{Key: "click_2", At: noon})
			h.add(noon, alice, audit.RequestRefused{Why: audit.RefusedAlreadyDecided, Click: audit.Click{Key: "click_2"}})
		},
		"a grant replaces a decision": func(h *scenario) {
			d := h.records[0].Body.(audit.RequestDecided)
			h.records[0].Body = audit.GrantUsed{Grant: "grt_1", Action: d.Action}
			h.clicks = nil
		},
		"the first attempt failed": func(h *scenario) {
			h.effects[0].State = audit.EffectStateFailed
			second := h.effects[0]
			second.Number, second.State = 2, audit.EffectStateSucceeded
			h.effects = append(h.effects, second)
			begun := h.records[1].Body.(audit.EffectBegun)
			begun.Number = 2
			h.add(noon.Add(time.Hour), self, begun)
			h.add(noon.Add(time.Hour), self, audit.EffectEnded{Number: 2, State: audit.EffectStateSucceeded})
		},
		"the first attempt was in doubt and a later one succeeded": func(h *scenario) {
			h.effects[0].State = audit.EffectStateBegun
			second := h.effects[0]
			second.Number, second.State = 2, audit.EffectStateSucceeded
			h.effects = append(h.effects, second)
			h.drop("effect.ended")
			begun := h.records[1].Body.(audit.EffectBegun)
			begun.Number = 2
			h.add(noon.Add(time.Hour), self, begun)
			h.add(noon.Add(time.Hour), self, audit.EffectEnded{Number: 2, State: audit.EffectStateSucceeded})
		},
		"a policy is not in a group": func(h *scenario) {
			h.records[0].Actor = audit.Actor{Principal: "default", Kind: audit.ActorPolicy}
			h.members = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := consistentScenario()
			change(h)
			if got := h.reconcile(t); len(got) != 0 {
				t.Errorf("found %+v", got)
			}
		})
	}
}

func TestReconcile_SortsBySeverity(t *testing.T) {
	h := consistentScenario()
	h.effects[0].Digest = "other"
	h.drop("effect.ended")
	clear(h.members)
	got := h.reconcile(t)
	if len(got) != 3 || got[0].Severity != reconcile.SeverityPage || got[1].Severity != reconcile.SeverityWarn || got[2].Severity != reconcile.SeverityInfo {
		t.Errorf("found %+v", got)
	}
}

func TestReconcile_ReadErrorIsReturned(t *testing.T) {
	torn := errors.New("torn")
	for name, books := range map[string]reconcile.Input{
		"audit":      {Audit: failing[audit.Record](torn)},
		"effects":    {Effects: failing[reconcile.EffectEntry](torn)},
		"interrupts": {Interrupts: failing[reconcile.InterruptEntry](torn)},
		"clicks":     {Clicks: failing[reconcile.ChannelClick](torn)},
	} {
		if got, err := reconcile.Run(books); !errors.Is(err, torn) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

func TestParseRecords_SkipsUnknownKinds(t *testing.T) {
	w := newLog(t, "acme", 3)
	newer := []byte(strings.Replace(string(w.raw[1]), "request.claimed", "request.dreamed", 1))
	var got []int64
	for r, err := range audit.ParseRecords(seq(w.raw[0], newer, w.raw[2])) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("read %v", got)
	}
	for _, err := range audit.ParseRecords(seq([]byte("x"))) {
		if !errors.Is(err, audit.ErrUnreadable) {
			t.Errorf("no record: %v", err)
		}
	}
}
