//go:build linux

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/testtier"
)

// The first kill, and every peerEvery-th after it, hits the peer.
const peerEvery = 3

// world is a server and its peer. In each round one of the two is killed at a random moment between
// the start of a payment and its end.
type world struct {
	*server
	graph string
	input func(n int) string
	paid  func(n int) int
	// killPeer kills the peer and starts it again.
	killPeer func()
	// settled returns when all work of a killed peer is done.
	settled func()
	// peerRepeats reports that work may be repeated if the peer was killed during it.
	peerRepeats bool
	// checkRound checks the peer after a round.
	checkRound func(n int)
}

// LangGraph promises that an answer is used once, and that work is repeated only if the server of
// LangGraph dies during it.
func TestCrash_LangGraphAtRandomMoments(t *testing.T) {
	t.Parallel()
	for number := range testtier.Count(1, 3, 3) {
		t.Run(fmt.Sprint("world ", number+1), func(t *testing.T) {
			t.Parallel()
			peer := newLangGraph(t)
			w := &world{
				server: newServer(t, peer.settings("tools")...), graph: "langgraph:tools", settled: func() {},
				input: func(n int) string { return fmt.Sprintf(`{"calls":[{"name":"pay","args":{"n":%d}}]}`, n) },
				paid:  func(n int) int { return peer.work.count(fmt.Sprint("pay-", n)) },
				killPeer: func() {
					peer.kill()
					peer.start()
				},
				peerRepeats: true, checkRound: func(int) { peer.checkKeys() },
			}
			w.run(testtier.Count(5, 7, 67))
		})
	}
}

// checkKeys checks that each step of Fermata, a start or an answer, was executed by one run of
// LangGraph.
func (l *langGraph) checkKeys() {
	l.Helper()
	var threads []struct {
		ID string `json:"thread_id"`
	}
	l.call("POST", "/threads/search", `{"limit":100}`, &threads)
	used := make(map[string]int)
	for _, thread := range threads {
		var runs []struct {
			Metadata struct {
				Keys []string `json:"fermata_keys"`
			} `json:"metadata"`
		}
		l.call("GET", "/threads/"+thread.ID+"/runs?limit=100", "", &runs)
		for _, run := range runs {
			for _, key := range run.Metadata.Keys {
				used[key]++
			}
		}
	}
	for key, n := range used {
		if n != 1 {
			l.Errorf("%d runs of LangGraph execute the step %s", n, key)
		}
	}
}

// The provider for the CLI promises that an approved call is made once, or that a person is asked
// whether it was made.
func TestCrash_ClaudeAtRandomMoments(t *testing.T) {
	t.Parallel()
	for number := range testtier.Count(1, 2, 2) {
		t.Run(fmt.Sprint("world ", number+1), func(t *testing.T) {
			t.Parallel()
			peer := newClaude(t, payScript)
			w := &world{
				server: newServer(t, peer.settings("  - {name: pay, ask: [mcp__work__pay], mcpServers: TOOLS}\n")...), graph: "claude:pay",
				input:   func(n int) string { return fmt.Sprintf(`{"prompt":"pay %d"}`, n) },
				paid:    func(n int) int { return peer.work.count(fmt.Sprint("pay-", n)) },
				settled: peer.tools.WaitUntilUnused, checkRound: func(int) {},
			}
			w.killPeer = func() { killCLI(w.pid()) }
			w.run(testtier.Count(2, 3, 100))
		})
	}
}

// run plays the rounds. The first payment is not disturbed, and shows how long one takes.
func (w *world) run(rounds int) {
	w.Helper()
	began := time.Now()
	w.pay(0)
	typical := time.Since(began)
	if n := w.paid(0); n != 1 {
		w.Fatalf("paid %d times without a crash", n)
	}
	for n := 1; n <= rounds && !w.Failed(); n++ {
		hit := make(chan struct{})
		ours, moment := n%peerEvery != 1, rand.N(typical)
		go func() {
			defer close(hit)
			<-time.After(moment)
			if !ours {
				w.killPeer()
				return
			}
			w.kill()
			w.start()
		}()
		w.pay(n)
		<-hit
		most := 1
		if !ours && w.peerRepeats {
			most = 2
		}
		if got := w.paid(n); got < 1 || got > most {
			w.Errorf("round %d, ours %v after %v of %v: paid %d times", n, ours, moment, typical, got)
		}
		w.checkRound(n)
	}
	if out := w.must("", "audit", "verify", "--store", w.store, "--account", "acme"); !strings.Contains(out, "acme") {
		w.Errorf("the audit log: %s", out)
	}
}

// pay starts a payment, approves it, and waits for its end. Each call is repeated until the server
// acknowledges it, and what was acknowledged must stay.
func (w *world) pay(n int) {
	w.Helper()
	key := fmt.Sprint("pay-", n)
	w.acknowledged("start "+key, func(ctx context.Context) error {
		_, err := w.as("bot").Chat(ctx, api.Chat{GraphID: w.graph, StateKey: key, Input: json.RawMessage(w.input(n))})
		return err
	})
	approval := w.open(key, fermata.Approval.Name())
	w.decide(approval, `{"verb":"approve"}`)
	var end client.RunView
	w.until("the end of "+key, func() (bool, error) {
		var err error
		if end, err = w.look(key); err != nil {
			return false, err
		}
		for _, request := range end.Requests {
			if request.State == "pending" && request.Kind == fermata.EffectInDoubt.Name() {
				w.settled()
				answer := `{"happened":false}`
				if w.paid(n) > 0 {
					answer = `{"happened":true,"receipt":"paid"}`
				}
				w.decide(request, answer)
			}
		}
		return slices.Contains([]string{"completed", "failed", "parked"}, end.Status), errors.New(end.Status)
	})
	if end.Status != "completed" {
		w.Errorf("%s is %s: %+v", key, end.Status, end.Problem)
	}
	if n := slices.IndexFunc(end.Requests, func(r api.Request) bool { return r.ID == approval.ID }); n < 0 || end.Requests[n].Decision == nil || end.Requests[n].Decision.By != "ann" || end.Requests[n].Decision.Verdict != "approve" {
		w.Errorf("%s: the acknowledged approval is lost: %+v", key, end.Requests)
	}
}

// acknowledged repeats a call until the server acknowledges it.
func (w *world) acknowledged(what string, call func(context.Context) error) {
	w.Helper()
	w.until(what, func() (bool, error) {
		ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
		defer cancel()
		err := call(ctx)
		if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status/100 == 4 {
			w.Fatalf("%s: %v", what, err)
		}
		return err == nil || errors.Is(err, client.ErrPending), err
	})
}

func (w *world) decide(request api.Request, answer string) {
	w.Helper()
	w.acknowledged("decide "+request.Kind, func(ctx context.Context) error {
		_, err := w.as("ann").Decide(ctx, request.ID, api.Decide{ResumeID: "decide " + request.ID, Answer: json.RawMessage(answer), Shown: request.Shown})
		return err
	})
}

func (w *world) look(key string) (client.RunView, error) {
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	return w.as("ops").Run(ctx, key)
}

// open waits for an open request of a run.
func (w *world) open(key, kind string) (found api.Request) {
	w.Helper()
	w.until("a request of "+key, func() (bool, error) {
		view, err := w.look(key)
		for _, request := range view.Requests {
			if request.State == "pending" && request.Kind == kind {
				found = request
				return true, nil
			}
		}
		return false, err
	})
	return found
}
