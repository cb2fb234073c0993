package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/few"
	"github.com/fermata-go/fermata/internal/jsonlite"
	"github.com/fermata-go/fermata/store"
)

// The pack is the part "run": the head of the run and, as its member "parts", parts that are small. A wait with little
// state is one part that way, written and read in one go. It is written again whole, so there is a limit to what goes in:
// a save costs what changed, and a few kilobytes.
const (
	packSize = 4 << 10 // of everything in it
	packItem = 512     // of one part in it
)

// ledger knows where each part of a run stands, in the pack or alone, and what the next save has to change there. A part that
// does not fit into the pack any more stands alone from then on.
type ledger struct {
	packed  []store.Part
	size    int
	stale   bool                    // the pack in the store is not the one here
	saved   []byte                  // the pack in the store
	alone   few.Map[string, bool]   // the parts that stand alone
	changes few.Map[string, []byte] // of those, the ones that the next save changes; nil removes
	loaded  map[string][]byte       // what stood alone when the run was loaded, until alone has it
	room    [3]store.Part           // for what is packed of a run that waits at one place
}

// newLedger begins with what was read from the store, if anything was.
func newLedger(read *checkpoint) *ledger {
	l := new(ledger)
	l.packed = l.room[:0]
	if read != nil {
		l.packed, l.saved, l.loaded = append(l.packed, read.packed...), read.pack, read.alone
		l.measure()
	}
	return l
}

func (l *ledger) measure() {
	l.size = 0
	for _, part := range l.packed {
		l.size += sizeOf(part.Name, part.Data)
	}
}

// forget gives up what was not saved.
func (l *ledger) forget() {
	l.packed, l.stale = nil, false
	if l.saved != nil {
		in := jsonlite.NewReader(l.saved)
		_ = new(head).decode(in, func(name string) { // it cannot fail: it was written or read here
			l.packed = append(l.packed, store.Part{Name: name, Data: in.Raw()})
		})
	}
	l.measure()
	for name := range l.changes.All() {
		l.alone.Set(name, true) // it may be in the store, and must not be in the pack as well
	}
	l.changes.Clear()
}

// sizeOf is about what a part takes in the pack, where long names are shortened.
func sizeOf(name string, data []byte) int { return min(len(name), 64) + len(data) }

func (l *ledger) set(c change) {
	fits := c.data != nil && sizeOf(c.part, c.data) <= packItem
	i := slices.IndexFunc(l.packed, func(p store.Part) bool { return p.Name == c.part })
	if i >= 0 {
		l.stale = true
		l.size -= sizeOf(c.part, l.packed[i].Data)
	}
	fits = fits && l.size+sizeOf(c.part, c.data) <= packSize
	switch {
	case i >= 0 && fits:
		l.packed[i].Data = c.data
		l.size += sizeOf(c.part, c.data)
		return
	case i >= 0:
		l.packed = slices.Delete(l.packed, i, i+1)
		if c.data == nil {
			return
		}
	case fits && !l.standsAlone(c.part):
		l.packed = append(l.packed, store.Part{Name: c.part, Data: c.data})
		l.size += sizeOf(c.part, c.data)
		l.stale = true
		return
	}
	l.alone.Set(c.part, c.data != nil)
	l.changes.Set(c.part, c.data)
}

func (l *ledger) standsAlone(part string) bool {
	for name := range l.loaded {
		l.alone.Set(name, true)
	}
	l.loaded = nil
	return l.alone.Get(part)
}

// delta returns what changed since the last time, the pack with this head if anything in it did.
func (l *ledger) delta(h *head) store.Delta {
	var delta store.Delta
	if l.stale {
		delta.Put = append(make([]store.Part, 0, 1+l.changes.Len()), store.Part{Name: partRun, Data: l.pack(h)})
		l.saved, l.stale = delta.Put[0].Data, false
	}
	for part, data := range l.changes.All() {
		if data == nil {
			delta.Delete = append(delta.Delete, part)
		} else {
			delta.Put = append(delta.Put, store.Part{Name: part, Data: data})
		}
	}
	l.changes.Clear()
	return delta
}

func (l *ledger) pack(h *head) []byte {
	o := jsonlite.NewObject()
	h.encode(o)
	o.Open("parts")
	var short shortNames
	for _, part := range l.packed {
		o.AnyName(short.write(part.Name))
		o.Value(part.Data)
	}
	o.Close()
	return o.End()
}

// shortNames spells the names of parts in a pack. Places that are deep inside each other have long names that begin alike, so a
// name may say how much of the place it shares with the one before: "parked node:agent#1;agent:clerk" and then
// "parked ^31;tool:book#1" for "parked node:agent#1;agent:clerk;tool:book#1". Without it, names would grow with the square of
// the depth.
type shortNames struct {
	last string // the place of the part before
	used []string
}

// worth is from how many shared bytes on a name is shortened.
const worth = 16

func (s *shortNames) write(name string) string {
	kind, place, ok := strings.Cut(name, " ")
	if !ok {
		return name
	}
	n := sharedSegments(s.last, place)
	s.last = place
	if n < worth {
		return name
	}
	short := kind + " ^" + strconv.Itoa(n) + place[n:]
	if slices.Contains(s.used, short) { // of two places that look alike from where they stand, one is spelled out
		return name
	}
	s.used = append(s.used, short)
	return short
}

// sharedSegments is how many bytes the segments take that both places begin with.
func sharedSegments(a, b string) int {
	whole := 0
	for n := 0; ; n++ {
		endA, endB := n == len(a) || a[n] == ';', n == len(b) || b[n] == ';'
		if endA && endB {
			whole = n
		}
		if n == len(a) || n == len(b) || a[n] != b[n] {
			return whole
		}
	}
}

// read is the inverse of write. A name that write cannot have written stays as it is, and is none of ours.
func (s *shortNames) read(name string) string {
	kind, place, ok := strings.Cut(name, " ")
	if !ok {
		return name
	}
	if rest, short := strings.CutPrefix(place, "^"); short {
		end := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:end])
		if err != nil || n < worth || n > len(s.last) {
			return name
		}
		place = s.last[:n] + rest[end:]
		name = kind + " " + place
	}
	s.last = place
	return name
}
