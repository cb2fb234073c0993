package executor_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// meddled is a store in which something happens once, right after somebody has looked at a run.
type meddled struct {
	store.Store
	once sync.Once
	then func()
}

func (m *meddled) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := m.Store.Get(ctx, account, stateKey)
	m.once.Do(m.then)
	return run, err
}

// The run that had the state key is over, and is forgotten while the next one is about to begin. Then nobody has the key.
func TestStart_WhatHadTheStateKeyIsForgottenMeanwhile(t *testing.T) {
	var ran atomic.Int64
	s := memory.NewRuns(nil)
	p := counting(t, &ran)
	first := completed(t, mustRun(t, executorOf(t, s, p, nil), countStart("a")))
	e := executorOf(t, &meddled{Store: s, then: func() {
		if err := s.Forget(t.Context(), "acme", first.Run); err != nil {
			t.Error(err)
		}
	}}, p, nil)
	if second := completed(t, mustRun(t, e, countStart("b"))); string(second.Output) != `{"text":"b"}` || ran.Load() != 2 {
		t.Errorf("it came to %s, and there were %d runs", second.Output, ran.Load())
	}
}

// A start comes again, and before it is answered another run takes the state key. That one's outcome is no answer to it.
func TestStartAgain_WhoTookTheStateKeyMeanwhileIsNotTheAnswer(t *testing.T) {
	var ran atomic.Int64
	s := memory.NewRuns(nil)
	p := counting(t, &ran)
	other := executorOf(t, s, p, nil)
	completed(t, mustRun(t, other, countStart("a")))
	e := executorOf(t, &meddled{Store: s, then: func() { completed(t, mustRun(t, other, countStart("b"))) }}, p, nil)
	failedWith(t, mustRun(t, e, countStart("a")), "superseded")
}

// Two who supersede a run with the same start end one run, and begin one.
func TestStart_ATwinThatSupersedesDoesNotEndTheOther(t *testing.T) {
	s := memory.NewRuns(nil)
	p := single(t, "ask", inproc.FlowConfig[note]{}, func(ctx context.Context, n note) (note, error) {
		_, err := seal.Ask(ctx, n.Text)
		return n, err
	})
	start := func(text string) executor.Request {
		return executor.Request{Account: "acme", StateKey: "k", Graph: "inproc:ask", Input: json.RawMessage(`{"text":"` + text + `"}`), Supersede: true}
	}
	twin := executorOf(t, s, p, nil)
	waits(t, mustRun(t, twin, start("old")))
	var first fermata.NeedsInput
	e := executorOf(t, &meddled{Store: s, then: func() { first = waits(t, mustRun(t, twin, start("new"))) }}, p, nil)
	if second := waits(t, mustRun(t, e, start("new"))); second.Run != first.Run {
		t.Errorf("the same start made %s and %s", first.Run, second.Run)
	}
}
