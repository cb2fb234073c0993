// Package simtest has the parts that the simulators chaos, crashpoint and calendarsim share: the
// targets of effects, the gate that calls them, and the checks that need only the store and the
// targets.
//
// The simulators differ in what drives them, and therefore in what they know: processes that are
// killed (chaos), one process or a schedule of processes with a crash at each call (crashpoint),
// and people and timers over months (calendarsim).
package simtest
