package crashpoint

import (
	"errors"
	"fmt"
	"sync"
)

// target is what the world outside can do about a call that comes twice.
type target string

const (
	idempotent    target = "idem"        // knows a key that it has seen
	fencing       target = "fence_query" // refuses a call below the highest fence, and can be asked; does the same twice if it is told to
	nonIdempotent target = "none"        // does what it is told, as often as it is told
)

var targets = []target{idempotent, fencing, nonIdempotent}

// payment is what is done outside.
type payment struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// effectCall is something that was done outside.
type effectCall struct {
	what string
	key  string
	payment
}

// externalTarget is the world outside. It writes down whatever is done to it.
type externalTarget struct {
	mu       sync.Mutex
	deeds    []effectCall
	receipts map[string]string // by key
	fences   map[string]int    // the highest, by key
	calls    int
	looks    int
	// watch, if given, sees each deed when it is done.
	watch func(effectCall)
}

func newExternalTarget() *externalTarget {
	return &externalTarget{receipts: make(map[string]string), fences: make(map[string]int)}
}

var errRefused = errors.New("the target refuses it: there was a later try")

// do is a call to a target. try is which try of the effect it is; only a target that is fenced in goes by it.
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

// look says whether the target has done what the key names, and raises the fence.
func (o *externalTarget) look(key string, fence int) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	o.fences[key] = max(o.fences[key], fence)
	receipt, known := o.receipts[key]
	return receipt, known
}

// done is what was done, by the name of the action.
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

// receipt is what somebody finds out there who looks for a key.
func (o *externalTarget) receipt(key string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	receipt, known := o.receipts[key]
	return receipt, known
}
