package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// Interrupts of agents and tools belong to their addresses. A program that no longer has such an
// address must not continue as if there were no interrupt, neither while it is open nor after the
// answer.

// waitingBelow lists the places of agents and tool calls below this one that waited when this
// execution began and that it has not reached yet.
func waitingBelow(scope *activation.Scope) []string {
	at := scope.Path()
	if !wasWaiting(scope, at) {
		return nil
	}
	var places []string
	for _, part := range scope.Parts() {
		place, ok := strings.CutPrefix(part, "parked ")
		if !ok || place == at || !activation.Below(place, at) || !wasWaiting(scope, place) {
			continue
		}
		if isCall(place) {
			places = append(places, place)
		}
	}
	//mutate:failed-agent-gone
	// a place that failed after its answer is no longer waiting
	for _, place := range scope.UnvisitedPending("do") {
		if isCall(place) {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// isCall reports whether a place is that of an agent or a tool call.
func isCall(place string) bool {
	last := place[strings.LastIndexByte(place, ';')+1:]
	return strings.HasPrefix(last, string(fermata.SegmentAgent)+":") || strings.HasPrefix(last, string(fermata.SegmentTool)+":")
}

// wasWaiting reports whether something at or below a place was open when this execution began, or
// has been answered since.
func wasWaiting(scope *activation.Scope, place string) bool {
	return len(scope.Host.OpenInterrupts(place)) > 0 || scope.Host.HasNewAnswer(place)
}

// checkAgentsPresent returns an error if an agent waits below this place that is not one of these.
// It is called before they begin: later agents must not run before the waiting one has its answer.
//
// rounds is how often each of them may be called.
func checkAgentsPresent(scope *activation.Scope, rounds int, agents ...Agent) error {
	return programChanged(scope, func(place string) bool {
		rest, err := fermata.ParseAddress(place[len(scope.Path())+1:])
		if err != nil {
			return false
		}
		times := 0
		for _, a := range agents {
			if a.Name() == rest[0].ID {
				times += rounds
			}
		}
		nth := 1
		if rest[0].SubID != "" {
			nth, err = strconv.Atoi(rest[0].SubID)
		}
		return err == nil && nth <= times //mutate:agent-gone
	})
}

// checkNotBypassed returns an error if something waits below an agent that returned this result,
// and the agent neither finished it nor raises its interrupt any more.
func checkNotBypassed(scope *activation.Scope, result error) error {
	if result != nil && !activation.IsWait(result) {
		return nil // it failed, and will be entered again
	}
	asked := make(map[string]bool) // the places that raise interrupts, and their parents
	for _, s := range activation.Flatten(signals(result)) {
		for place := s.Record.Place(); place != "" && !asked[place]; place = place[:max(0, strings.LastIndexByte(place, ';'))] {
			asked[place] = true
		}
	}
	return programChanged(scope, func(place string) bool { return asked[place] })
}

// programChanged returns an error for the waiting places that are not known.
func programChanged(scope *activation.Scope, known func(place string) bool) error {
	var outermost []string
	var missing []fermata.Address
	for _, place := range waitingBelow(scope) {
		if known(place) || slices.ContainsFunc(outermost, func(outer string) bool { return activation.Below(place, outer) }) {
			continue
		}
		outermost = append(outermost, place)
		address, err := fermata.ParseAddress(activation.Join(scope.FullAddress(), place[len(scope.Path())+1:]))
		if err != nil {
			return err
		}
		missing = append(missing, address)
	}
	if missing == nil {
		return nil
	}
	return &ProgramChangedError{Run: scope.Host.Run(), Missing: missing}
}

// signals lists the interrupts in an error.
func signals(err error) []*activation.Signal {
	switch e := err.(type) {
	case *activation.Signal:
		return []*activation.Signal{e}
	case interface{ Unwrap() []error }:
		var all []*activation.Signal
		for _, part := range e.Unwrap() {
			all = append(all, signals(part)...)
		}
		return all
	case interface{ Unwrap() error }:
		return signals(e.Unwrap())
	}
	return nil
}
