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
	// ErrNoStore says that there is no store: to find a run in, or for a run that wants to wait. Nobody was asked. Pass
	// [WithStore].
	ErrNoStore = errors.New("graph: no store")

	// ErrRunExists says that a run of this id was started before. Nothing was run. Resume it, or choose another id.
	ErrRunExists = errors.New("graph: a run of this id exists already")

	// ErrUnknownRun says that the store holds no run of this id.
	ErrUnknownRun = errors.New("graph: unknown run")

	// ErrFinished says that the run has come to its end. Nothing was run, whatever was answered.
	ErrFinished = errors.New("graph: the run is finished")

	// ErrRunning says that another call is running this run, or was when its process died. Nothing was run. If the other
	// is known to be dead, resume with [TakeOver].
	ErrRunning = errors.New("graph: the run is being run (if its process is dead, resume with TakeOver)")

	// ErrTakenOver says that somebody else went on with the run while this call was running it. What this call did since its
	// last save does not count.
	ErrTakenOver error = activation.ControlError("graph: the run was taken over")

	// ErrStopped says that the run was asked to stop, with [WithStop], and did at a step's end. It can be resumed.
	ErrStopped error = activation.ControlError("graph: the run was stopped")

	// ErrUnknownInterrupt says that the run never raised an interrupt of this id. Nothing was run.
	ErrUnknownInterrupt = errors.New("graph: unknown interrupt")

	// ErrAlreadyAnswered says that the interrupt has its answer. Nothing was run; the first answer stands.
	ErrAlreadyAnswered = errors.New("graph: the interrupt is answered already")

	// ErrWithdrawn says that the question was withdrawn: the node that asked no longer does. Nothing was run.
	ErrWithdrawn = errors.New("graph: the interrupt is no longer asked")

	// ErrUnanswered says that a node finished although an interrupt it had raised with Interrupt, StatefulInterrupt or
	// CompositeInterrupt is still open. Its result does not count. A part that is not a resume target must raise its
	// interrupt again (or be run with fermata.Do, which sees to that).
	ErrUnanswered = errors.New("graph: a node finished with an open interrupt")

	// ErrCorrupt says that the saved run cannot be read. Nothing was run or changed.
	ErrCorrupt = errors.New("graph: the checkpoint cannot be read")

	// ErrFormat says that the run was saved by a newer Fermata in a format that this one does not know.
	ErrFormat = errors.New("graph: the checkpoint has an unknown format")

	// ErrWrongGraph says that the run belongs to another graph. Nothing was run or changed.
	ErrWrongGraph = errors.New("graph: the run belongs to another graph")
)

// CompileError lists every mistake in a graph.
type CompileError struct {
	Graph    string
	Mistakes []Mistake
}

// Mistake is one thing that is wrong with a graph.
type Mistake struct {
	Code MistakeCode
	// Node is the node (or field, for the codes of the state) that it is about; empty if it is about the graph.
	Node    string
	Message string
}

// MistakeCode says what sort of mistake it is.
type MistakeCode string

// The sorts of mistakes that Compile finds.
const (
	MistakeName        MistakeCode = "name"        // an empty or reserved name
	MistakeDuplicate   MistakeCode = "duplicate"   // two nodes of one name, or the same edge twice
	MistakeUnknown     MistakeCode = "unknown"     // an edge, branch, hold or rename names a node that is not there
	MistakeUnreachable MistakeCode = "unreachable" // no way from Start leads to the node
	MistakeDeadEnd     MistakeCode = "dead-end"    // no way from the node leads to End
	MistakeMissing     MistakeCode = "nothing"     // a node without a function, a branch without route or targets
	MistakeState       MistakeCode = "state"       // the state, or what a fan-out makes, is of a type that cannot be saved
	MistakeMerge       MistakeCode = "merge"       // a merge function for an unknown field or of another type
)

func (e *CompileError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.Message
	}
	return fmt.Sprintf("graph %q: %s", e.Graph, strings.Join(lines, "; "))
}

// NodeError says that a node failed: it returned an error, panicked (see [PanicError]), ran into its timeout or was
// cancelled. Everything that finished is saved, and the run can be resumed: then the node is entered again.
type NodeError struct {
	Run     string
	Address fermata.Address
	Err     error
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("graph: run %s: %s: %v", e.Run, e.Address, e.Err)
}
func (e *NodeError) Unwrap() error { return e.Err }

// PanicError is a panic in a node.
type PanicError = recovery.PanicError

// ConflictError says that two nodes which did not see each other's work changed the same field differently. Register a
// merge function with [MergeField], or let them write different fields.
type ConflictError struct {
	Field string
	Nodes [2]string
	// Err is set if the field has a merge function and that failed.
	Err error
}

func (e *ConflictError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("graph: cannot merge field %q of nodes %q and %q: %v", e.Field, e.Nodes[0], e.Nodes[1], e.Err)
	}
	return fmt.Sprintf("graph: nodes %q and %q both changed field %q: say with MergeField how it is merged", e.Nodes[0], e.Nodes[1], e.Field)
}

func (e *ConflictError) Unwrap() error { return e.Err }

// RouteError says that a route picked a node that its branch does not declare.
type RouteError struct {
	From, To string
	Declared []string
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("graph: the branch after %q leads to %q, declared are %q", e.From, e.To, e.Declared)
}

// StepLimitError says that the graph took more steps without a rest than it may. See [Graph.MaxSteps].
type StepLimitError struct {
	Graph string
	Limit int
}

func (e *StepLimitError) Error() string {
	return fmt.Sprintf("graph: %q took %d steps without a rest: does it loop? (MaxSteps sets the limit)", e.Graph, e.Limit)
}

// ProgramChangedError says that a run has what this program does not: it is at nodes that the graph no longer has, its state has
// fields that seem to be renamed, or it asks a question of a kind that is gone. Nothing was run or changed. Bring them back, or
// say with [Graph.Rename] and [Graph.MigrateState] what became of nodes and fields.
type ProgramChangedError struct {
	Run string
	// Missing are the addresses of the nodes, or the fields, or the questions, that are gone.
	Missing []string
}

func (e *ProgramChangedError) Error() string {
	return fmt.Sprintf("graph: run %s has %s, which this program does not (Rename and MigrateState say what became of them)", e.Run, strings.Join(e.Missing, ", "))
}

// SaveError says that the store failed. Whether the last save was applied is unknown; what was saved before is there. The
// run can be resumed (with [TakeOver], because nobody could write down that it stopped).
type SaveError struct {
	Run string
	Err error
}

func (e *SaveError) Error() string {
	return fmt.Sprintf("graph: run %s: saving failed: %v", e.Run, e.Err)
}
func (e *SaveError) Unwrap() error { return e.Err }

// OfTheRun keeps it from being taken for an error of the code that was to be saved.
func (e *SaveError) OfTheRun() {}
