package crashpoint

import (
	"errors"
	"fmt"
	"sync"
)

// target is how a target handles duplicate calls.
type target string

const (
	idempotent target = "idem" // ignores a key that it has seen
	// refuses a call below the highest fence, and supports queries; repeats a call if told to
	fencing       target = "fence_query"
	nonIdempotent target = "none" // executes every call
)

var targets = []target{idempotent, fencing, nonIdempotent}

// payment is an external action.
type payment struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// effectCall is an executed call.
type effectCall struct {
	what string
	key  string
	payment
}

// externalTarget is the outside world. It records every call.
type externalTarget struct {
	mu       sync.Mutex
	deeds    []effectCall
	receipts map[string]string // by key
	fences   map[string]int    // the highest fence by key
	calls    int
	looks    int
	// watch, if set, is called for each executed call.
	watch func(effectCall)
}

func newExternalTarget() *externalTarget {
	return &externalTarget{receipts: make(map[string]string), fences: make(map[string]int)}
}

var errRefused = errors.New("refused: there was a later attempt")

// do is a call to a target. try is the attempt of the effect; only a fencing target uses it.
func (o *externalTarget) do(of target, what, key string, try int, p payment) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	switch of {
	case idempotent:
		if receipt, known := o.receipts[key]; known {
			return receipt, nil
		}
	case fencing:
		if try < o.fences[key] {
			return "", errRefused
		}
		o.fences[key] = try
	case nonIdempotent:
	}
	d := effectCall{what, key, p}
	o.deeds = append(o.deeds, d)
	o.receipts[key] = fmt.Sprintf("%s of %d is no. %d", what, p.Cents, len(o.deeds))
	if o.watch != nil {
		o.watch(d)
	}
	return o.receipts[key], nil
}

// look reports whether the target has executed the call with a key, and raises the fence.
func (o *externalTarget) look(key string, fence int) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	o.fences[key] = max(o.fences[key], fence)
	receipt, known := o.receipts[key]
	return receipt, known
}

// done returns the executed calls of an action.
func (o *externalTarget) done(what string) (all []effectCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.deeds {
		if d.what == what {
			all = append(all, d)
		}
	}
	return all
}

// receipt returns the receipt of a key, as a person finds it.
func (o *externalTarget) receipt(key string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	receipt, known := o.receipts[key]
	return receipt, known
}
