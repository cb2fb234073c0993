package graph

import (
	"slices"
	"strconv"

	"github.com/fermata-go/fermata/internal/jsonlite"
)

// head is the part "run".
type head struct {
	Format int
	Graph  string
	Run    string
	Status Status
	// Error is what the run failed with.
	Error string
}

func (h *head) encode() []byte {
	o := jsonlite.NewObject()
	o.Int("format", int64(h.Format))
	o.String("graph", h.Graph)
	o.String("run", h.Run)
	o.String("status", string(h.Status))
	o.String("error", h.Error)
	return o.End()
}

func (h *head) decode(data []byte) error {
	in := jsonlite.NewReader(data)
	in.Object(func(name string) {
		switch name {
		case "format":
			h.Format = int(in.Int())
		case "graph":
			h.Graph = in.String()
		case "run":
			h.Run = in.String()
		case "status":
			h.Status = Status(in.String())
		case "error":
			h.Error = in.String()
		default:
			in.Raw()
		}
	})
	return in.Err()
}

// savedFrame is the part "frame …".
type savedFrame struct {
	Graph string
	// Print is the fingerprint of the graph's form, Shape that of its state.
	Print, Shape string
	// Clock numbers the changes of the state. A value of a field is named by the clock of its change.
	Clock  int64
	Fields []savedField
	// Visits counts the visits of each node.
	Visits []savedVisits
	// Next are the nodes that something led to and that have to wait for something under way.
	Next []string
	Done bool
}

// savedField is what a frame knows of one field. Revs are the values that are still needed, the newest last; By is the node
// that wrote the newest.
type savedField struct {
	Name string
	Revs []int64
	By   string
}

type savedVisits struct {
	Node  string
	Times int
}

func (f *savedFrame) encode() []byte {
	o := jsonlite.NewObject()
	o.String("graph", f.Graph)
	o.String("print", f.Print)
	o.String("shape", f.Shape)
	o.Int("clock", f.Clock)
	buf := append(make([]byte, 0, 64*len(f.Fields)), '{')
	for i, field := range f.Fields {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(jsonlite.AppendString(buf, field.Name), `:{"revs":[`...)
		for k, rev := range field.Revs {
			if k > 0 {
				buf = append(buf, ',')
			}
			buf = strconv.AppendInt(buf, rev, 10)
		}
		buf = append(buf, ']')
		if field.By != "" {
			buf = jsonlite.AppendString(append(buf, `,"by":`...), field.By)
		}
		buf = append(buf, '}')
	}
	o.Raw("fields", append(buf, '}'))
	visits := append(make([]byte, 0, 24*len(f.Visits)), '{')
	for i, v := range f.Visits {
		if i > 0 {
			visits = append(visits, ',')
		}
		visits = append(jsonlite.AppendString(visits, v.Node), ':')
		visits = strconv.AppendInt(visits, int64(v.Times), 10)
	}
	o.Raw("visits", append(visits, '}'))
	o.Strings("next", f.Next)
	o.Bool("done", f.Done)
	return o.End()
}

func (f *savedFrame) decode(data []byte) error {
	in := jsonlite.NewReader(data)
	in.Object(func(name string) {
		switch name {
		case "graph":
			f.Graph = in.String()
		case "print":
			f.Print = in.String()
		case "shape":
			f.Shape = in.String()
		case "clock":
			f.Clock = in.Int()
		case "fields":
			in.Object(func(name string) {
				field := savedField{Name: name}
				field.decode(in)
				f.Fields = append(f.Fields, field)
			})
		case "visits":
			in.Object(func(name string) { f.Visits = append(f.Visits, savedVisits{name, int(in.Int())}) })
		case "next":
			in.Array(func() { f.Next = append(f.Next, in.String()) })
		case "done":
			f.Done = in.Bool()
		default:
			in.Raw()
		}
	})
	return in.Err()
}

func (f *savedField) decode(in *jsonlite.Reader) {
	in.Object(func(name string) {
		switch name {
		case "revs":
			in.Array(func() { f.Revs = append(f.Revs, in.Int()) })
		case "by":
			f.By = in.String()
		default:
			in.Raw()
		}
	})
}

// savedTask is the part "task …".
type savedTask struct {
	place string
	Node  string
	Visit int
	// Seq is the order in which the frame's tasks began.
	Seq int64
	// At is the clock of the state that the node was given.
	At      int64
	Status  taskStatus
	Attempt int
	// Rev and Changed are the result of a finished task that is not merged yet.
	Rev     int64
	Changed []string
}

func (t *savedTask) encode() []byte {
	o := jsonlite.NewObject()
	o.String("node", t.Node)
	o.Int("visit", int64(t.Visit))
	o.Int("seq", t.Seq)
	o.Int("at", t.At)
	o.String("status", string(t.Status))
	o.Int("attempt", int64(t.Attempt))
	o.Int("rev", t.Rev)
	o.Strings("changed", t.Changed)
	return o.End()
}

func (t *savedTask) decode(data []byte) error {
	in := jsonlite.NewReader(data)
	in.Object(func(name string) {
		switch name {
		case "node":
			t.Node = in.String()
		case "visit":
			t.Visit = int(in.Int())
		case "seq":
			t.Seq = in.Int()
		case "at":
			t.At = in.Int()
		case "status":
			t.Status = taskStatus(in.String())
		case "attempt":
			t.Attempt = int(in.Int())
		case "rev":
			t.Rev = in.Int()
		case "changed":
			in.Array(func() { t.Changed = append(t.Changed, in.String()) })
		default:
			in.Raw()
		}
	})
	return in.Err()
}

// task finds a task of a frame by its place.
func (c *checkpoint) task(frame, place string) *savedTask {
	tasks := c.tasks[frame]
	i := slices.IndexFunc(tasks, func(t *savedTask) bool { return t.place == place })
	if i < 0 {
		return nil
	}
	return tasks[i]
}
