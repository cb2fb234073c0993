package graph

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/fermata-go/fermata/internal/jsonlite"
)

// head is what the part "run" says of the run itself.
type head struct {
	Format int
	Graph  string
	Run    string
	Status Status
	// Error is what the run failed with.
	Error string
}

func (h *head) encode(o *jsonlite.Object) {
	o.Int("format", int64(h.Format))
	o.String("graph", h.Graph)
	o.String("run", h.Run)
	o.String("status", string(h.Status))
	o.String("error", h.Error)
}

// decode reads the head; part is called for each part that stands beside it, and must read it.
func (h *head) decode(in *jsonlite.Reader, part func(name string)) error {
	var short nameCompressor
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
		case "parts":
			in.Object(func(name string) { part(short.read(name)) })
		default:
			in.Raw()
		}
	})
	return in.Err()
}

// savedInstance is the part "frame …".
type savedInstance struct {
	Graph string
	// Print is the fingerprint of the graph's form, Shape that of its state.
	Fingerprint, StateFingerprint string
	// Whole says that the state is no struct, and its own only field.
	SingleField bool
	// Clock numbers the changes of the state. A value of a field is named by the clock of its change.
	Clock  int64
	Fields []savedField
	// Visits counts the visits of each node.
	Activations []activationCount
	// Next are the nodes that something led to and that have to wait for something under way, Again those of them that begin
	// the next round of a loop.
	Triggered, NextRound []string
	// Tasks is how many tasks there are.
	Tasks int
	Done  bool
}

// savedField is what a frame knows of one field: the values that are still needed, the newest last, and the node that wrote
// the newest.
type savedField struct {
	Name     string
	Versions []fieldVersion
	By       string
}

// at is the revision that the field had at some clock.
func (f *savedField) at(clock int64) fieldVersion {
	found := f.Versions[0]
	for _, rev := range f.Versions {
		if rev.clock <= clock {
			found = rev
		}
	}
	return found
}

type activationCount struct {
	Node  string
	Count int
}

// encode returns the part "frame …". It is called with the lock held.
func (f *instance) encode() []byte {
	o := jsonlite.NewObject()
	o.String("graph", f.flow.name)
	o.String("print", f.flow.fingerprint)
	o.String("shape", f.flow.stateType.fingerprint)
	o.Bool("whole", f.flow.stateType.singleField)
	o.Int("clock", f.clock)
	o.Open("fields")
	for i := range f.fields {
		encodeVersions(o, f.flow.stateType.fields[i].name, f.fields[i].versions, f.fields[i].by)
	}
	for _, sf := range f.extraFields {
		encodeVersions(o, sf.Name, sf.Versions, sf.By)
	}
	o.Close()
	o.Open("visits")
	for n, times := range f.activations {
		if times > 0 {
			o.AnyName(f.flow.nodes[n].name)
			o.IntValue(int64(times))
		}
	}
	for _, v := range f.formerActivations {
		o.AnyName(v.Node)
		o.IntValue(int64(v.Count))
	}
	o.Close()
	o.Strings("next", f.nodeNames(f.triggered))
	o.Strings("again", f.nodeNames(f.nextRound))
	o.Int("tasks", int64(f.savedTasks()))
	o.Bool("done", f.done)
	return o.End()
}

// encodeVersions writes one field as a member: the values that stand here, and the clocks of those that have parts of their
// own.
func encodeVersions(o *jsonlite.Object, name string, revs []fieldVersion, by string) {
	o.OpenAny(name)
	parts := 0
	for _, rev := range revs {
		if rev.saved {
			parts++
		}
	}
	if parts < len(revs) {
		o.Open("values")
		for _, rev := range revs {
			if !rev.saved {
				o.AnyName(strconv.FormatInt(rev.clock, 10))
				o.Value(rev.data)
			}
		}
		o.Close()
	}
	if parts > 0 {
		o.OpenList("parts")
		for _, rev := range revs {
			if rev.saved {
				o.Item(rev.clock)
			}
		}
		o.CloseList()
	}
	o.String("by", by)
	o.Close()
}

func (f *savedInstance) decode(in *jsonlite.Reader) {
	in.Object(func(name string) {
		switch name {
		case "graph":
			f.Graph = in.String()
		case "print":
			f.Fingerprint = in.String()
		case "shape":
			f.StateFingerprint = in.String()
		case "whole":
			f.SingleField = in.Bool()
		case "clock":
			f.Clock = in.Int()
		case "fields":
			f.Fields = make([]savedField, 0, 4)
			revs := make([]fieldVersion, 0, 4) // of all fields: most have one
			in.Object(func(name string) {
				field := savedField{Name: name, Versions: revs[len(revs):]}
				field.decode(in)
				field.Versions = slices.Clip(field.Versions)
				f.Fields = append(f.Fields, field)
				revs = revs[:min(len(revs)+len(field.Versions), cap(revs))]
			})
		case "visits":
			f.Activations = make([]activationCount, 0, 8)
			in.Object(func(name string) { f.Activations = append(f.Activations, activationCount{name, int(in.Int())}) })
		case "next":
			in.Array(func() { f.Triggered = append(f.Triggered, in.String()) })
		case "again":
			in.Array(func() { f.NextRound = append(f.NextRound, in.String()) })
		case "tasks":
			f.Tasks = int(in.Int())
		case "done":
			f.Done = in.Bool()
		default:
			in.Raw()
		}
	})
}

func (f *savedField) decode(in *jsonlite.Reader) {
	in.Object(func(name string) {
		switch name {
		case "values":
			in.Object(func(name string) {
				clock, err := strconv.ParseInt(name, 10, 64)
				if err != nil {
					in.Fail()
				}
				f.Versions = append(f.Versions, fieldVersion{clock: clock, data: in.Raw()})
			})
		case "parts":
			in.Array(func() { f.Versions = append(f.Versions, fieldVersion{clock: in.Int(), saved: true}) })
		case "by":
			f.By = in.String()
		default:
			in.Raw()
		}
	})
	slices.SortFunc(f.Versions, func(a, b fieldVersion) int { return cmp.Compare(a.clock, b.clock) })
}

// savedTask is the part "task …".
type savedTask struct {
	place      string
	Node       string
	Activation int
	// Seq is the order in which the frame's tasks began.
	Seq int64
	// At is the clock of the state that the node was given.
	BaseClock int64
	Status    taskStatus
	Attempt   int
	// Rev and Changed are the result of a finished task that is not merged yet.
	Version int64
	Changed []string
}

func (t *savedTask) encode() []byte {
	o := jsonlite.NewObject()
	o.String("node", t.Node)
	o.Int("visit", int64(t.Activation))
	o.Int("seq", t.Seq)
	o.Int("at", t.BaseClock)
	o.String("status", string(t.Status))
	o.Int("attempt", int64(t.Attempt))
	o.Int("rev", t.Version)
	o.Strings("changed", t.Changed)
	return o.End()
}

func (t *savedTask) decode(in *jsonlite.Reader) {
	in.Object(func(name string) {
		switch name {
		case "node":
			t.Node = in.String()
		case "visit":
			t.Activation = int(in.Int())
		case "seq":
			t.Seq = in.Int()
		case "at":
			t.BaseClock = in.Int()
		case "status":
			t.Status = taskStatus(in.String())
		case "attempt":
			t.Attempt = int(in.Int())
		case "rev":
			t.Version = in.Int()
		case "changed":
			in.Array(func() { t.Changed = append(t.Changed, in.String()) })
		default:
			in.Raw()
		}
	})
}
