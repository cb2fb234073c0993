package storetest

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
)

func (d *desk) release(lease store.Lease, release store.Release) {
	d.t.Helper()
	d.must(d.runs.Release(d.ctx(), lease, release))
}

func (d *desk) attempts(id string, want int) {
	d.t.Helper()
	run, err := d.runs.Get(d.ctx(), "acme", "key-"+id)
	d.must(err)
	if run.Attempts != want {
		d.t.Fatalf("%d attempts are counted, not %d", run.Attempts, want)
	}
}

// ready is a run with something to do.
func (d *desk) ready(id string) {
	d.t.Helper()
	d.waiting(id, "i-"+id)
	d.gets(approve(id, "resume-"+id, "i-"+id), store.Accepted)
}

func testDelay(t *testing.T, d *desk) {
	d.ready("r")
	d.release(d.claimed("w", "r").Lease, store.Release{Delay: 20 * time.Millisecond})
	d.later(20 * time.Millisecond)
	d.claimed("w", "r")
}

func testAttempts(t *testing.T, d *desk) {
	d.ready("r")
	lease := d.claimed("w", "r").Lease
	d.attempts("r", 0) // to be claimed is none
	d.must(d.runs.Renew(d.ctx(), lease, time.Nanosecond))
	d.later(10 * time.Millisecond)
	work := d.claimed("x", "r")
	if !work.TakenOver || work.Run.Attempts != 1 {
		t.Errorf("taken over as %+v", work)
	}
	d.release(work.Lease, store.Release{})
	d.attempts("r", 2)
	work = d.claimed("y", "r")
	if work.TakenOver || work.Run.Attempts != 2 {
		t.Errorf("claimed as %+v", work)
	}
	_, err := d.runs.Rest(d.ctx(), work.Lease, store.Rest{Status: store.Waiting, Open: questions("next"), Applied: []string{"i-r"}})
	d.must(err)
	d.attempts("r", 0)
}

func testPark(t *testing.T, d *desk) {
	d.waiting("r", "i1", "i2")
	d.gets(approve("r", "1", "i1"), store.Accepted)
	lease := d.claimed("w", "r").Lease
	_, _, err := d.runs.Begin(d.ctx(), lease, store.NewEffect{Interrupt: "i1", Number: 1, Digest: "action-i1", Key: "k"})
	d.must(err)
	d.release(lease, store.Release{Park: true})
	d.is("r", store.Parked)
	d.attempts("r", 1)
	d.wants(d.runs.Renew(d.ctx(), lease, aWhile), store.ErrFenced)
	run, err := d.runs.Get(d.ctx(), "acme", "key-r")
	d.must(err)
	if run.Owner != "" || !run.Until.IsZero() || string(run.Outcome) != "waits" {
		t.Errorf("the run is %+v", run)
	}

	// Nothing but a retry ends that: no decision, no end of an effect, no worker.
	d.gets(approve("r", "2", "i2"), store.Accepted)
	d.must(d.runs.End(d.ctx(), store.EffectEnd{Account: "acme", Interrupt: "i1", Number: 1, State: store.Succeeded}))
	if work := d.claim("w"); work != nil {
		t.Fatalf("claimed %+v, which is parked", work)
	}
	d.is("r", store.Parked)

	run, err = d.runs.Retry(d.ctx(), "acme", "r", store.Beside{})
	d.must(err)
	if run.ID != "r" || run.Status != store.Ready || run.Attempts != 0 || run.Fence != lease.Fence {
		t.Errorf("retried as %+v", run)
	}
	if work := d.claimed("w", "r"); len(work.Decided) != 2 || work.Run.Attempts != 0 || work.TakenOver {
		t.Errorf("the work is %+v", work)
	}
}

func testRetry(t *testing.T, d *desk) {
	d.ready("r")
	d.release(d.claimed("w", "r").Lease, store.Release{Park: true})
	run, err := d.runs.Retry(d.ctx(), "acme", "r", store.Beside{})
	d.must(err)
	if run.Status != store.Ready || run.ID != "r" {
		t.Errorf("retried as %+v", run)
	}
	for id, account := range map[string]string{"r": "acme", "running": "acme", "waiting": "acme", "over": "acme", "parked": "other", "unknown": "acme"} {
		switch id {
		case "running":
			d.begin("running")
		case "waiting":
			d.waiting("waiting", "i")
		case "over":
			d.waiting("over", "j")
			_, err := d.runs.Cancel(d.ctx(), "acme", "over", store.Cancelled, nil, store.Beside{})
			d.must(err)
		case "parked":
			d.release(d.begin("parked"), store.Release{Park: true})
		}
		before, _ := d.runs.Get(d.ctx(), "acme", "key-"+id)
		_, err := d.runs.Retry(d.ctx(), account, id, store.Beside{})
		d.wants(err, store.ErrNotFound)
		if after, _ := d.runs.Get(d.ctx(), "acme", "key-"+id); after.Status != before.Status {
			t.Errorf("%s was %s and is %s", id, before.Status, after.Status)
		}
	}
}

func testCancelParked(_ *testing.T, d *desk) {
	d.release(d.begin("r"), store.Release{Park: true})
	_, err := d.runs.Cancel(d.ctx(), "acme", "r", store.Cancelled, nil, store.Beside{})
	d.must(err)
	_, err = d.runs.Retry(d.ctx(), "acme", "r", store.Beside{})
	d.wants(err, store.ErrNotFound)
	d.is("r", store.Cancelled)
}
