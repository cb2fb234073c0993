package graph

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/fermata-go/fermata/internal/jsonlite"
)

// head is the metadata of the run in the part "run".
type head struct {
	Format int
	Graph  string
	Run    string
	Status Status
	// Error is the failure of the run.
	Error string
}

func (h *head) encode(o *jsonlite.Object) {
	o.Int("format", int64(h.Format))
	o.String("graph", h.Graph)
	o.String("run", h.Run)
	o.String("status", string(h.Status))
	o.String("error", h.Error)
}

// decode reads the head. It calls part for each inline part; part must read it.
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
	// Fingerprint identifies the form of the graph, StateFingerprint that of its state type.
	Fingerprint, StateFingerprint string
	// SingleField reports that the state is not a struct and is saved as one field.
	SingleField bool
	// Clock counts the changes of the state. A field value is identified by the clock of its
	// change.
	Clock  int64
	Fields []savedField
	// Activations counts the activations of each node.
	Activations []activationCount
	// Triggered are the nodes that have been reached and wait for active nodes. NextRound are those
	// of them that begin the next iteration of a loop.
	Triggered, NextRound []string
	// Tasks is the number of tasks.
	Tasks int
	Done  bool
}

// savedField is one field of an instance: the values that are still needed, newest last, and the
// node that wrote the newest.
type savedField struct {
	Name     string
	Versions []fieldVersion
	By       string
}

// at returns the version of the field at this clock.
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

// encode returns the part "frame …". The lock must be held.
func (inst *instance) encode() []byte {
	o := jsonlite.NewObject()
	o.String("graph", inst.flow.name)
	o.String("print", inst.flow.fingerprint)
	o.String("shape", inst.flow.stateType.fingerprint)
	o.Bool("whole", inst.flow.stateType.singleField)
	o.Int("clock", inst.clock)
	o.Open("fields")
	for i := range inst.fields {
		encodeVersions(o, inst.flow.stateType.fields[i].name, inst.fields[i].versions, inst.fields[i].by)
	}
	for _, sf := range inst.extraFields {
		encodeVersions(o, sf.Name, sf.Versions, sf.By)
	}
	o.Close()
	o.Open("visits")
	for n, times := range inst.activations {
		if times > 0 {
			o.AnyName(inst.flow.nodes[n].name)
			o.IntValue(int64(times))
		}
	}
	for _, v := range inst.formerActivations {
		o.AnyName(v.Node)
		o.IntValue(int64(v.Count))
	}
	o.Close()
	o.Strings("next", inst.nodeNames(inst.triggered))
	o.Strings("again", inst.nodeNames(inst.nextRound))
	o.Int("tasks", int64(inst.savedTasks()))
	o.Bool("done", inst.done)
	return o.End()
}

// encodeVersions writes one field as a member: its inline values, and the clocks of the values in
// separate parts.
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
			revs := make([]fieldVersion, 0, 4) // shared by all fields: most have one version
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
	// Seq is the order in which the instance's tasks began.
	Seq int64
	// BaseClock is the clock of the state that the node received.
	BaseClock int64
	Status    taskStatus
	Attempt   int
	// Version and Changed are the result of a finished task that is not merged yet.
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
