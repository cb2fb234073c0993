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
	// Next are the nodes that something led to and that have to wait for something under way, Again those of them that begin
	// the next round of a loop.
	Next, Again []string
	// Tasks is how many tasks there are.
	Tasks int
	Done  bool
}

// savedField is what a frame knows of one field. Revs are the values that are still needed, the newest last, and Small those
// of them that need no part of their own; By is the node that wrote the newest.
type savedField struct {
	Name  string
	Revs  []int64
	Small []smallField
	By    string
}

type smallField struct {
	Rev   int64
	Value []byte
}

// revisions is the form in which a frame at work has them.
func (f *savedField) revisions() []revision {
	revs := make([]revision, len(f.Revs), len(f.Revs)+1)
	for i, clock := range f.Revs {
		small := f.small(clock)
		revs[i] = revision{clock: clock, data: small, saved: small == nil}
	}
	return revs
}

// at is the revision that the field had at some clock, and its value if that is small.
func (f *savedField) at(clock int64) (rev int64, value []byte) {
	rev = f.Revs[0]
	for _, r := range f.Revs {
		if r <= clock {
			rev = r
		}
	}
	return rev, f.small(rev)
}

func (f *savedField) small(rev int64) []byte {
	for _, s := range f.Small {
		if s.Rev == rev {
			return s.Value
		}
	}
	return nil
}

type savedVisits struct {
	Node  string
	Times int
}

// frameWriter writes the part "frame …", in the order of its methods.
type frameWriter struct{ out *jsonlite.Object }

func newFrameWriter(graph, print, shape string, clock int64) frameWriter {
	o := jsonlite.NewObject()
	o.String("graph", graph)
	o.String("print", print)
	o.String("shape", shape)
	o.Int("clock", clock)
	return frameWriter{out: o}
}

// fields writes what the frame knows of its fields.
func (w *frameWriter) fields(write func(field func(name string, revs []revision, by string))) {
	w.members("fields", func(buf []byte, next func([]byte) []byte) []byte {
		write(func(name string, revs []revision, by string) { buf = appendField(next(buf), name, revs, by) })
		return buf
	})
}

// visits writes how often each node was visited.
func (w *frameWriter) visits(write func(visits func(node string, times int))) {
	w.members("visits", func(buf []byte, next func([]byte) []byte) []byte {
		write(func(node string, times int) {
			buf = append(jsonlite.AppendString(next(buf), node), ':')
			buf = strconv.AppendInt(buf, int64(times), 10)
		})
		return buf
	})
}

func (w *frameWriter) members(name string, write func(buf []byte, next func([]byte) []byte) []byte) {
	w.out.Append(name, func(buf []byte) []byte {
		separator := byte('{')
		buf = write(buf, func(buf []byte) []byte {
			buf = append(buf, separator)
			separator = ','
			return buf
		})
		if separator == '{' {
			buf = append(buf, '{')
		}
		return append(buf, '}')
	})
}

func (w *frameWriter) end(next, again []string, tasks int, done bool) []byte {
	w.out.Strings("next", next)
	w.out.Strings("again", again)
	w.out.Int("tasks", int64(tasks))
	w.out.Bool("done", done)
	return w.out.End()
}

// appendField appends one field as a member. A value that has no part of its own stands here.
func appendField(buf []byte, name string, revs []revision, by string) []byte {
	buf = append(jsonlite.AppendString(buf, name), `:{"revs":[`...)
	for i, rev := range revs {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(buf, rev.clock, 10)
	}
	buf = append(buf, ']')
	small := false
	for _, rev := range revs {
		if rev.saved {
			continue
		}
		if small {
			buf = append(buf, `,"`...)
		} else {
			buf = append(buf, `,"values":{"`...)
		}
		small = true
		buf = strconv.AppendInt(buf, rev.clock, 10)
		buf = append(append(buf, `":`...), rev.data...)
	}
	if small {
		buf = append(buf, '}')
	}
	if by != "" {
		buf = jsonlite.AppendString(append(buf, `,"by":`...), by)
	}
	return append(buf, '}')
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
		case "again":
			in.Array(func() { f.Again = append(f.Again, in.String()) })
		case "tasks":
			f.Tasks = int(in.Int())
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
		case "values":
			in.Object(func(name string) {
				rev, err := strconv.ParseInt(name, 10, 64)
				if err != nil {
					in.Fail()
				}
				f.Small = append(f.Small, smallField{rev, in.Raw()})
			})
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
