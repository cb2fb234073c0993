package agent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
)

// What agents and tools ask is kept by their places. A program that no longer has such a place must not go on as if nobody
// had asked there: neither while the question is open nor when its answer has come.

// waitingBelow lists the places of agents and tool calls below this one that waited when this execution began, as far as it has not
// come to them.
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
	for _, place := range scope.UnvisitedPending("do") { // one that failed with its answer is not parked any more
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

// wasWaiting reports whether something was open at or below a place when this execution began, or has its answer since.
func wasWaiting(scope *activation.Scope, place string) bool {
	return len(scope.Host.OpenInterrupts(place)) > 0 || scope.Host.HasNewAnswer(place)
}

// checkAgentsPresent returns an error if an agent waits below this place that is none of these. It is called before they begin: those
// behind it must not work before it has its answer.
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

// checkNotBypassed returns an error if something waits below an agent that has just returned this, and the agent neither finished it nor asks
// for it any more.
func checkNotBypassed(scope *activation.Scope, result error) error {
	if result != nil && !activation.IsWait(result) {
		return nil // it failed, and will come there again
	}
	asked := make(map[string]bool) // the places that ask, and all around them
	for _, s := range activation.Flatten(signals(result)) {
		for place := s.Record.Place(); place != "" && !asked[place]; place = place[:max(0, strings.LastIndexByte(place, ';'))] {
			asked[place] = true
		}
	}
	return programChanged(scope, func(place string) bool { return asked[place] })
}

// programChanged makes an error of the places that wait and are not known.
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

// signals lists what an error waits for.
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
