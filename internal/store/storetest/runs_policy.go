package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/internal/store"
)

// allowedEffect returns an effect that a policy allows.
func allowedEffect(id string, number int) store.NewEffect {
	return store.NewEffect{
		Interrupt: id, Attempt: number, ActionDigest: "action-" + id, IdempotencyKey: "k",
		Ruling: &store.PolicyRuling{Address: "node:" + id, Kind: "refund", Data: []byte("data of " + id), By: "small refunds v3"},
	}
}

func testPolicyRuling(t *testing.T, d *runsTester) {
	lease := d.create("r")
	line, begun, err := d.runs.BeginEffect(d.ctx(), lease, allowedEffect("i", 1))
	d.must(err)
	if !begun || line.State != store.EffectStarted || line.ActionDigest != "action-i" || line.Fence != lease.Fence || line.Run != "r" || line.Ruling != nil {
		t.Errorf("begun %v: %+v", begun, line)
	}
	i := d.interrupt("r", "i")
	if i.DecidedAt.IsZero() || !i.Created.Equal(i.DecidedAt) {
		t.Errorf("asked at %v, decided at %v", i.Created, i.DecidedAt)
	}
	i.DecidedAt, i.Created = time.Time{}, time.Time{}
	want := store.Interrupt{
		Account: "acme", Run: "r",
		NewInterrupt: store.NewInterrupt{ID: "i", Address: "node:i", Kind: "refund", Data: []byte("data of i"), ActionDigest: "action-i"},
		State:        store.InterruptDecided, Verdict: store.VerdictApprove, ApprovedDigest: "action-i", DecidedBy: "small refunds v3", Source: store.SourcePolicy, Applied: true,
	}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Error(diff)
	}

	again, begun, err := d.runs.BeginEffect(d.ctx(), lease, allowedEffect("i", 1))
	d.must(err)
	if begun || again.State != store.EffectStarted || !again.Started.Equal(line.Started) {
		t.Errorf("begun twice: %+v", again)
	}
	second := allowedEffect("i", 2)
	if _, begun, err = d.runs.BeginEffect(d.ctx(), lease, second); err != nil || !begun {
		t.Errorf("the second effect of it: %v, %v", begun, err)
	}
	second.Attempt, second.Ruling = 3, nil // the ruling is an approval like any other
	if _, begun, err = d.runs.BeginEffect(d.ctx(), lease, second); err != nil || !begun {
		t.Errorf("the third effect of it: %v, %v", begun, err)
	}
	d.wantResult(approve("r", "1", "i"), store.ResultAlreadyDecided)
}

func testPolicyRulingOtherAction(t *testing.T, d *runsTester) {
	lease := d.create("r")
	_, _, err := d.runs.BeginEffect(d.ctx(), lease, allowedEffect("i", 1))
	d.must(err)
	other, none := allowedEffect("i", 1), allowedEffect("none", 1)
	other.ActionDigest, none.ActionDigest = "something else", ""
	for name, effect := range map[string]store.NewEffect{"other arguments": other, "no arguments": none} {
		if _, begun, err := d.runs.BeginEffect(d.ctx(), lease, effect); !errors.Is(err, store.ErrNotApproved) || begun {
			t.Errorf("%s: %v, %v", name, begun, err)
		}
	}
	old := lease
	old.Fence--
	_, _, err = d.runs.BeginEffect(d.ctx(), old, allowedEffect("fenced", 1))
	d.wantErr(err, store.ErrFenced)
	if all, err := d.runs.Interrupts(d.ctx(), "acme", "r"); err != nil || len(all) != 1 {
		t.Errorf("the rejected call has left %+v, %v", all, err)
	}
}

func testPolicyRulingOfAskedInterrupt(t *testing.T, d *runsTester) {
	d.waiting("r", "withdrawn", "rejected", "approved", "open")
	d.wantResult(approve("r", "1", "approved"), store.ResultAccepted)
	no := approve("r", "2", "rejected")
	no.Answers[0].Verdict, no.Answers[0].ApprovedDigest = store.VerdictReject, ""
	d.wantResult(no, store.ResultAccepted)
	_, err := d.runs.EndExecution(d.ctx(), d.claimed("w", "r").Lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: newInterrupts("open", "next"), Applied: []string{"approved", "rejected"}})
	d.must(err)
	d.wantResult(approve("r", "3", "next"), store.ResultAccepted)
	lease := d.claimed("w", "r").Lease
	d.waiting("other", "elsewhere")
	before, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	for _, id := range []string{"withdrawn", "rejected", "approved", "open", "elsewhere"} {
		if _, begun, err := d.runs.BeginEffect(d.ctx(), lease, allowedEffect(id, 1)); !errors.Is(err, store.ErrNotApproved) || begun {
			t.Errorf("%s: %v, %v; people decide this", id, begun, err)
		}
	}
	after, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

// testPolicyRulingStays checks that a ruling is not open work, and that it stays when the run
// raises another interrupt.
func testPolicyRulingStays(t *testing.T, d *runsTester) {
	lease := d.create("r")
	_, _, err := d.runs.BeginEffect(d.ctx(), lease, allowedEffect("first", 1))
	d.must(err)
	d.endWaiting(lease, "i")
	d.wantResult(approve("r", "1", "i"), store.ResultAccepted)
	work := d.claimed("w", "r")
	if len(work.Decided) != 1 || work.Decided[0].ID != "i" {
		t.Errorf("claimed %+v", work.Decided)
	}
	_, _, err = d.runs.BeginEffect(d.ctx(), work.Lease, allowedEffect("last", 1))
	d.must(err)
	all, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	if len(all) != 3 || all[0].ID != "first" || all[1].ID != "i" || all[2].ID != "last" || all[0].State != store.InterruptDecided {
		t.Errorf("the interrupts are %+v", all)
	}
}

func testPolicyRulingRace(t *testing.T, d *runsTester) {
	lease := d.create("r")
	begun := make([]bool, 8)
	var wg sync.WaitGroup
	for n := range begun {
		wg.Go(func() {
			var err error
			if _, begun[n], err = d.runs.BeginEffect(d.ctx(), lease, allowedEffect("i", 1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	times := 0
	for _, one := range begun {
		if one {
			times++
		}
	}
	if all, err := d.runs.Interrupts(d.ctx(), "acme", "r"); err != nil || len(all) != 1 || times != 1 {
		t.Errorf("begun %d times, by the ruling %+v, %v", times, all, err)
	}
}
