package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata/store"
)

// allowed is an effect for which nobody was asked.
func allowed(id string, number int) store.NewEffect {
	return store.NewEffect{
		Interrupt: id, Number: number, Digest: "action-" + id, Key: "k",
		Allowed: &store.Allowed{Address: "node:" + id, Kind: "refund", Data: []byte("data of " + id), By: "small refunds v3"},
	}
}

func testAllowed(t *testing.T, d *desk) {
	lease := d.begin("r")
	line, begun, err := d.runs.Begin(d.ctx(), lease, allowed("i", 1))
	d.must(err)
	if !begun || line.State != store.Started || line.Digest != "action-i" || line.Fence != lease.Fence || line.Run != "r" || line.Allowed != nil {
		t.Errorf("begun %v: %+v", begun, line)
	}
	i := d.interrupt("r", "i")
	if i.At.IsZero() || !i.Created.Equal(i.At) {
		t.Errorf("asked at %v, decided at %v", i.Created, i.At)
	}
	i.At, i.Created = time.Time{}, time.Time{}
	want := store.Interrupt{
		Account: "acme", Run: "r",
		NewInterrupt: store.NewInterrupt{ID: "i", Address: "node:i", Kind: "refund", Data: []byte("data of i"), Action: "action-i"},
		State:        store.Decided, Verdict: store.Approve, Final: "action-i", By: "small refunds v3", Source: store.Policy, Applied: true,
	}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Error(diff)
	}

	again, begun, err := d.runs.Begin(d.ctx(), lease, allowed("i", 1))
	d.must(err)
	if begun || again.State != store.Started || !again.Started.Equal(line.Started) {
		t.Errorf("begun twice: %+v", again)
	}
	second := allowed("i", 2)
	if _, begun, err = d.runs.Begin(d.ctx(), lease, second); err != nil || !begun {
		t.Errorf("the second effect of it: %v, %v", begun, err)
	}
	second.Number, second.Allowed = 3, nil // the policy's word is an approve like any other
	if _, begun, err = d.runs.Begin(d.ctx(), lease, second); err != nil || !begun {
		t.Errorf("the third effect of it: %v, %v", begun, err)
	}
	d.gets(approve("r", "1", "i"), store.AlreadyDecided)
}

func testAllowedElse(t *testing.T, d *desk) {
	lease := d.begin("r")
	_, _, err := d.runs.Begin(d.ctx(), lease, allowed("i", 1))
	d.must(err)
	other, none := allowed("i", 1), allowed("none", 1)
	other.Digest, none.Digest = "something else", ""
	for name, effect := range map[string]store.NewEffect{"other arguments": other, "no arguments": none} {
		if _, begun, err := d.runs.Begin(d.ctx(), lease, effect); !errors.Is(err, store.ErrNotApproved) || begun {
			t.Errorf("%s: %v, %v", name, begun, err)
		}
	}
	old := lease
	old.Fence--
	_, _, err = d.runs.Begin(d.ctx(), old, allowed("fenced", 1))
	d.wants(err, store.ErrFenced)
	if all, err := d.runs.Interrupts(d.ctx(), "acme", "r"); err != nil || len(all) != 1 {
		t.Errorf("what was refused has left %+v, %v", all, err)
	}
}

func testAllowedAsked(t *testing.T, d *desk) {
	d.waiting("r", "withdrawn", "rejected", "approved", "open")
	d.gets(approve("r", "1", "approved"), store.Accepted)
	no := approve("r", "2", "rejected")
	no.Answers[0].Verdict, no.Answers[0].Final = store.Reject, ""
	d.gets(no, store.Accepted)
	_, err := d.runs.Rest(d.ctx(), d.claimed("w", "r").Lease, store.Rest{Status: store.Waiting, Open: questions("open", "next"), Applied: []string{"approved", "rejected"}})
	d.must(err)
	d.gets(approve("r", "3", "next"), store.Accepted)
	lease := d.claimed("w", "r").Lease
	d.waiting("other", "elsewhere")
	before, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	for _, id := range []string{"withdrawn", "rejected", "approved", "open", "elsewhere"} {
		if _, begun, err := d.runs.Begin(d.ctx(), lease, allowed(id, 1)); !errors.Is(err, store.ErrNotApproved) || begun {
			t.Errorf("%s: %v, %v; that is up to people", id, begun, err)
		}
	}
	after, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

// testAllowedStays wants the word of a policy to be nobody's work, and to stay when the run asks for something else.
func testAllowedStays(t *testing.T, d *desk) {
	lease := d.begin("r")
	_, _, err := d.runs.Begin(d.ctx(), lease, allowed("first", 1))
	d.must(err)
	d.ask(lease, "i")
	d.gets(approve("r", "1", "i"), store.Accepted)
	work := d.claimed("w", "r")
	if len(work.Decided) != 1 || work.Decided[0].ID != "i" {
		t.Errorf("the work is %+v", work.Decided)
	}
	_, _, err = d.runs.Begin(d.ctx(), work.Lease, allowed("last", 1))
	d.must(err)
	all, err := d.runs.Interrupts(d.ctx(), "acme", "r")
	d.must(err)
	if len(all) != 3 || all[0].ID != "first" || all[1].ID != "i" || all[2].ID != "last" || all[0].State != store.Decided {
		t.Errorf("the interrupts are %+v", all)
	}
}

func testAllowedRace(t *testing.T, d *desk) {
	lease := d.begin("r")
	begun := make([]bool, 8)
	var wg sync.WaitGroup
	for n := range begun {
		wg.Go(func() {
			var err error
			if _, begun[n], err = d.runs.Begin(d.ctx(), lease, allowed("i", 1)); err != nil {
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
		t.Errorf("begun %d times, by the word of %+v, %v", times, all, err)
	}
}
