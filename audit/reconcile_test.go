package audit_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/audit"
)

// history is a small company with its books. It begins in order: one approval by alice of the group dba, one effect, all on record.
type history struct {
	records    []audit.Record
	effects    []audit.EffectLine
	interrupts []audit.InterruptLine
	clicks     []audit.ClickLine
	payloads   map[string]audit.Payload
	members    map[string]audit.Membership
	now        time.Time
}

func inOrder() *history {
	args := audit.NewPayload([]byte("digest of pay(100)"))
	action := audit.Action{Name: "pay", Args: args.Digest()}
	h := &history{
		effects:    []audit.EffectLine{{Run: "run_1", Interrupt: "int_1", Number: 1, Digest: "digest of pay(100)", Key: "eff_1", State: audit.Succeeded, Begun: noon.Add(time.Minute)}},
		interrupts: []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1", Outcome: audit.OutcomeApprove, Applied: true, Over: true}},
		clicks:     []audit.ClickLine{{Key: "click_1", Surface: "slack", At: noon}},
		payloads:   map[string]audit.Payload{args.ID: {ID: args.ID, Salt: args.Salt}},
		members:    map[string]audit.Membership{"alice/dba": audit.MemberYes},
		now:        noon.Add(24 * time.Hour),
	}
	h.add(noon, alice, audit.Decided{Verb: audit.Approve, Settles: true, Action: action, Groups: []string{"dba"}, Click: audit.Click{Key: "click_1"},
		Quorum: audit.Quorum{Need: []audit.Need{{Group: "dba", Count: 1}}}})
	h.add(noon.Add(time.Minute), self, audit.EffectBegun{Number: 1, Action: action, Key: "eff_1"})
	h.add(noon.Add(2*time.Minute), self, audit.EffectEnded{Number: 1, State: audit.Succeeded})
	return h
}

func (h *history) add(at time.Time, actor audit.Actor, body audit.Body) {
	r := audit.New(at, actor, audit.Place{Run: "run_1", Interrupt: "int_1"}, body)
	r.Seq = int64(len(h.records) + 1)
	h.records = append(h.records, r)
}

// drop forgets the records of a kind.
func (h *history) drop(kind audit.Kind) {
	h.records = slices.DeleteFunc(h.records, func(r audit.Record) bool { return r.Kind() == kind })
}

// byRule has the effect allowed by a rule, so that nobody was asked.
func (h *history) byRule() {
	h.drop("request.decided")
	h.interrupts, h.clicks = nil, nil
	intent := h.records[0].Body.(audit.EffectBegun)
	intent.Ruling = audit.Ruling{Rules: []string{"small"}}
	h.records[0].Body = intent
}

// again has the effect succeed a second time.
func (h *history) again(key string, repeatable bool) {
	second := h.effects[0]
	second.Number, second.Key = 2, key
	h.effects = append(h.effects, second)
	intent := h.records[1].Body.(audit.EffectBegun)
	intent.Repeatable = repeatable
	h.records[1].Body = intent
	intent.Number, intent.Key = 2, key
	h.add(noon.Add(time.Hour), self, intent)
	h.add(noon.Add(time.Hour), self, audit.EffectEnded{Number: 2, State: audit.Succeeded})
}

func (h *history) decide(change func(*audit.Decided)) {
	d := h.records[0].Body.(audit.Decided)
	change(&d)
	h.records[0].Body = d
}

func (h *history) reconcile(t *testing.T) []audit.Finding {
	t.Helper()
	findings, err := audit.Reconcile(audit.Books{
		Audit: seq(h.records...), Effects: seq(h.effects...), Interrupts: seq(h.interrupts...), Clicks: seq(h.clicks...),
		Payload: func(id string) (audit.Payload, bool) { p, ok := h.payloads[id]; return p, ok },
		Member:  func(principal, group string, _ time.Time) audit.Membership { return h.members[principal+"/"+group] },
		Now:     h.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestReconcile_BooksInOrderHaveNoFindings(t *testing.T) {
	if got := inOrder().reconcile(t); len(got) != 0 {
		t.Errorf("found %+v", got)
	}
}

func TestReconcile_Findings(t *testing.T) {
	type want struct {
		severity audit.Severity
		code     audit.FindingCode
		text     string // a part of the sentence
	}
	edited := audit.NewPayload([]byte("digest of pay(90)"))
	for name, test := range map[string]struct {
		change func(*history)
		want   []want
	}{
		"effect without a decision": {func(h *history) { h.drop("request.decided"); h.interrupts, h.clicks = nil, nil },
			[]want{{audit.Page, audit.RunNotApproved, "holds no approval"}}},
		"effect by a rule": {func(h *history) { h.byRule() }, nil},
		"effect by a rule, with other arguments (I6)": {func(h *history) { h.byRule(); h.effects[0].Digest = "digest of pay(1000)" },
			[]want{{audit.Page, audit.DigestsDiffer, "other arguments than were approved"}}},
		"effect by a rule, although people were asked": {func(h *history) {
			h.byRule()
			h.interrupts = []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1"}}
		},
			[]want{{audit.Page, audit.RunNotApproved, "holds no approval"}}},
		"effect after a rejection": {func(h *history) {
			h.decide(func(d *audit.Decided) { d.Verb = audit.Reject })
			h.interrupts[0].Outcome = audit.OutcomeReject
		},
			[]want{{audit.Page, audit.RunNotApproved, "is no approval (reject)"}}},
		"effect after an expiry (I11)": {func(h *history) {
			h.records[0].Body = audit.Expired{Deadline: audit.At(noon)}
			h.interrupts[0].Outcome, h.clicks = audit.OutcomeExpire, nil
		},
			[]want{{audit.Page, audit.RunNotApproved, "is no approval (expire)"}}},
		"effect before the approval": {func(h *history) { h.effects[0].Begun = noon.Add(-time.Second) },
			[]want{{audit.Page, audit.RunNotApproved, "before it was approved"}}},
		"one word of two that were needed": {func(h *history) { h.decide(func(d *audit.Decided) { d.Settles = false }) },
			[]want{{audit.Page, audit.DecisionNotInAudit, "the record does not"}, {audit.Page, audit.RunNotApproved, "holds no approval"}}},
		"other arguments in the ledger (I6)": {func(h *history) { h.effects[0].Digest = "digest of pay(1000)" },
			[]want{{audit.Page, audit.DigestsDiffer, "other arguments than were approved"}}},
		"other arguments in the record itself (I6)": {func(h *history) {
			h.decide(func(d *audit.Decided) { d.Edited = edited.Digest() })
			h.payloads[edited.ID], h.effects[0].Digest = edited, "digest of pay(90)"
		},
			[]want{{audit.Page, audit.DigestsDiffer, "the record itself says so"}}},
		"the payload is erased": {func(h *history) { clear(h.payloads) },
			[]want{{audit.Info, audit.DigestGone, "erased"}}},
		"done twice": {func(h *history) { h.again("eff_1", false) },
			[]want{{audit.Page, audit.RanTwice, "approved once, and done 2 times"}}},
		"repeated under its key, which the target knows": {func(h *history) { h.again("eff_1", true) }, nil},
		"repeated under another key, although the target knows keys": {func(h *history) { h.again("eff_2", true) },
			[]want{{audit.Page, audit.RanTwice, "approved once, and done 2 times"}}},
		"repeated under no key": {func(h *history) { h.effects[0].Key = ""; h.again("", true) },
			[]want{{audit.Page, audit.RanTwice, "approved once, and done 2 times"}}},
		"intent not on record (I12)": {func(h *history) { h.drop("effect.begun") },
			[]want{{audit.Page, audit.IntentNotRecorded, "does not say that it was begun"}}},
		"receipt not on record (I12)": {func(h *history) { h.drop("effect.ended") },
			[]want{{audit.Warn, audit.ReceiptNotRecorded, "has ended (succeeded)"}}},
		"a line of the ledger is gone": {func(h *history) { h.effects = nil; h.interrupts[0].Over = false },
			[]want{{audit.Page, audit.ApprovedNotRun, "nothing was done since"}, {audit.Page, audit.IntentNotInLedger, "the ledger has no line"}}},
		"nobody knows how it ended": {func(h *history) { h.effects[0].State = audit.Begun; h.drop("effect.ended") },
			[]want{{audit.Warn, audit.EffectInDoubt, "nobody knows how it ended"}}},
		"approved, and the resume was lost (I2)": {func(h *history) {
			h.effects, h.interrupts = nil, []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1", Outcome: audit.OutcomeApprove}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{audit.Page, audit.ApprovedNotRun, "nothing was done since"}}},
		"approved, taken, and never done": {func(h *history) { h.effects = nil; h.drop("effect.begun"); h.drop("effect.ended") },
			[]want{{audit.Warn, audit.ApprovedNotRun, "over without having done it"}}},
		"approved, and done by an agent elsewhere": {func(h *history) {
			h.effects = nil
			h.interrupts[0].Elsewhere = true
			h.drop("effect.begun")
			h.drop("effect.ended")
		}, nil},
		"approved, and an agent elsewhere never heard of it (I2)": {func(h *history) {
			h.effects, h.interrupts = nil, []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1", Outcome: audit.OutcomeApprove, Elsewhere: true}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{audit.Page, audit.DecisionLost, "the run has not taken it"}}},
		"answered, and the receiver of an agent elsewhere does not take it yet": {func(h *history) {
			h.effects, h.interrupts = nil, []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1", Outcome: audit.OutcomeApprove, Elsewhere: true, OnItsWay: true}}
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{audit.Warn, audit.DecisionLost, "it is sent again"}}},
		"approved, and the run was cancelled": {func(h *history) {
			h.effects = nil
			h.interrupts[0].Applied = false
			h.drop("effect.begun")
			h.drop("effect.ended")
		},
			[]want{{audit.Info, audit.ApprovedNotRun, "over before it did anything"}}},
		"an answer that the run never got (I2)": {func(h *history) {
			h.effects, h.interrupts = nil, []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1"}}
			h.records = h.records[:1]
			h.decide(func(d *audit.Decided) { d.Verb = audit.Respond; d.Action = audit.Action{} })
		},
			[]want{{audit.Page, audit.DecisionLost, "has not taken it"}}},
		"the run knows another verdict (I1)": {func(h *history) { h.interrupts[0].Outcome = audit.OutcomeReject },
			[]want{{audit.Page, audit.OutcomesDiffer, "The record says approve of int_1, and the run reject."}}},
		"two words that settle (I1)": {func(h *history) {
			h.add(noon.Add(time.Hour), clock, audit.Expired{Deadline: audit.At(noon)})
		},
			[]want{{audit.Page, audit.DecidedTwice, "settled by record 1 (approve), and again by record 4 (expire)"}}},
		"a click without a trace": {func(h *history) {
			h.clicks = append(h.clicks, audit.ClickLine{Key: "click_2", Surface: "slack", At: noon})
		},
			[]want{{audit.Warn, audit.ClickLost, "delivery click_2"}}},
		"not a member any more": {func(h *history) { h.members["alice/dba"] = audit.MemberNo },
			[]want{{audit.Page, audit.NotInGroup, "was no member then"}}},
		"nobody knows who was a member": {func(h *history) { clear(h.members) },
			[]want{{audit.Info, audit.GroupUnknown, "Nobody can tell"}}},
		"a word for no group": {func(h *history) { h.decide(func(d *audit.Decided) { d.Groups = nil }) },
			[]want{{audit.Page, audit.NotInGroup, "for none of them"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := inOrder()
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
				if f.Code != audit.ClickLost && (f.Run != "run_1" || f.Interrupt != "int_1") {
					t.Errorf("%+v does not say where", f)
				}
			}
		})
	}
}

func TestReconcile_NothingIsWrongYet(t *testing.T) {
	for name, change := range map[string]func(*history){
		"what is young may be under way": func(h *history) {
			h.now = noon.Add(10 * time.Minute)
			h.effects, h.interrupts = nil, []audit.InterruptLine{{Run: "run_1", Interrupt: "int_1", Outcome: audit.OutcomeApprove}}
			h.records = h.records[:1]
			h.clicks = append(h.clicks, audit.ClickLine{Key: "click_2", At: noon})
		},
		"an effect under way": func(h *history) {
			h.now, h.effects[0].State, h.records = noon.Add(2*time.Minute), audit.Begun, h.records[:2]
		},
		"a refused click is no lost one": func(h *history) {
			h.clicks = append(h.clicks, audit.ClickLine{Key: "click_2", At: noon})
			h.add(noon, alice, audit.Refused{Why: audit.RefusedAlreadyDecided, Click: audit.Click{Key: "click_2"}})
		},
		"a grant takes the place of a decision": func(h *history) {
			d := h.records[0].Body.(audit.Decided)
			h.records[0].Body = audit.GrantUsed{Grant: "grt_1", Action: d.Action}
			h.clicks = nil
		},
		"the first try failed": func(h *history) {
			h.effects[0].State = audit.Failed
			second := h.effects[0]
			second.Number, second.State = 2, audit.Succeeded
			h.effects = append(h.effects, second)
			begun := h.records[1].Body.(audit.EffectBegun)
			begun.Number = 2
			h.add(noon.Add(time.Hour), self, begun)
			h.add(noon.Add(time.Hour), self, audit.EffectEnded{Number: 2, State: audit.Succeeded})
		},
		"a policy is in no group": func(h *history) {
			h.records[0].Actor = audit.Actor{Principal: "default", Kind: audit.Policy}
			h.members = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := inOrder()
			change(h)
			if got := h.reconcile(t); len(got) != 0 {
				t.Errorf("found %+v", got)
			}
		})
	}
}

func TestReconcile_TheWorstComesFirst(t *testing.T) {
	h := inOrder()
	h.effects[0].Digest = "other"
	h.drop("effect.ended")
	clear(h.members)
	got := h.reconcile(t)
	if len(got) != 3 || got[0].Severity != audit.Page || got[1].Severity != audit.Warn || got[2].Severity != audit.Info {
		t.Errorf("found %+v", got)
	}
}

func TestReconcile_ABookThatCannotBeReadIsAnError(t *testing.T) {
	torn := errors.New("torn")
	for name, books := range map[string]audit.Books{
		"audit":      {Audit: failing[audit.Record](torn)},
		"effects":    {Effects: failing[audit.EffectLine](torn)},
		"interrupts": {Interrupts: failing[audit.InterruptLine](torn)},
		"clicks":     {Clicks: failing[audit.ClickLine](torn)},
	} {
		if got, err := audit.Reconcile(books); !errors.Is(err, torn) {
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

func TestRecords_PassesOverNewerKinds(t *testing.T) {
	w := aLog(t, "acme", 3)
	newer := []byte(strings.Replace(string(w.raw[1]), "request.claimed", "request.dreamed", 1))
	var got []int64
	for r, err := range audit.Records(seq(w.raw[0], newer, w.raw[2])) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("read %v", got)
	}
	for _, err := range audit.Records(seq([]byte("x"))) {
		if !errors.Is(err, audit.ErrUnreadable) {
			t.Errorf("no record: %v", err)
		}
	}
}
