package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/jsonlite"
	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/store"
)

// The pack is the part "run": the head of the run and, as its member "parts", parts that are small. A wait with little
// state is one part that way, written and read in one go. It is written again whole, so there is a limit to what goes in:
// a save costs what changed, and a few kilobytes.
const (
	maxInlineTotal = 4 << 10 // of everything in it
	maxInlinePart  = 512     // of one part in it
)

// partSet knows where each part of a run stands, in the pack or alone, and what the next save has to change there. A part that
// does not fit into the pack any more stands alone from then on.
type partSet struct {
	inline         []store.Part
	inlineSize     int
	inlineDirty    bool                         // the pack in the store is not the one here
	savedInline    []byte                       // the pack in the store
	separate       smallmap.Map[string, bool]   // the parts that stand alone
	changes        smallmap.Map[string, []byte] // of those, the ones that the next save changes; nil removes
	loadedSeparate map[string][]byte            // what stood alone when the run was loaded, until alone has it
	buf            [3]store.Part                // for what is packed of a run that waits at one place
}

// newPartSet begins with what was read from the store, if anything was.
func newPartSet(read *checkpoint) *partSet {
	l := new(partSet)
	l.inline = l.buf[:0]
	if read != nil {
		l.inline, l.savedInline, l.loadedSeparate = append(l.inline, read.inline...), read.runPart, read.separate
		l.measureInline()
	}
	return l
}

func (l *partSet) measureInline() {
	l.inlineSize = 0
	for _, part := range l.inline {
		l.inlineSize += inlineSizeOf(part.Name, part.Data)
	}
}

// forget gives up what was not saved.
func (l *partSet) revert() {
	l.inline, l.inlineDirty = nil, false
	if l.savedInline != nil {
		in := jsonlite.NewReader(l.savedInline)
		_ = new(head).decode(in, func(name string) { // it cannot fail: it was written or read here
			l.inline = append(l.inline, store.Part{Name: name, Data: in.Raw()})
		})
	}
	l.measureInline()
	for name := range l.changes.All() {
		l.separate.Set(name, true) // it may be in the store, and must not be in the pack as well
	}
	l.changes.Clear()
}

// inlineSizeOf is about what a part takes in the pack, where long names are shortened.
func inlineSizeOf(name string, data []byte) int { return min(len(name), 64) + len(data) }

func (l *partSet) set(c partChange) {
	fits := c.data != nil && inlineSizeOf(c.part, c.data) <= maxInlinePart
	i := slices.IndexFunc(l.inline, func(p store.Part) bool { return p.Name == c.part })
	if i >= 0 {
		l.inlineDirty = true
		l.inlineSize -= inlineSizeOf(c.part, l.inline[i].Data)
	}
	fits = fits && l.inlineSize+inlineSizeOf(c.part, c.data) <= maxInlineTotal
	switch {
	case i >= 0 && fits:
		l.inline[i].Data = c.data
		l.inlineSize += inlineSizeOf(c.part, c.data)
		return
	case i >= 0:
		l.inline = slices.Delete(l.inline, i, i+1)
		if c.data == nil {
			return
		}
	case fits && !l.isSeparate(c.part):
		l.inline = append(l.inline, store.Part{Name: c.part, Data: c.data})
		l.inlineSize += inlineSizeOf(c.part, c.data)
		l.inlineDirty = true
		return
	}
	l.separate.Set(c.part, c.data != nil)
	l.changes.Set(c.part, c.data)
}

func (l *partSet) isSeparate(part string) bool {
	for name := range l.loadedSeparate {
		l.separate.Set(name, true)
	}
	l.loadedSeparate = nil
	return l.separate.Get(part)
}

// delta returns what changed since the last time, the pack with this head if anything in it did.
func (l *partSet) takeDelta(h *head) store.Delta {
	var delta store.Delta
	if l.inlineDirty {
		delta.Put = append(make([]store.Part, 0, 1+l.changes.Len()), store.Part{Name: partRun, Data: l.encodeInline(h)})
		l.savedInline, l.inlineDirty = delta.Put[0].Data, false
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

func (l *partSet) encodeInline(h *head) []byte {
	o := jsonlite.NewObject()
	h.encode(o)
	o.Open("parts")
	var short nameCompressor
	for _, part := range l.inline {
		o.AnyName(short.write(part.Name))
		o.Value(part.Data)
	}
	o.Close()
	return o.End()
}

// nameCompressor spells the names of parts in a pack. Places that are deep inside each other have long names that begin alike, so a
// name may say how much of the place it shares with the one before: "parked node:agent#1;agent:clerk" and then
// "parked ^31;tool:book#1" for "parked node:agent#1;agent:clerk;tool:book#1". Without it, names would grow with the square of
// the depth.
type nameCompressor struct {
	last string // the place of the part before
	used []string
}

// minSharedPrefix is from how many shared bytes on a name is shortened.
const minSharedPrefix = 16

func (s *nameCompressor) write(name string) string {
	kind, place, ok := strings.Cut(name, " ")
	if !ok {
		return name
	}
	n := sharedSegments(s.last, place)
	s.last = place
	if n < minSharedPrefix {
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

// readCheckpoint is the inverse of write. A name that write cannot have written stays as it is, and is none of ours.
func (s *nameCompressor) read(name string) string {
	kind, place, ok := strings.Cut(name, " ")
	if !ok {
		return name
	}
	if rest, short := strings.CutPrefix(place, "^"); short {
		end := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:end])
		if err != nil || n < minSharedPrefix || n > len(s.last) {
			return name
		}
		place = s.last[:n] + rest[end:]
		name = kind + " " + place
	}
	s.last = place
	return name
}
