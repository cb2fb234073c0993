package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/visit"
	"github.com/fermata-go/fermata/store"
)

// The saved form of a run. Every part is JSON; a part's name is a word and the place it belongs to:
//
//	run                              the head: format, graph, status
//	frame PLACE                      one graph at work: its clock, fields, visits; PLACE is "" for the outermost
//	field :NAME#REV PLACE            one value of one field of that graph's state
//	task PLACE                       one visit that is not over
//	do|parked|ruling|effect PLACE    what a visit remembers, see internal/visit
//	interrupt ID                     one interrupt, open or settled
//
// Parts that this build does not know are left alone.
const (
	partRun       = "run"
	partFrame     = "frame "
	partField     = "field "
	partTask      = "task "
	partInterrupt = "interrupt "
)

// format is the version of all this. It changes when an older build could misread a newer checkpoint.
const format = 1

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
	taskHeld     taskStatus = "held"     // a hold before the node is open
	taskReady    taskStatus = "ready"    // the node is to be entered, or was when the process died
	taskWaiting  taskStatus = "waiting"  // the node asked
	taskFinished taskStatus = "finished" // the node is done, its siblings are not
	taskResting  taskStatus = "resting"  // a hold after the node is open
	taskOver     taskStatus = "over"     // to be taken away; never saved
)

// checkpoint is a loaded run, indexed by place.
type checkpoint struct {
	version int64
	parts   map[string][]byte
	head    head
	// tasks lists the visits of each frame, journal the entries of each visit, records its interrupts.
	frames  map[string]*savedFrame
	tasks   map[string][]*savedTask
	journal map[string]map[string]json.RawMessage
	records map[string][]*visit.Record
	byID    map[string]*visit.Record
	// below lists the parts that belong to something inside a visit.
	below map[string][]string
}

// read indexes what the store returned. It fails rather than guess.
func read(run string, saved store.Checkpoint) (*checkpoint, error) {
	c := &checkpoint{
		version: saved.Version, parts: saved.Parts,
		frames: make(map[string]*savedFrame), tasks: make(map[string][]*savedTask),
		journal: make(map[string]map[string]json.RawMessage),
		records: make(map[string][]*visit.Record), byID: make(map[string]*visit.Record),
		below: make(map[string][]string),
	}
	if err := c.readHead(run); err != nil {
		return nil, err
	}
	for name, data := range c.parts {
		if err := c.index(name, data); err != nil {
			return nil, err
		}
	}
	return c, c.complete()
}

// complete reports parts that are missing. Without them, work would be skipped or done again, and nobody would know.
func (c *checkpoint) complete() error {
	for place, frame := range c.frames {
		if frame.Clock < 1 {
			return corrupt(partFrame+place, errors.New("it has no clock"))
		}
		if frame.Tasks != len(c.tasks[place]) {
			return corrupt(partFrame+place, fmt.Errorf("it has %d tasks, and %d are there", frame.Tasks, len(c.tasks[place])))
		}
	}
	for place := range c.tasks {
		if c.frames[place] == nil {
			return corrupt(partFrame+place, errors.New("it is missing, and its tasks are there"))
		}
	}
	for _, r := range c.byID {
		if _, ok := c.parts[partTask+r.Visit]; !ok && r.Status == visit.Open {
			return corrupt(partTask+r.Visit, errors.New("it is missing, and an interrupt of it is open"))
		}
	}
	return nil
}

func (c *checkpoint) readHead(run string) error {
	data, ok := c.parts[partRun]
	if !ok {
		return fmt.Errorf("%w: run %s has no head", ErrCorrupt, run)
	}
	if err := c.head.decode(data); err != nil {
		return fmt.Errorf("%w: run %s: its head: %w", ErrCorrupt, run, err)
	}
	if c.head.Format > format {
		return fmt.Errorf("%w: run %s has format %d, this build knows %d", ErrFormat, run, c.head.Format, format)
	}
	if c.head.Format < 1 || c.head.Run != run {
		return fmt.Errorf("%w: run %s: its head names run %q, format %d", ErrCorrupt, run, c.head.Run, c.head.Format)
	}
	return nil
}

func (c *checkpoint) index(name string, data []byte) error {
	if strings.HasPrefix(name, partInterrupt) {
		record := new(visit.Record)
		if err := record.Decode(data); err != nil {
			return corrupt(name, err)
		}
		if name != partInterrupt+record.ID || record.Visit == "" || !record.Status.Valid() {
			return corrupt(name, errors.New("it is not the interrupt that its name says"))
		}
		c.records[record.Visit] = append(c.records[record.Visit], record)
		c.byID[record.ID] = record
		return nil
	}
	word, place, ok := strings.Cut(name, " ")
	if !ok {
		return nil
	}
	switch name[:len(word)+1] {
	case partField:
		_, place, _ = strings.Cut(place, " ")
		c.belongs(name, place, true)
	case partFrame:
		frame := new(savedFrame)
		if err := frame.decode(data); err != nil {
			return corrupt(name, err)
		}
		c.frames[place] = frame
		c.belongs(name, place, true)
	case partTask:
		task := &savedTask{place: place}
		if err := task.decode(data); err != nil {
			return corrupt(name, err)
		}
		outer, _ := cutPlace(place)
		c.tasks[outer] = append(c.tasks[outer], task)
		c.belongs(name, outer, true)
	default:
		owner := c.visitOf(place)
		if owner == "" {
			return nil // not ours
		}
		if c.journal[owner] == nil {
			c.journal[owner] = make(map[string]json.RawMessage)
		}
		c.journal[owner][name] = data
		c.belongs(name, owner, false)
	}
	return nil
}

func corrupt(part string, err error) error {
	return fmt.Errorf("%w: part %q: %w", ErrCorrupt, part, err)
}

// belongs notes a part under every visit that place is in, so that it goes when the visit is over. A visit removes its own
// journal itself; its place is passed with inclusive false.
func (c *checkpoint) belongs(name, place string, inclusive bool) {
	for ; place != ""; place, _ = cutPlace(place) {
		if _, task := c.parts[partTask+place]; task && inclusive {
			c.below[place] = append(c.below[place], name)
		}
		inclusive = true
	}
}

// visitOf is the innermost visit that place is in.
func (c *checkpoint) visitOf(place string) string {
	for ; place != ""; place, _ = cutPlace(place) {
		if _, ok := c.parts[partTask+place]; ok {
			return place
		}
	}
	return ""
}

// outermost is the frame in which a visit is that is nearest to the outer visit around it.
func (c *checkpoint) outermost(place, outer string) (frame string) {
	for place, _ = cutPlace(place); visit.Below(place, outer) && place != ""; place, _ = cutPlace(place) {
		if c.frames[place] != nil {
			frame = place
		}
	}
	return frame
}

// partPlace is the place that a part belongs to.
func partPlace(part string) string {
	word, rest, _ := strings.Cut(part, " ")
	if word+" " == partField {
		_, rest, _ = strings.Cut(rest, " ")
	}
	return rest
}

// cutPlace splits off the last segment of a place.
func cutPlace(place string) (outer, last string) {
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
