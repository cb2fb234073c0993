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

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// A powerStep is a call. Its result is the same whenever it runs on the same state.
type powerStep struct {
	name         string
	call         func(ctx context.Context, b *powerStore) (string, error)
	repeatResult string // the result of a repetition after an unknown outcome
	scenario     int    // the scenario it belongs to when scenarios are interleaved
	group        []powerStep
}

// sameResult marks a call whose repetition has the same result.
const sameResult = "the same"

// result returns the result of a successful call, or the text of an error of the port.
func (p powerStep) result(ctx context.Context, b *powerStore) (says string, unknown error) {
	says, err := p.call(ctx, b)
	if slices.ContainsFunc(portErrors, func(told error) bool { return errors.Is(err, told) }) {
		return err.Error(), nil
	}
	return says, err
}

// repeatedResult returns the expected result of a repetition of a step with this result.
func (p powerStep) repeatedResult(said string) string {
	switch {
	case p.group != nil:
		parts := strings.Split(said, groupSeparator)
		for n, member := range p.group {
			parts[n] = member.repeatedResult(parts[n])
		}
		return strings.Join(parts, groupSeparator)
	case p.repeatResult == sameResult:
		return said
	}
	return p.repeatResult
}

// groupSeparator separates the results of the steps of a group.
const groupSeparator = " | "

// groupStep runs steps in one transaction.
func groupStep(group ...powerStep) powerStep {
	call := func(ctx context.Context, b *powerStore) (string, error) {
		said, errs := make([]string, len(group)), make([]error, len(group))
		var calls []func(*Store)
		for n, step := range group {
			calls = append(calls, func(s *Store) { said[n], errs[n] = step.result(ctx, &powerStore{Store: s}) })
		}
		runTogether(b.Store, calls...)
		return strings.Join(said, groupSeparator), errors.Join(errs...)
	}
	return powerStep{name: "group", call: call, group: group}
}

// powerScenario is one run from its creation to its end.
type powerScenario func(run string) []powerStep

// powerScenarios contain every write of the port.
var powerScenarios = []powerScenario{approvedScenario, rejectedScenario, expiredScenario, inDoubtScenario, releasedScenario, parkedScenario, maintenanceScenario, documentsScenario}

// sequentialScenarios runs every scenario, with restarts in between.
func sequentialScenarios() (steps []powerStep) {
	for n, life := range powerScenarios {
		if n%4 == 0 {
			steps = append(steps, restartStep)
		}
		steps = append(steps, life(fmt.Sprint("r", n))...)
	}
	return steps
}

// interleavedScenarios interleaves the steps of all scenarios, with long readers and restarts.
func interleavedScenarios(r *rand.Rand) []powerStep {
	var lives [][]powerStep
	for n, life := range powerScenarios {
		steps := life(fmt.Sprint("r", n))
		for i := range steps {
			steps[i].scenario = n + 1
		}
		lives = append(lives, steps)
	}
	steps := []powerStep{restartStep}
	for len(lives) > 0 {
		n := r.IntN(len(lives))
		steps = append(steps, lives[n][0])
		if lives[n] = lives[n][1:]; len(lives[n]) == 0 {
			lives = slices.Delete(lives, n, n+1)
		}
		switch r.IntN(12) {
		case 0:
			steps = append(steps, holdReadStep)
		case 1, 2:
			steps = append(steps, releaseReadStep)
		case 3:
			steps = append(steps, restartStep)
		}
	}
	return steps
}

// groupedScenarios are interleaved scenarios in which some steps of different ones form groups.
func groupedScenarios(r *rand.Rand) (steps []powerStep) {
	var group []powerStep
	end := func() {
		if len(group) > 1 {
			group = []powerStep{groupStep(group...)}
		}
		steps, group = append(steps, group...), nil
	}
	for _, step := range interleavedScenarios(r) {
		// not a single write
		alone := step.scenario == 0 || step.name == "Vacuum" || step.name == "Reencrypt"
		again := slices.ContainsFunc(group, func(member powerStep) bool { return member.scenario == step.scenario })
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
	holdReadStep    = actionStep("hold", sameResult, func(ctx context.Context, b *powerStore) error { return b.holdRead(ctx) })
	releaseReadStep = actionStep("let go", sameResult, func(ctx context.Context, b *powerStore) error { b.releaseRead(ctx); return nil })
	restartStep     = actionStep("restart", sameResult, func(ctx context.Context, b *powerStore) error {
		return errors.Join(b.close(ctx), b.open(ctx))
	})
)

func approvedScenario(run string) []powerStep {
	ask := run + "/ask"
	return []powerStep{
		createStep(run, 0),
		actionStep("SetProviderRef", sameResult, func(ctx context.Context, b *powerStore) error {
			return b.SetProviderRef(ctx, powerLease(run, 1), randomBytes(run, 500))
		}),
		saveStep(run, 1, 0, 5000),
		endExecutionStep(run, 1, fixture.WaitingEnd(nil, ask, run+"/other")),
		decideStep(fixture.Decision(run, run+"/1", store.VerdictApprove, ask)),
		claimStep(run),
		beginStep(run, 2, approvedEffect(ask)),
		endStep(ask, store.EffectSucceeded),
		saveStep(run, 2, 1, 300),
		endExecutionStep(run, 2, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{ask}, Outcome: randomBytes(run, 500)}),
	}
}

func rejectedScenario(run string) []powerStep {
	asks := []string{run + "/1", run + "/2", run + "/3"}
	return []powerStep{
		createStep(run, 0),
		actionStep("Renew", sameResult, func(ctx context.Context, b *powerStore) error {
			return b.Renew(ctx, powerLease(run, 1), 2*fixture.LeaseDuration)
		}),
		endExecutionStep(run, 1, fixture.WaitingEnd(nil, asks...)),
		decideStep(fixture.Decision(run, run+"/one", store.VerdictReject, asks[0], asks[1])),
		decideStep(fixture.Decision(run, run+"/late", store.VerdictApprove, asks[1])),
		claimStep(run),
		endExecutionStep(run, 2, fixture.WaitingEnd(asks[:2], asks[2])),
		decideStep(fixture.Decision(run, run+"/last", store.VerdictApprove, asks[2])),
		claimStep(run),
		endExecutionStep(run, 3, store.ExecutionEnd{Status: store.StatusFailed, Applied: asks[2:], Outcome: randomBytes(run, 100)}),
	}
}

func expiredScenario(run string) []powerStep {
	due := fixture.WaitingEnd(nil, run+"/due")
	due.Open[0].Timeout = time.Millisecond
	return []powerStep{
		createStep(run, 0),
		endExecutionStep(run, 1, due),
		{name: "Expire", call: func(ctx context.Context, b *powerStore) (string, error) {
			expired, err := b.Expire(ctx, time.Time{}, 10, func(i store.Interrupt, _ *store.Document) store.Writes { return writesOf("expired", i.ID) })
			return fmt.Sprint(len(expired), " expired"), err
		}, repeatResult: "0 expired"},
		claimStep(run),
		endExecutionStep(run, 2, store.ExecutionEnd{Status: store.StatusCompleted, Applied: []string{run + "/due"}}),
	}
}

func inDoubtScenario(run string) []powerStep {
	ask := run + "/ask"
	return []powerStep{
		createStep(run, 0),
		endExecutionStep(run, 1, fixture.WaitingEnd(nil, ask)),
		decideStep(fixture.Decision(run, run+"/1", store.VerdictApprove, ask)),
		claimStep(run),
		beginStep(run, 2, approvedEffect(ask)),
		endExecutionStep(run, 2, store.ExecutionEnd{Status: store.StatusParked, Applied: []string{ask}}),
		endStep(ask, store.EffectFailed),
		claimStep(run),
		endExecutionStep(run, 3, store.ExecutionEnd{Status: store.StatusCompleted}),
	}
}

func releasedScenario(run string) []powerStep {
	return []powerStep{
		createStep(run, 0),
		actionStep("Release", store.ErrFenced.Error(), func(ctx context.Context, b *powerStore) error {
			return b.Release(ctx, powerLease(run, 1), store.Release{})
		}),
		claimStep(run),
		cancelStep(run, store.StatusSuperseded),
		createStep(run, 1),
		cancelStep(run, store.StatusCancelled),
	}
}

func parkedScenario(run string) []powerStep {
	ask := run + "/allowed"
	allowed := store.NewEffect{Interrupt: ask, Attempt: 1, ActionDigest: "digest", IdempotencyKey: ask, Ruling: &store.PolicyRuling{Kind: "kind", By: "rule", Data: randomBytes(run, 300)}}
	return []powerStep{
		createStep(run, 0),
		actionStep("Release", store.ErrFenced.Error(), func(ctx context.Context, b *powerStore) error {
			return b.Release(ctx, powerLease(run, 1), store.Release{Park: true})
		}),
		{name: "Retry", call: func(ctx context.Context, b *powerStore) (string, error) {
			ready, err := b.Retry(ctx, "acme", run, store.Writes{})
			return string(ready.Status), err
		}, repeatResult: store.ErrNotFound.Error()},
		claimStep(run),
		beginStep(run, 2, allowed),
		endStep(ask, store.EffectSucceeded),
		endExecutionStep(run, 2, store.ExecutionEnd{Status: store.StatusCompleted}),
		actionStep("DeleteRun", sameResult, func(ctx context.Context, b *powerStore) error { return b.DeleteRun(ctx, "acme", run, store.Writes{}) }),
	}
}

func maintenanceScenario(run string) []powerStep {
	return []powerStep{
		createStep(run, 0),
		saveStep(run, 1, 0, 6000),
		saveStep(run, 1, 1, 10),
		saveStep(run, 1, 2, 9000),
		{name: "PutIfAbsent", call: func(ctx context.Context, b *powerStore) (string, error) {
			kept, err := b.PutIfAbsent(ctx, run, randomBytes(run, 100))
			return string(kept), err
		}, repeatResult: sameResult},
		actionStep("AddCredential", store.ErrExists.Error(), func(ctx context.Context, b *powerStore) error {
			return b.AddCredential(ctx, store.Credential{ID: run + "/key", Account: "acme", Name: "ann", Role: "user", Hash: randomBytes(run, 32)}, store.Writes{})
		}),
		actionStep("RevokeCredential", sameResult, func(ctx context.Context, b *powerStore) error {
			return b.RevokeCredential(ctx, "acme", run+"/key", store.Writes{})
		}),
		{name: "PurgeCredentials", call: func(ctx context.Context, b *powerStore) (string, error) {
			forgotten, err := b.PurgeCredentials(ctx, run+"/key", time.Now().Add(time.Hour), 1)
			return strconv.Itoa(forgotten), err
		}, repeatResult: "0"},
		{name: "Reencrypt", call: func(ctx context.Context, b *powerStore) (string, error) {
			return "", reencryptAll(ctx, b, reencryptOnce(run))
		}, repeatResult: sameResult},
		actionStep("Delete", sameResult, func(ctx context.Context, b *powerStore) error {
			return b.Delete(ctx, store.Key{Account: "acme", Run: run})
		}),
		actionStep("Vacuum", sameResult, func(ctx context.Context, b *powerStore) error {
			b.releaseRead(ctx) // otherwise it would wait
			return b.Vacuum(ctx)
		}),
	}
}

// documentsScenario has a request, and an audit line for every change.
func documentsScenario(run string) []powerStep {
	ask := run + "/ask"
	created := fixture.NewRun(run)
	created.Writes = writesOf("created", run)
	rested := fixture.WaitingEnd(nil, ask, run+"/withdrawn")
	rested.Writes = writesOf("asked", run, requestChange(run, ask, 0), requestChange(run, run+"/withdrawn", 0))
	decided := fixture.Decision(run, run+"/1", store.VerdictApprove, ask)
	decided.Writes = writesOf("decided", run, requestChange(run, ask, 2))
	effect, end := approvedEffect(ask), store.EffectEnd{Account: "acme", Interrupt: ask, Attempt: 1, State: store.EffectSucceeded, Writes: writesOf("ended", run)}
	effect.Writes = writesOf("begun", run)
	extended := requestChange(run, ask, 1)
	extended.InterruptDeadline = powerTime(1_000_000)
	return []powerStep{
		{name: "Create", call: func(ctx context.Context, b *powerStore) (string, error) {
			lease, err := b.Create(ctx, created)
			return fmt.Sprint("fence ", lease.Fence), err
		}, repeatResult: store.ErrExists.Error()},
		endExecutionStep(run, 1, rested),
		actionStep("CommitWrites", store.ErrStale.Error(), func(ctx context.Context, b *powerStore) error {
			return b.CommitWrites(ctx, "acme", writesOf("viewed", run, extended, store.DocumentChange{Kind: "notice", ID: run, DueAt: powerTime(1)}))
		}),
		decideStep(decided),
		claimStep(run),
		beginStep(run, 2, effect),
		actionStep("EndEffect", sameResult, func(ctx context.Context, b *powerStore) error { return b.EndEffect(ctx, end) }),
		{name: "Cancel", call: func(ctx context.Context, b *powerStore) (string, error) {
			ended, err := b.Cancel(ctx, "acme", run, store.StatusCancelled, nil, writesOf("cancelled", run))
			return string(ended.Status), err
		}, repeatResult: store.ErrNotFound.Error()},
		actionStep("DeleteRun", sameResult, func(ctx context.Context, b *powerStore) error { return b.DeleteRun(ctx, "acme", run, store.Writes{}) }),
	}
}

// requestChange is a change of a request.
func requestChange(run, ask string, base int64) store.DocumentChange {
	return store.DocumentChange{Kind: store.RequestDocument, ID: ask, Run: run, BaseRevision: base, Body: randomBytes(ask, 400), Index: []byte(`{"n":1}`), DueAt: powerTime(100)}
}

// reencryptOnce re-encrypts the values of maintenanceScenario.
func reencryptOnce(name string) func(store.SealedValue) ([]byte, error) {
	return func(value store.SealedValue) ([]byte, error) {
		if value.Field != store.SealedNamedValue || value.ID != name || bytes.HasSuffix(value.Data, []byte("anew")) {
			return nil, nil
		}
		return append(bytes.Clone(value.Data), "anew"...), nil
	}
}

func reencryptAll(ctx context.Context, b *powerStore, fn func(store.SealedValue) ([]byte, error)) error {
	for after := ""; ; {
		next, err := b.Reencrypt(ctx, after, 0, fn)
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func powerLease(run string, fence int64) store.Lease {
	return store.Lease{Account: "acme", Run: run, Fence: fence}
}

// randomBytes returns bytes that are unique to a run.
func randomBytes(run string, size int) []byte {
	return bytes.Repeat([]byte(run+";"), size/(len(run)+1)+1)[:size]
}

func actionStep(name, again string, call func(ctx context.Context, b *powerStore) error) powerStep {
	return powerStep{name: name, call: func(ctx context.Context, b *powerStore) (string, error) { return "", call(ctx, b) }, repeatResult: again}
}

// createStep creates a run after a number of others with its state key.
func createStep(run string, after int) powerStep {
	n := fixture.NewRun(run)
	n.AfterGeneration, n.Input = after, randomBytes(run, 600)
	if after > 0 {
		n.ID = fmt.Sprint(run, "-", after+1)
	}
	return powerStep{name: "Create", call: func(ctx context.Context, b *powerStore) (string, error) {
		lease, err := b.Create(ctx, n)
		return fmt.Sprint("fence ", lease.Fence), err
	}, repeatResult: store.ErrExists.Error()}
}

func saveStep(run string, fence, base int64, size int) powerStep {
	delta := store.Delta{Put: []store.Part{{Name: fmt.Sprint("part ", base), Data: randomBytes(run, size)}, {Name: "run", Data: randomBytes(run, 20)}}}
	if base > 0 {
		delta.Delete = []string{fmt.Sprint("part ", base-1)}
	}
	return powerStep{name: "Save", call: func(ctx context.Context, b *powerStore) (string, error) {
		version, err := b.Fenced(powerLease(run, fence)).Save(ctx, store.Key{Account: "acme", Run: run}, base, delta)
		return fmt.Sprint("version ", version), err
	}, repeatResult: store.ErrStale.Error()}
}

func endExecutionStep(run string, fence int64, end store.ExecutionEnd) powerStep {
	return powerStep{name: "EndExecution", call: func(ctx context.Context, b *powerStore) (string, error) {
		status, err := b.EndExecution(ctx, powerLease(run, fence), end)
		return string(status), err
	}, repeatResult: store.ErrFenced.Error()}
}

func decideStep(d store.Decision) powerStep {
	return powerStep{name: "Decide", call: func(ctx context.Context, b *powerStore) (string, error) {
		receipt, err := b.Decide(ctx, d)
		return fmt.Sprint(receipt.Result, receipt.Interrupt, receipt.At), err
	}, repeatResult: sameResult}
}

func claimStep(run string) powerStep {
	return powerStep{name: "Claim", call: func(ctx context.Context, b *powerStore) (string, error) {
		work, err := b.Claim(ctx, store.Claim{Owner: "test", Lease: fixture.LeaseDuration, Account: "acme", Run: run})
		if work == nil {
			return "nothing", err
		}
		return fmt.Sprintf("fence %d with %d decided", work.Lease.Fence, len(work.Decided)), err
	}, repeatResult: "nothing"}
}

func beginStep(run string, fence int64, effect store.NewEffect) powerStep {
	return powerStep{name: "BeginEffect", call: func(ctx context.Context, b *powerStore) (string, error) {
		line, begun, err := b.BeginEffect(ctx, powerLease(run, fence), effect)
		return fmt.Sprint(line.State, ", begun ", begun), err
	}, repeatResult: "started, begun false"}
}

// approvedEffect is an effect that was approved.
func approvedEffect(ask string) store.NewEffect {
	return store.NewEffect{Interrupt: ask, Attempt: 1, ActionDigest: "action-" + ask, IdempotencyKey: ask}
}

func endStep(ask string, state store.EffectState) powerStep {
	return actionStep("EndEffect", sameResult, func(ctx context.Context, b *powerStore) error {
		return b.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: ask, Attempt: 1, State: state, Receipt: randomBytes(ask, 700)})
	})
}

func cancelStep(run string, as store.Status) powerStep {
	return powerStep{name: "Cancel", call: func(ctx context.Context, b *powerStore) (string, error) {
		ended, err := b.Cancel(ctx, "acme", run, as, nil, store.Writes{})
		return string(ended.Status), err
	}, repeatResult: store.ErrNotFound.Error()}
}

// portReads lists the methods of the port that write nothing. Fenced only returns a Checkpoints.
var portReads = []string{
	"AuditAccounts", "AuditHead", "AuditLines", "CountPending", "Credential", "Credentials", "Document",
	"Documents", "DueDocuments", "Events", "Feed", "Fenced", "FinishedRuns", "Get", "History", "InboxItem",
	"InboxItems", "Interrupts", "List", "Load", "Now", "PendingByKind", "Receipt", "RunSnapshot", "Size",
	"Watch",
}

// A new method of the port that writes must be part of a scenario.
func TestPowerScenarios_CoverEveryWriteOfThePort(t *testing.T) {
	done := portReads
	for _, step := range sequentialScenarios() {
		done = append(done, step.name)
	}
	for method := range reflect.TypeFor[store.Store]().Methods() {
		if !slices.Contains(done, method.Name) {
			t.Errorf("%s is in no scenario", method.Name)
		}
	}
}
