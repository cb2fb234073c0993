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
	"github.com/fermata-go/fermata/store"
)

// The saved form of a run. Every part is JSON; a part's name is a word and the place it belongs to:
//
//	run                              the head: format, graph, status; and, as "parts", any of the others that are small
//	frame PLACE                      one graph at work: its clock, fields, visits; PLACE is "" for the outermost
//	field :NAME#REV PLACE            one value of one field of that graph's state
//	task PLACE                       one visit that is not over
//	do|parked|ruling|effect PLACE    what a visit remembers, see internal/visit
//	interrupt ID                     one interrupt, open or settled
//
// Parts that this build does not know are left alone.
const (
	partRun       = "run"
	partInstance  = "frame "
	partField     = "field "
	partTask      = "task "
	partInterrupt = "interrupt "
)

// format is the version of all this. It changes when an older build could misread a newer checkpoint.
const format = 2

// Status is where a run stands.
//
//	          ┌────────────── resume ──────────────┐
//	running ──┼─▶ waiting   it asked, people decide ┤
//	          ├─▶ stopped   it was told to stop ────┤
//	          ├─▶ failed    a node failed ──────────┘
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

// taskStatus is where a visit stands.
//
//	held ──answer──▶ ready ──node──▶ finished ──merge──▶ (over) or resting ──answer──▶ (over)
//	                  ▲  └───node───▶ waiting ──answer──┐
//	                  └────────────────────────────────┘
type taskStatus string

const (
	taskHeldBefore taskStatus = "held"     // a hold before the node is open
	taskReady      taskStatus = "ready"    // the node is to be entered, or was when the process died
	taskWaiting    taskStatus = "waiting"  // the node asked
	taskFinished   taskStatus = "finished" // the node is done, its siblings are not
	taskHeldAfter  taskStatus = "resting"  // a hold after the node is open
	taskRemoved    taskStatus = "over"     // to be taken away; never saved
)

// checkpoint is a loaded run, indexed by place.
type checkpoint struct {
	version    int64
	head       head
	runPart    []byte            // the part "run"
	inline     []store.Part      // the parts in it
	separate   map[string][]byte // the other parts
	places     smallmap.Map[string, savedPlace]
	interrupts smallmap.Map[string, *activation.Record]
	// room is for what there is in a run of one graph that waits at one place.
	buf struct {
		frame  firstAlloc[savedInstance]
		task   firstAlloc[savedTask]
		record firstAlloc[activation.Record]
		packed [3]store.Part
	}
}

// firstAlloc is room for one of many.
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

// savedPlace is what was saved of one place: of the frame or the visit there.
type savedPlace struct {
	instance *savedInstance
	tasks    []*savedTask // of the frame
	task     *savedTask
	// journal has the entries of the visit, records its interrupts.
	journal map[string]json.RawMessage
	records []*activation.Record
	// below lists the parts that belong to something inside the visit.
	below []string
}

// at returns what was saved of a place, to be read.
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

// readCheckpoint indexes what the store returned. It fails rather than guess.
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

// complete reports parts that are missing. Without them, work would be skipped or done again, and nobody would know.
func (c *checkpoint) checkComplete() error {
	for place, saved := range c.places.All() {
		switch {
		case saved.instance == nil && len(saved.tasks) > 0:
			return corrupt(partInstance+place, errors.New("it is missing, and its tasks are there"))
		case saved.instance == nil:
		case saved.instance.Clock < 1:
			return corrupt(partInstance+place, errors.New("it has no clock"))
		case saved.instance.Tasks != len(saved.tasks):
			return corrupt(partInstance+place, fmt.Errorf("it has %d tasks, and %d are there", saved.instance.Tasks, len(saved.tasks)))
		}
	}
	for _, r := range c.interrupts.All() {
		if r.Status == activation.StatusOpen && c.at(r.Activation).task == nil {
			return corrupt(partTask+r.Activation, errors.New("it is missing, and an interrupt of it is open"))
		}
	}
	return nil
}

// readPack reads the head and the parts beside it.
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
		return fmt.Errorf("%w: run %s has format %d, this build knows %d", ErrFormat, run, c.head.Format, format)
	case err != nil:
		return fmt.Errorf("%w: run %s: its head: %w", ErrCorrupt, run, err)
	case c.head.Format != format || c.head.Run != run: //mutate:checkpoint-format-matches
		return fmt.Errorf("%w: run %s: its head names run %q, format %d", ErrCorrupt, run, c.head.Run, c.head.Format)
	}
	return failure
}

// index reads one part and notes it under its place. A part that stands alone has the reader to itself.
func (c *checkpoint) index(name string, in *jsonlite.Reader, alone bool) error {
	word, place := splitPartName(name)
	var problem error
	switch word {
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
			return nil // it is read when somebody wants it
		}
		in.Raw()
		if _, twice := c.part(name); twice {
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

var errDuplicatePart = errors.New("it is there twice")

func corrupt(part string, err error) error {
	return fmt.Errorf("%w: part %q: %w", ErrCorrupt, part, err)
}

// belongs notes a part under every visit that it is in, so that it goes when the visit is over, and with the visit whose
// journal it is an entry of. A visit removes its own journal itself. It is called when all tasks are known.
func (c *checkpoint) indexOwner(name string, data []byte) {
	word, place := splitPartName(name)
	switch word {
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
			return // not ours
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

// outermost is the frame in which a visit is that is nearest to the outer visit around it.
func (c *checkpoint) outermostInstance(place, outer string) (frame string) {
	for place, _ = splitPlace(place); activation.Below(place, outer) && place != ""; place, _ = splitPlace(place) {
		if c.at(place).instance != nil {
			frame = place
		}
	}
	return frame
}

// splitPartName is the word that a part's name begins with, the space after it included, and the place that the part belongs to:
// for an interrupt its id. Both are "" for a name that is not of this form.
func splitPartName(name string) (word, place string) {
	i := strings.IndexByte(name, ' ') + 1
	word, place = name[:i], name[i:]
	if word == partField {
		_, place, _ = strings.Cut(place, " ")
	}
	return word, place
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

// fieldPart is what the names of a field's parts begin with; the clock and the frame's place follow.
func fieldPart(field string) string {
	name := fermata.Segment{ID: field}.String()
	return partField + strings.ReplaceAll(name, " ", "%20") + "#" // the place begins after the next space
}
