//go:build unix

package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
)

// A powerStep is a call. What it says is the same whenever it is called on the same book.
type powerStep struct {
	name  string
	call  func(ctx context.Context, b *powerBook) (string, error)
	again string // what it says if it is repeated because nobody knew that it had come through
	life  int    // whose step it is, among lives that are mixed
	group []powerStep
}

// same is said again by a call that says the same.
const same = "the same"

// says is what a call says that came through: its result, or an error that the port names.
func (p powerStep) says(ctx context.Context, b *powerBook) (says string, unknown error) {
	says, err := p.call(ctx, b)
	if slices.ContainsFunc(known, func(told error) bool { return errors.Is(err, told) }) {
		return err.Error(), nil
	}
	return says, err
}

// repeated is what a step that said this says when it is repeated.
func (p powerStep) repeated(said string) string {
	switch {
	case p.group != nil:
		parts := strings.Split(said, saidTogether)
		for n, member := range p.group {
			parts[n] = member.repeated(parts[n])
		}
		return strings.Join(parts, saidTogether)
	case p.again == same:
		return said
	}
	return p.again
}

// saidTogether is between what the steps of a group say.
const saidTogether = " | "

// groupStep does steps in one transaction.
func groupStep(group ...powerStep) powerStep {
	call := func(ctx context.Context, b *powerBook) (string, error) {
		said, errs := make([]string, len(group)), make([]error, len(group))
		var calls []func(*Store)
		for n, step := range group {
			calls = append(calls, func(s *Store) { said[n], errs[n] = step.says(ctx, &powerBook{Store: s}) })
		}
		together(b.Store, calls...)
		return strings.Join(said, saidTogether), errors.Join(errs...)
	}
	return powerStep{name: "group", call: call, group: group}
}

// powerLife is one run of its own, from its beginning to its end.
type powerLife func(run string) []powerStep

// powerLives have every write of the port in them.
var powerLives = []powerLife{approvedLife, rejectedLife, expiredLife, doubtfulLife, releasedLife, parkedLife, keptLife, deskLife}

// livesInOrder is a life of each kind, with a restart now and then.
func livesInOrder() (steps []powerStep) {
	for n, life := range powerLives {
		if n%4 == 0 {
			steps = append(steps, restart)
		}
		steps = append(steps, life(fmt.Sprint("r", n))...)
	}
	return steps
}

// mixedLives is a life of each kind, a step of this one and a step of that one, with somebody who reads for longer, and restarts.
func mixedLives(r *rand.Rand) []powerStep {
	var lives [][]powerStep
	for n, life := range powerLives {
		steps := life(fmt.Sprint("r", n))
		for i := range steps {
			steps[i].life = n + 1
		}
		lives = append(lives, steps)
	}
	steps := []powerStep{restart}
	for len(lives) > 0 {
		n := r.IntN(len(lives))
		steps = append(steps, lives[n][0])
		if lives[n] = lives[n][1:]; len(lives[n]) == 0 {
			lives = slices.Delete(lives, n, n+1)
		}
		switch r.IntN(12) {
		case 0:
			steps = append(steps, hold)
		case 1, 2:
			steps = append(steps, letGo)
		case 3:
			steps = append(steps, restart)
		}
	}
	return steps
}

// groupedLives are mixed lives in which some steps of different ones come together.
func groupedLives(r *rand.Rand) (steps []powerStep) {
	var group []powerStep
	end := func() {
		if len(group) > 1 {
			group = []powerStep{groupStep(group...)}
		}
		steps, group = append(steps, group...), nil
	}
	for _, step := range mixedLives(r) {
		alone := step.life == 0 || step.name == "Vacuum" || step.name == "Reseal" // which is no write, and which are several
		again := slices.ContainsFunc(group, func(member powerStep) bool { return member.life == step.life })
		if alone || again || r.IntN(3) == 0 {
			end()
		}
		if group = append(group, step); alone {
			end()
		}
	}
	end()
	return steps
}

var (
	hold    = doStep("hold", same, func(ctx context.Context, b *powerBook) error { return b.hold(ctx) })
	letGo   = doStep("let go", same, func(ctx context.Context, b *powerBook) error { b.letGo(ctx); return nil })
	restart = doStep("restart", same, func(ctx context.Context, b *powerBook) error {
		return errors.Join(b.close(ctx), b.open(ctx))
	})
)

func approvedLife(run string) []powerStep {
	ask := run + "/ask"
	return []powerStep{
		createStep(run, 0),
		doStep("SetRef", same, func(ctx context.Context, b *powerBook) error {
			return b.SetRef(ctx, powerLease(run, 1), bulk(run, 500))
		}),
		saveStep(run, 1, 0, 5000),
		restStep(run, 1, booktest.Asking(nil, ask, run+"/other")),
		decideStep(booktest.Say(run, run+"/1", store.Approve, ask)),
		claimStep(run),
		beginStep(run, 2, approved(ask)),
		endStep(ask, store.Succeeded),
		saveStep(run, 2, 1, 300),
		restStep(run, 2, store.Rest{Status: store.Completed, Applied: []string{ask}, Outcome: bulk(run, 500)}),
	}
}

func rejectedLife(run string) []powerStep {
	asks := []string{run + "/1", run + "/2", run + "/3"}
	return []powerStep{
		createStep(run, 0),
		doStep("Renew", same, func(ctx context.Context, b *powerBook) error {
			return b.Renew(ctx, powerLease(run, 1), 2*booktest.Long)
		}),
		restStep(run, 1, booktest.Asking(nil, asks...)),
		decideStep(booktest.Say(run, run+"/one", store.Reject, asks[0], asks[1])),
		decideStep(booktest.Say(run, run+"/late", store.Approve, asks[1])),
		claimStep(run),
		restStep(run, 2, booktest.Asking(asks[:2], asks[2])),
		decideStep(booktest.Say(run, run+"/last", store.Approve, asks[2])),
		claimStep(run),
		restStep(run, 3, store.Rest{Status: store.Failed, Applied: asks[2:], Outcome: bulk(run, 100)}),
	}
}

func expiredLife(run string) []powerStep {
	due := booktest.Asking(nil, run+"/due")
	due.Open[0].Timeout = time.Millisecond
	return []powerStep{
		createStep(run, 0),
		restStep(run, 1, due),
		{name: "Expire", call: func(ctx context.Context, b *powerBook) (string, error) {
			expired, err := b.Expire(ctx, time.Time{}, 10, func(i store.Interrupt, _ *store.Paper) store.Beside { return recording("expired", i.ID) })
			return fmt.Sprint(len(expired), " expired"), err
		}, again: "0 expired"},
		claimStep(run),
		restStep(run, 2, store.Rest{Status: store.Completed, Applied: []string{run + "/due"}}),
	}
}

func doubtfulLife(run string) []powerStep {
	ask := run + "/ask"
	return []powerStep{
		createStep(run, 0),
		restStep(run, 1, booktest.Asking(nil, ask)),
		decideStep(booktest.Say(run, run+"/1", store.Approve, ask)),
		claimStep(run),
		beginStep(run, 2, approved(ask)),
		restStep(run, 2, store.Rest{Status: store.Parked, Applied: []string{ask}}),
		endStep(ask, store.Faulted),
		claimStep(run),
		restStep(run, 3, store.Rest{Status: store.Completed}),
	}
}

func releasedLife(run string) []powerStep {
	return []powerStep{
		createStep(run, 0),
		doStep("Release", store.ErrFenced.Error(), func(ctx context.Context, b *powerBook) error {
			return b.Release(ctx, powerLease(run, 1), store.Release{})
		}),
		claimStep(run),
		cancelStep(run, store.Superseded),
		createStep(run, 1),
		cancelStep(run, store.Cancelled),
	}
}

func parkedLife(run string) []powerStep {
	ask := run + "/allowed"
	allowed := store.NewEffect{Interrupt: ask, Number: 1, Digest: "digest", Key: ask, Allowed: &store.Allowed{Kind: "kind", By: "rule", Data: bulk(run, 300)}}
	return []powerStep{
		createStep(run, 0),
		doStep("Release", store.ErrFenced.Error(), func(ctx context.Context, b *powerBook) error {
			return b.Release(ctx, powerLease(run, 1), store.Release{Park: true})
		}),
		{name: "Retry", call: func(ctx context.Context, b *powerBook) (string, error) {
			ready, err := b.Retry(ctx, "acme", run, store.Beside{})
			return string(ready.Status), err
		}, again: store.ErrNotFound.Error()},
		claimStep(run),
		beginStep(run, 2, allowed),
		endStep(ask, store.Succeeded),
		restStep(run, 2, store.Rest{Status: store.Completed}),
		doStep("Forget", same, func(ctx context.Context, b *powerBook) error { return b.Forget(ctx, "acme", run, store.Beside{}) }),
	}
}

func keptLife(run string) []powerStep {
	return []powerStep{
		createStep(run, 0),
		saveStep(run, 1, 0, 6000),
		saveStep(run, 1, 1, 10),
		saveStep(run, 1, 2, 9000),
		{name: "Once", call: func(ctx context.Context, b *powerBook) (string, error) {
			kept, err := b.Once(ctx, run, bulk(run, 100))
			return string(kept), err
		}, again: same},
		doStep("AddCredential", store.ErrExists.Error(), func(ctx context.Context, b *powerBook) error {
			return b.AddCredential(ctx, store.Credential{ID: run + "/key", Account: "acme", Name: "ann", Role: "user", Hash: bulk(run, 32)}, store.Beside{})
		}),
		doStep("RevokeCredential", same, func(ctx context.Context, b *powerBook) error {
			return b.RevokeCredential(ctx, "acme", run+"/key", store.Beside{})
		}),
		{name: "ForgetCredentials", call: func(ctx context.Context, b *powerBook) (string, error) {
			forgotten, err := b.ForgetCredentials(ctx, run+"/key", time.Now().Add(time.Hour), 1)
			return strconv.Itoa(forgotten), err
		}, again: "0"},
		{name: "Reseal", call: func(ctx context.Context, b *powerBook) (string, error) { return "", resealAll(ctx, b, resealOnce(run)) }, again: same},
		doStep("Delete", same, func(ctx context.Context, b *powerBook) error {
			return b.Delete(ctx, store.Key{Account: "acme", Run: run})
		}),
		doStep("Vacuum", same, func(ctx context.Context, b *powerBook) error {
			b.letGo(ctx) // or it would wait
			return b.Vacuum(ctx)
		}),
	}
}

// deskLife has a request before people, and a line in the log for everything that happens.
func deskLife(run string) []powerStep {
	ask := run + "/ask"
	created := booktest.NewRun(run)
	created.Beside = recording("created", run)
	rested := booktest.Asking(nil, ask, run+"/withdrawn")
	rested.Beside = recording("asked", run, requestOf(run, ask, 0), requestOf(run, run+"/withdrawn", 0))
	decided := booktest.Say(run, run+"/1", store.Approve, ask)
	decided.Beside = recording("decided", run, requestOf(run, ask, 2))
	effect, end := approved(ask), store.EffectEnd{Account: "acme", Interrupt: ask, Number: 1, State: store.Succeeded, Beside: recording("ended", run)}
	effect.Beside = recording("begun", run)
	extended := requestOf(run, ask, 1)
	extended.Deadline = powerTime(1_000_000)
	return []powerStep{
		{name: "Create", call: func(ctx context.Context, b *powerBook) (string, error) {
			lease, err := b.Create(ctx, created)
			return fmt.Sprint("fence ", lease.Fence), err
		}, again: store.ErrExists.Error()},
		restStep(run, 1, rested),
		doStep("Amend", store.ErrStale.Error(), func(ctx context.Context, b *powerBook) error {
			return b.Amend(ctx, "acme", recording("viewed", run, extended, store.PaperChange{Kind: "notice", ID: run, Next: powerTime(1)}))
		}),
		decideStep(decided),
		claimStep(run),
		beginStep(run, 2, effect),
		doStep("End", same, func(ctx context.Context, b *powerBook) error { return b.End(ctx, end) }),
		{name: "Cancel", call: func(ctx context.Context, b *powerBook) (string, error) {
			ended, err := b.Cancel(ctx, "acme", run, store.Cancelled, nil, recording("cancelled", run))
			return string(ended.Status), err
		}, again: store.ErrNotFound.Error()},
		doStep("Forget", same, func(ctx context.Context, b *powerBook) error { return b.Forget(ctx, "acme", run, store.Beside{}) }),
	}
}

// requestOf is a change of a request.
func requestOf(run, ask string, base int64) store.PaperChange {
	return store.PaperChange{Kind: store.RequestPaper, ID: ask, Run: run, Base: base, Body: bulk(ask, 400), Facts: []byte(`{"n":1}`), Next: powerTime(100)}
}

// resealOnce seals anew what keptLife keeps.
func resealOnce(name string) func(store.Sealed) ([]byte, error) {
	return func(value store.Sealed) ([]byte, error) {
		if value.What != store.SealedOnce || value.ID != name || bytes.HasSuffix(value.Data, []byte("anew")) {
			return nil, nil
		}
		return append(bytes.Clone(value.Data), "anew"...), nil
	}
}

func resealAll(ctx context.Context, b *powerBook, fn func(store.Sealed) ([]byte, error)) error {
	for after := ""; ; {
		next, err := b.Reseal(ctx, after, 0, fn)
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func powerLease(run string, fence int64) store.Lease {
	return store.Lease{Account: "acme", Run: run, Fence: fence}
}

// bulk is so many bytes that are not those of somebody else.
func bulk(run string, size int) []byte {
	return bytes.Repeat([]byte(run+";"), size/(len(run)+1)+1)[:size]
}

func doStep(name, again string, call func(ctx context.Context, b *powerBook) error) powerStep {
	return powerStep{name: name, call: func(ctx context.Context, b *powerBook) (string, error) { return "", call(ctx, b) }, again: again}
}

// createStep begins the run that follows so many others with its state key.
func createStep(run string, after int) powerStep {
	n := booktest.NewRun(run)
	n.After, n.Input = after, bulk(run, 600)
	if after > 0 {
		n.ID = fmt.Sprint(run, "-", after+1)
	}
	return powerStep{name: "Create", call: func(ctx context.Context, b *powerBook) (string, error) {
		lease, err := b.Create(ctx, n)
		return fmt.Sprint("fence ", lease.Fence), err
	}, again: store.ErrExists.Error()}
}

func saveStep(run string, fence, base int64, size int) powerStep {
	delta := store.Delta{Put: []store.Part{{Name: fmt.Sprint("part ", base), Data: bulk(run, size)}, {Name: "run", Data: bulk(run, 20)}}}
	if base > 0 {
		delta.Delete = []string{fmt.Sprint("part ", base-1)}
	}
	return powerStep{name: "Save", call: func(ctx context.Context, b *powerBook) (string, error) {
		version, err := b.Fenced(powerLease(run, fence)).Save(ctx, store.Key{Account: "acme", Run: run}, base, delta)
		return fmt.Sprint("version ", version), err
	}, again: store.ErrStale.Error()}
}

func restStep(run string, fence int64, rest store.Rest) powerStep {
	return powerStep{name: "Rest", call: func(ctx context.Context, b *powerBook) (string, error) {
		status, err := b.Rest(ctx, powerLease(run, fence), rest)
		return string(status), err
	}, again: store.ErrFenced.Error()}
}

func decideStep(d store.Decision) powerStep {
	return powerStep{name: "Decide", call: func(ctx context.Context, b *powerBook) (string, error) {
		receipt, err := b.Decide(ctx, d)
		return fmt.Sprint(receipt.Result, receipt.Interrupt, receipt.At), err
	}, again: same}
}

func claimStep(run string) powerStep {
	return powerStep{name: "Claim", call: func(ctx context.Context, b *powerBook) (string, error) {
		work, err := b.Claim(ctx, store.Claim{Owner: "test", Lease: booktest.Long, Account: "acme", Run: run})
		if work == nil {
			return "nothing", err
		}
		return fmt.Sprintf("fence %d with %d decided", work.Lease.Fence, len(work.Decided)), err
	}, again: "nothing"}
}

func beginStep(run string, fence int64, effect store.NewEffect) powerStep {
	return powerStep{name: "Begin", call: func(ctx context.Context, b *powerBook) (string, error) {
		line, begun, err := b.Begin(ctx, powerLease(run, fence), effect)
		return fmt.Sprint(line.State, ", begun ", begun), err
	}, again: "started, begun false"}
}

// approved is an effect that was approved.
func approved(ask string) store.NewEffect {
	return store.NewEffect{Interrupt: ask, Number: 1, Digest: "action-" + ask, Key: ask}
}

func endStep(ask string, state store.EffectState) powerStep {
	return doStep("End", same, func(ctx context.Context, b *powerBook) error {
		return b.End(ctx, store.EffectEnd{Account: "acme", Interrupt: ask, Number: 1, State: state, Receipt: bulk(ask, 700)})
	})
}

func cancelStep(run string, as store.Status) powerStep {
	return powerStep{name: "Cancel", call: func(ctx context.Context, b *powerBook) (string, error) {
		ended, err := b.Cancel(ctx, "acme", run, as, nil, store.Beside{})
		return string(ended.Status), err
	}, again: store.ErrNotFound.Error()}
}

// portReads are the methods of the port that write nothing. Fenced only returns what saves.
var portReads = []string{
	"Asked", "AuditAccounts", "AuditHead", "AuditLines", "Credential", "Credentials", "Due", "Events", "Feed", "Fenced", "Finished", "Get", "History",
	"Interrupts", "List", "Load", "Now", "Paper", "Papers", "Pending", "Question", "Resumed", "Size", "Standing", "Waits", "Watch",
}

// Whoever adds a method to the port that writes adds it to a life, or nobody knows what a power loss does to it.
func TestPowerLives_HaveEveryWriteOfThePort(t *testing.T) {
	done := portReads
	for _, step := range livesInOrder() {
		done = append(done, step.name)
	}
	for method := range reflect.TypeFor[store.Store]().Methods() {
		if !slices.Contains(done, method.Name) {
			t.Errorf("%s is in no life", method.Name)
		}
	}
}
