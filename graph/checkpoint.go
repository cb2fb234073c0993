package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/jsonlite"
	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/internal/store"
)

// The saved form of a run. Every part is JSON; a part's name is a word followed by the place it
// belongs to:
//
//	run                              the head: format, graph, status; and, as "parts", small parts inline
//	frame PLACE                      one graph instance: its clock, fields, activation counts; PLACE is "" for the outermost
//	field :NAME#REV PLACE            one value of one field of that graph's state
//	task PLACE                       one activation that is not over
//	do|parked|ruling|effect PLACE    journal entries of an activation, see internal/activation
//	interrupt ID                     one interrupt, open or settled
//
// Unknown parts are left unchanged.
const (
	partRun       = "run"
	partInstance  = "frame "
	partField     = "field "
	partTask      = "task "
	partInterrupt = "interrupt "
)

// format is the version of the saved form. It changes when an older build could misread a newer
// checkpoint.
const format = 2

// Status is the state of a run.
//
//	          ┌──────────────── resume ────────────────┐
//	running ──┼─▶ waiting   an interrupt is open ──────┤
//	          ├─▶ stopped   it was asked to stop ──────┤
//	          ├─▶ failed    a node failed ─────────────┘
//	          └─▶ finished
//
// A run whose process died is still running; see [TakeOver].
type Status string

// The states of a run.
const (
	StatusRunning  Status = "running"
	StatusWaiting  Status = "waiting"
	StatusStopped  Status = "stopped"
	StatusFailed   Status = "failed"
	StatusFinished Status = "finished"
)

// taskStatus is the state of an activation.
//
//	held ──answer──▶ ready ──node──▶ finished ──merge──▶ (over) or resting ──answer──▶ (over)
//	                  ▲  └───node───▶ waiting ──answer──┐
//	                  └────────────────────────────────┘
type taskStatus string

const (
	taskHeldBefore taskStatus = "held" // a hold before the node is open
	// the node is to be entered, or was when the process died
	taskReady     taskStatus = "ready"
	taskWaiting   taskStatus = "waiting"  // the node raised an interrupt
	taskFinished  taskStatus = "finished" // the node has finished, its siblings have not
	taskHeldAfter taskStatus = "resting"  // a hold after the node is open
	taskRemoved   taskStatus = "over"     // to be removed; never saved
)

// checkpoint is a loaded run, indexed by place.
type checkpoint struct {
	version    int64
	head       head
	runPart    []byte            // the part "run"
	inline     []store.Part      // the inline parts in it
	separate   map[string][]byte // the other parts
	places     smallmap.Map[string, savedPlace]
	interrupts smallmap.Map[string, *activation.Record]
	// buf avoids allocations for a run of one graph that waits at one place.
	buf struct {
		frame  firstAlloc[savedInstance]
		task   firstAlloc[savedTask]
		record firstAlloc[activation.Record]
		packed [3]store.Part
	}
}

// firstAlloc holds the first of many values without an allocation.
type firstAlloc[T any] struct {
	value T
	taken bool
}

func (o *firstAlloc[T]) next() *T {
	if o.taken {
		return new(T)
	}
	o.taken = true
	return &o.value
}

// savedPlace is the saved data of one place: of the instance or the activation there.
type savedPlace struct {
	instance *savedInstance
	tasks    []*savedTask // of the instance
	task     *savedTask
	// journal has the journal entries of the activation, records its interrupts.
	journal map[string]json.RawMessage
	records []*activation.Record
	// below lists the parts of everything inside the activation.
	below []string
}

// at returns the saved data of a place. The result is read-only.
func (c *checkpoint) at(place string) *savedPlace {
	if saved := c.places.Ptr(place); saved != nil {
		return saved
	}
	return &noSavedPlace
}

var noSavedPlace savedPlace

// part returns the bytes of a part.
func (c *checkpoint) part(name string) (data []byte, ok bool) {
	if data, ok = c.separate[name]; ok {
		return data, true
	}
	for _, part := range c.inline {
		if part.Name == name {
			return part.Data, true
		}
	}
	return nil, false
}

// readCheckpoint indexes the data from the store. It returns an error rather than guess.
func readCheckpoint(run string, saved store.Checkpoint) (*checkpoint, error) {
	c := &checkpoint{version: saved.Version, separate: saved.Parts}
	if err := c.readRunPart(run); err != nil {
		return nil, err
	}
	for name, data := range c.separate {
		in := jsonlite.NewReader(data)
		if err := c.index(name, in, true); err != nil {
			return nil, err
		}
	}
	for _, part := range c.inline {
		c.indexOwner(part.Name, part.Data)
	}
	for name, data := range c.separate {
		c.indexOwner(name, data)
	}
	return c, c.checkComplete()
}

// checkComplete reports missing parts. Without them, work would be skipped or repeated unnoticed.
func (c *checkpoint) checkComplete() error {
	for place, saved := range c.places.All() {
		switch {
		case saved.instance == nil && len(saved.tasks) > 0:
			return corrupt(partInstance+place, errors.New("it is missing, but its tasks exist"))
		case saved.instance == nil:
		case saved.instance.Clock < 1:
			return corrupt(partInstance+place, errors.New("it has no clock"))
		case saved.instance.Tasks != len(saved.tasks):
			return corrupt(partInstance+place, fmt.Errorf("it has %d tasks, but %d exist", saved.instance.Tasks, len(saved.tasks)))
		}
	}
	for _, r := range c.interrupts.All() {
		if r.Status == activation.StatusOpen && c.at(r.Activation).task == nil {
			return corrupt(partTask+r.Activation, errors.New("it is missing, but one of its interrupts is open"))
		}
	}
	return nil
}

// readRunPart reads the head and the inline parts.
func (c *checkpoint) readRunPart(run string) error {
	data, ok := c.separate[partRun]
	if !ok {
		return fmt.Errorf("%w: run %s has no head", ErrCorrupt, run)
	}
	delete(c.separate, partRun)
	c.runPart, c.inline = data, c.buf.packed[:0]
	var failure error
	in := jsonlite.NewReader(data)
	err := c.head.decode(in, func(name string) {
		start := in.Pos()
		failure = join(failure, c.index(name, in, false))
		c.inline = append(c.inline, store.Part{Name: name, Data: in.Since(start)})
	})
	switch {
	case c.head.Format != format && c.head.Format > 0: //mutate:checkpoint-format-newer
		return fmt.Errorf("%w: run %s has format %d, this build supports %d", ErrFormat, run, c.head.Format, format)
	case err != nil:
		return fmt.Errorf("%w: run %s: head: %w", ErrCorrupt, run, err)
	case c.head.Format != format || c.head.Run != run: //mutate:checkpoint-format-matches
		return fmt.Errorf("%w: run %s: head names run %q, format %d", ErrCorrupt, run, c.head.Run, c.head.Format)
	}
	return failure
}

// index reads one part and adds it to its place. A separate part has its own reader.
func (c *checkpoint) index(name string, in *jsonlite.Reader, alone bool) error {
	prefix, place := splitPartName(name)
	var problem error
	switch prefix {
	case partInterrupt:
		record := c.buf.record.next()
		record.Decode(name, in)
		if record.ID != place || record.Activation == "" || !record.Status.Valid() {
			problem = errors.New("it is not the interrupt that its name says")
		} else if *c.interrupts.GetOrAdd(place) == nil {
			at := c.places.GetOrAdd(record.Activation)
			at.records = append(at.records, record)
			c.interrupts.Set(place, record)
		} else {
			problem = errDuplicatePart
		}
	case partInstance:
		frame := c.buf.frame.next()
		frame.decode(in)
		at := c.places.GetOrAdd(place)
		if at.instance != nil {
			problem = errDuplicatePart
		}
		at.instance = frame
	case partTask:
		task := c.buf.task.next()
		task.place = place
		task.decode(in)
		at := c.places.GetOrAdd(place)
		if at.task != nil {
			problem = errDuplicatePart
		}
		at.task = task
		outer, _ := splitPlace(place)
		at = c.places.GetOrAdd(outer)
		at.tasks = append(at.tasks, task)
	default:
		if alone {
			return nil // decoded on demand
		}
		in.Raw()
		if _, duplicate := c.part(name); duplicate {
			problem = errDuplicatePart
		}
	}
	if alone {
		problem = join(in.Err(), problem)
	}
	if problem != nil {
		return corrupt(name, problem)
	}
	return nil
}

var errDuplicatePart = errors.New("it exists twice")

func corrupt(part string, err error) error {
	return fmt.Errorf("%w: part %q: %w", ErrCorrupt, part, err)
}

// indexOwner adds a part to every activation that contains it, so that it is removed when the
// activation is over, and to the journal of the activation that owns it. An activation removes its
// own journal itself. indexOwner is called when all tasks are known.
func (c *checkpoint) indexOwner(name string, data []byte) {
	prefix, place := splitPartName(name)
	switch prefix {
	case partInterrupt, "":
		return
	case partTask:
		place, _ = splitPlace(place)
	case partField, partInstance:
	default:
		for place != "" && c.at(place).task == nil {
			place, _ = splitPlace(place)
		}
		if place == "" {
			return // unknown part
		}
		at := c.places.GetOrAdd(place)
		if at.journal == nil {
			at.journal = make(map[string]json.RawMessage)
		}
		at.journal[name] = data
		place, _ = splitPlace(place)
	}
	for ; place != ""; place, _ = splitPlace(place) {
		if at := c.places.Ptr(place); at != nil && at.task != nil {
			at.below = append(at.below, name)
		}
	}
}

// outermostInstance returns the instance that contains an activation and is closest to the outer
// activation.
func (c *checkpoint) outermostInstance(place, outer string) (frame string) {
	for place, _ = splitPlace(place); activation.Below(place, outer) && place != ""; place, _ = splitPlace(place) {
		if c.at(place).instance != nil {
			frame = place
		}
	}
	return frame
}

// splitPartName returns the word that a part's name begins with, including the space after it, and
// the place that the part belongs to (for an interrupt its id). Both are "" for other names.
func splitPartName(name string) (prefix, place string) {
	i := strings.IndexByte(name, ' ') + 1
	prefix, place = name[:i], name[i:]
	if prefix == partField {
		_, place, _ = strings.Cut(place, " ")
	}
	return prefix, place
}

// splitPlace splits off the last segment of a place.
func splitPlace(place string) (outer, last string) {
	i := strings.LastIndexByte(place, ';')
	if i < 0 {
		return "", place
	}
	return place[:i], place[i+1:]
}

func nodeSegment(name string) string {
	return fermata.Segment{Type: fermata.SegmentNode, ID: name}.String()
}

// fieldPart returns the prefix of the names of a field's parts; the clock and the instance's place
// follow.
func fieldPart(field string) string {
	name := fermata.Segment{ID: field}.String()
	// the place begins after the next space
	return partField + strings.ReplaceAll(name, " ", "%20") + "#"
}
