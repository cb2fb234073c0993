package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

var (
	// ErrNoStore is returned if there is no store to load a run from, or if a run without a store
	// raises an interrupt. Pass [WithStore].
	ErrNoStore = errors.New("graph: no store")

	// ErrRunExists is returned if a run with this id already exists. Nothing was run. Resume it, or
	// choose another id.
	ErrRunExists = errors.New("graph: run already exists: continue it with Resume, or choose another id")

	// ErrUnknownRun is returned if the store has no run with this id.
	ErrUnknownRun = errors.New("graph: unknown run")

	// ErrFinished is returned if the run has finished. Nothing was run. The error is a
	// [*FinishedError] with the final state.
	ErrFinished = errors.New("graph: run is finished")

	// ErrAnswersForNewRun is returned if answers are passed to a call that starts a run. Nothing
	// was run. Pass them to Resume.
	ErrAnswersForNewRun = errors.New("graph: a new run has no interrupts to answer")

	// ErrRunning is returned if another call is executing the run, or was when its process died.
	// Nothing was run. If the other process is known to be dead, resume with [TakeOver].
	ErrRunning = errors.New("graph: run is being executed (if its process is dead, resume with TakeOver)")

	// ErrTakenOver is returned if another execution has taken over the run. The changes of this
	// call since its last save are discarded.
	ErrTakenOver error = activation.ControlError("graph: run was taken over")

	// ErrStopped is returned if the run stopped at the end of a step because of [WithStop]. It can
	// be resumed. A run that was stopped before it began is not saved and can be started again.
	ErrStopped error = activation.ControlError("graph: run was stopped")

	// ErrUnknownInterrupt is returned if the run never raised an interrupt with this id. Nothing
	// was run.
	ErrUnknownInterrupt = errors.New("graph: unknown interrupt")

	// ErrAlreadyAnswered is returned if the interrupt was already answered. Nothing was run; the
	// first answer counts.
	ErrAlreadyAnswered = errors.New("graph: interrupt is already answered")

	// ErrWithdrawn is returned if the interrupt was withdrawn: the node no longer asks. Nothing was
	// run.
	ErrWithdrawn = errors.New("graph: interrupt was withdrawn")

	// ErrSuperseded is returned if what the interrupt showed has changed since: the run asks again
	// under another id. Nothing was run. Show the new version and answer that. It is also an
	// ErrWithdrawn.
	ErrSuperseded = fmt.Errorf("%w: what it showed has changed", ErrWithdrawn)

	// ErrUnanswered is returned if a node finished while an interrupt that it raised with
	// Interrupt, StatefulInterrupt or CompositeInterrupt is still open. Its result is discarded. A
	// part that is not a resume target must raise its interrupt again (or run in fermata.Do, which
	// does so).
	ErrUnanswered = errors.New("graph: node finished with an open interrupt")

	// ErrCorrupt is returned if the saved run cannot be decoded. Nothing was run or changed.
	ErrCorrupt = errors.New("graph: checkpoint cannot be read")

	// ErrFormat is returned if a newer version of Fermata saved the run in a format that this
	// version does not support.
	ErrFormat = errors.New("graph: checkpoint has an unknown format")

	// ErrWrongGraph is returned if the run belongs to another graph. Nothing was run or changed.
	ErrWrongGraph = errors.New("graph: run belongs to another graph")
)

// FinishedError reports that the run has finished, and carries its result. errors.Is finds
// [ErrFinished].
type FinishedError struct {
	Run string
	// State is the final state, as the graph's state type.
	State any
}

func (e *FinishedError) Error() string { return fmt.Sprintf("%v: %s", ErrFinished, e.Run) }

// Is reports whether the target is ErrFinished.
func (e *FinishedError) Is(target error) bool { return target == ErrFinished }

// CompileError lists all mistakes of a graph.
type CompileError struct {
	Graph    string
	Mistakes []Mistake
}

// Mistake is one mistake of a graph.
type Mistake struct {
	// Code is the type of the mistake: "name", "duplicate", "unknown", "unreachable", "dead-end",
	// "nothing", "state" or "merge".
	Code string
	// Node is the node (or field, for the codes about the state) that the mistake is about; empty
	// if it is about the graph.
	Node    string
	Message string
}

// The mistakes that Compile finds.
const (
	mistakeName = "name" // an empty or reserved name
	// two nodes with one name or one unique id, or the same edge twice
	mistakeDuplicate = "duplicate"
	// an edge, branch, hold or rename names an unknown node
	mistakeUnknown     = "unknown"
	mistakeUnreachable = "unreachable" // the node is not reachable from Start
	mistakeDeadEnd     = "dead-end"    // End is not reachable from the node
	// a node without a function, a branch without route or targets
	mistakeMissing = "nothing"
	// the state, or the result of a fan-out, has a type that cannot be saved
	mistakeState = "state"
	// a merge function for an unknown field or of another type
	mistakeMerge = "merge"
)

func (e *CompileError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.Message
	}
	return fmt.Sprintf("graph %q: %s", e.Graph, strings.Join(lines, "; "))
}

// NodeError reports that a node failed: it returned an error, panicked (see [PanicError]), exceeded
// its timeout or was cancelled. Finished work is saved. The run can be resumed; the node is then
// entered again.
type NodeError struct {
	Run     string
	Address fermata.Address
	// Attempt counts the failed attempts of the node, from 1.
	Attempt int
	Err     error
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("graph: run %s: %s: %v", e.Run, e.Address, e.Err)
}
func (e *NodeError) Unwrap() error { return e.Err }

// PanicError is a panic in a node.
type PanicError = recovery.PanicError

// ConflictError reports that two nodes that did not see each other's changes changed the same field
// differently. Register a merge function with [MergeField], or let them write different fields.
type ConflictError struct {
	Field string
	Nodes [2]string
	// Err is set if the merge function of the field failed.
	Err error
}

func (e *ConflictError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("graph: cannot merge field %q of nodes %q and %q: %v", e.Field, e.Nodes[0], e.Nodes[1], e.Err)
	}
	return fmt.Sprintf("graph: nodes %q and %q both changed field %q: register a merge function with MergeField", e.Nodes[0], e.Nodes[1], e.Field)
}

func (e *ConflictError) Unwrap() error { return e.Err }

// RouteError reports that a route returned a node that its branch does not declare.
type RouteError struct {
	From, To string
	Declared []string
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("graph: the branch after %q leads to %q, but declares %q", e.From, e.To, e.Declared)
}

// StepLimitError reports that the graph exceeded its step limit in one execution. See
// [Graph.MaxSteps].
type StepLimitError struct {
	Graph string
	Limit int
}

func (e *StepLimitError) Error() string {
	return fmt.Sprintf("graph: %q took %d steps in one execution: is it an endless loop? (MaxSteps sets the limit)", e.Graph, e.Limit)
}

// ProgramChangedError reports that the run contains something that this program does not have: a
// node that was removed, a state field that seems to be renamed, an interrupt of an unknown kind,
// or an accepted answer to a question that a node no longer asks. Nothing was changed; for an
// answer, the result of the node is discarded, and the answer is kept. Restore it, or declare the
// change with [Graph.Rename] and [Graph.MigrateState].
type ProgramChangedError struct {
	Run string
	// Missing lists the addresses of nodes, the fields, or the interrupts that are missing.
	Missing []string
}

func (e *ProgramChangedError) Error() string {
	return fmt.Sprintf("graph: run %s has %s, which this program does not have (use Rename and MigrateState to declare changes)", e.Run, strings.Join(e.Missing, ", "))
}

// SaveError reports that the store failed. It is unknown whether the last save was applied; earlier
// saves are stored. The run can be resumed with [TakeOver], because the stop could not be recorded.
type SaveError struct {
	Run string
	Err error
}

func (e *SaveError) Error() string {
	return fmt.Sprintf("graph: run %s: save failed: %v", e.Run, e.Err)
}
func (e *SaveError) Unwrap() error { return e.Err }

// RunError marks the error as an error of the run, not of the code that was to be saved.
func (e *SaveError) RunError() {}
