//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// verb is the operation of a request to a replica.
type verb string

const (
	doStart  verb = "start"
	doDecide verb = "decide"
	doLook   verb = "look"
	doCancel verb = "cancel"
	doRetry  verb = "retry"
	doAct    verb = "act"
)

// intendedVote is the intended meaning of an answer to one interrupt.
type intendedVote struct {
	Interrupt string
	Kind      string
	Gate      string
	Approve   *action // the action to execute, perhaps edited; nil if it approves nothing
	Word      string  // the other answer
	Nonsense  bool    // it is not a valid answer
	Happened  *bool   // about an effect in doubt
	Edited    bool    // it differs from the requested action
}

// attempt is one request and its reply, if there was one.
type attempt struct {
	verb
	request
	aims      []intendedVote
	life      int64
	sent, got time.Duration // since the start of the test; got is 0 without a reply
	answer    answer
	trouble   string // why there was no reply
}

// decisionID identifies a decision. All attempts under one id are one decision.
type decisionID struct{ actor, id string }

func (a *attempt) id() decisionID { return decisionID{a.Actor, a.ResumeID} }

func (a *attempt) String() string {
	text := fmt.Sprintf("%9.3fs %s at replica %d by %q", a.sent.Seconds(), a.verb, a.life, a.Actor)
	if a.verb == doDecide {
		text += " under " + a.ResumeID
		for id, value := range a.Targets {
			text += fmt.Sprintf(" %s=%s", id, value)
		}
	}
	if a.Act != nil {
		text += fmt.Sprintf(" %s of %s %s%s", a.Act.Name, a.Act.Request, a.Act.To, a.Act.Text)
	}
	if a.got == 0 {
		return text + ": no answer: " + a.trouble
	}
	return fmt.Sprintf("%s: %9.3fs %s %s %s %s %s%s", text, a.got.Seconds(), a.answer.Kind, a.answer.Result, a.answer.By, a.answer.Verdict, a.answer.Error, brief(a.answer.Outcome))
}

// history has all requests of people and their replies.
type history struct {
	mu      sync.Mutex
	list    []*attempt
	answers int
	usual   time.Duration // recent durations of decisions
	trouble string        // the last
}

func (h *history) add(a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, a)
}

func (h *history) answered(a *attempt, reply answer, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.answer, a.got = reply, at
	h.answers++
	if a.verb == doDecide {
		h.usual += (at - a.sent - h.usual) / 8
	}
}

func (h *history) unanswered(a *attempt, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.trouble = err.Error()
	h.trouble = a.trouble
}

// told returns the number of replies.
func (h *history) told() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// alive reports whether there was ever a reply, and if not, why.
func (h *history) alive() (bool, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers > 0, h.trouble
}

// all returns the attempts so far.
func (h *history) all() []*attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*attempt, len(h.list))
	for n, a := range h.list {
		now := *a
		list[n] = &now
	}
	return list
}

// ask makes one attempt at some replica. The reply is empty if the result is unknown.
func (w *world) ask(rng *rand.Rand, v verb, r request, aims []intendedVote) answer {
	l := w.anyReplica(rng)
	if l == nil {
		return answer{}
	}
	w.trip(phase(v), l)
	a := &attempt{verb: v, request: r, aims: aims, life: l.number, sent: w.now()}
	w.history.add(a) // before it is sent: its effect may be visible before the reply
	reply, err := w.post(l.addr, v, r)
	if err != nil {
		w.history.unanswered(a, err)
		return answer{}
	}
	w.history.answered(a, reply, w.now())
	return reply
}

// askUntilAnswered repeats a request until there is a reply, or the test has ended.
func (w *world) askUntilAnswered(rng *rand.Rand, v verb, r request, aims []intendedVote) answer {
	for {
		if reply := w.ask(rng, v, r, aims); reply.Kind != saidNothing {
			return reply
		}
		select {
		case <-w.over.Done():
			return answer{}
		case <-time.After(time.Duration(5+rng.IntN(60)) * time.Millisecond):
		}
	}
}

// anyReplica returns a ready replica, or nil if none becomes ready in time.
func (w *world) anyReplica(rng *rand.Rand) *replica {
	deadline := time.NewTimer(requestTimeout)
	defer deadline.Stop()
	for {
		l := w.fleet.current(rng.IntN(len(w.fleet.slots)))
		select {
		case <-l.ready:
			if l.addr != "" && !l.doomed.Load() {
				return l
			}
		default:
		}
		select {
		case <-w.over.Done():
			return nil
		case <-deadline.C:
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *world) post(addr string, v verb, r request) (reply answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(w.over, requestTimeout)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/"+string(v), bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	response, err := w.client.Do(sent)
	if err != nil {
		return reply, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return reply, err
	}
	if response.StatusCode != http.StatusOK {
		return reply, fmt.Errorf("%s: %s", response.Status, data)
	}
	return reply, json.Unmarshal(data, &reply)
}
