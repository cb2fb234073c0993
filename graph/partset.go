package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/jsonlite"
	"github.com/fermata-go/fermata/internal/smallmap"
	"github.com/fermata-go/fermata/internal/store"
)

// The part "run" contains the head of the run and, in its member "parts", small parts inline. A
// waiting run with little state is therefore one part that is written and read at once. The part is
// always written completely, so its size is limited: a save costs what changed plus a few
// kilobytes.
const (
	maxInlineTotal = 4 << 10 // of all inline parts
	maxInlinePart  = 512     // of one inline part
)

// partSet tracks where each part of a run is stored, inline or separate, and the changes for the
// next save. A part that no longer fits inline stays separate from then on.
type partSet struct {
	inline      []store.Part
	inlineSize  int
	inlineDirty bool                       // the stored run part is out of date
	savedInline []byte                     // the stored run part
	separate    smallmap.Map[string, bool] // names of the separate parts
	// changes of separate parts for the next save; nil removes
	changes smallmap.Map[string, []byte]
	// separate parts at load time, until they are added to separate
	loadedSeparate map[string][]byte
	// for the inline parts of a run that waits at one place
	buf [3]store.Part
}

// newPartSet starts with the loaded checkpoint, if any.
func newPartSet(read *checkpoint) *partSet {
	l := new(partSet)
	l.inline = l.buf[:0]
	if read != nil {
		l.inline, l.savedInline, l.loadedSeparate = append(l.inline, read.inline...), read.runPart, read.separate
		l.measureInline()
	}
	return l
}

func (parts *partSet) measureInline() {
	parts.inlineSize = 0
	for _, part := range parts.inline {
		parts.inlineSize += inlineSizeOf(part.Name, part.Data)
	}
}

// revert discards unsaved changes.
func (parts *partSet) revert() {
	parts.inline, parts.inlineDirty = nil, false
	if parts.savedInline != nil {
		in := jsonlite.NewReader(parts.savedInline)
		_ = new(head).decode(in, func(name string) { // cannot fail: this process wrote or read it
			parts.inline = append(parts.inline, store.Part{Name: name, Data: in.Raw()})
		})
	}
	parts.measureInline()
	for name := range parts.changes.All() {
		parts.separate.Set(name, true) // it may be in the store, and must not be inline as well
	}
	parts.changes.Clear()
}

// inlineSizeOf estimates the size of an inline part; long names are compressed.
func inlineSizeOf(name string, data []byte) int { return min(len(name), 64) + len(data) }

func (parts *partSet) set(c partChange) {
	fits := c.data != nil && inlineSizeOf(c.part, c.data) <= maxInlinePart
	i := slices.IndexFunc(parts.inline, func(p store.Part) bool { return p.Name == c.part })
	if i >= 0 {
		parts.inlineDirty = true
		parts.inlineSize -= inlineSizeOf(c.part, parts.inline[i].Data)
	}
	fits = fits && parts.inlineSize+inlineSizeOf(c.part, c.data) <= maxInlineTotal
	switch {
	case i >= 0 && fits:
		parts.inline[i].Data = c.data
		parts.inlineSize += inlineSizeOf(c.part, c.data)
		return
	case i >= 0:
		parts.inline = slices.Delete(parts.inline, i, i+1)
		if c.data == nil {
			return
		}
	case fits && !parts.isSeparate(c.part):
		parts.inline = append(parts.inline, store.Part{Name: c.part, Data: c.data})
		parts.inlineSize += inlineSizeOf(c.part, c.data)
		parts.inlineDirty = true
		return
	}
	parts.separate.Set(c.part, c.data != nil)
	parts.changes.Set(c.part, c.data)
}

func (parts *partSet) isSeparate(part string) bool {
	for name := range parts.loadedSeparate {
		parts.separate.Set(name, true)
	}
	parts.loadedSeparate = nil
	return parts.separate.Get(part)
}

// takeDelta returns the changes since the last call, including the run part if an inline part
// changed.
func (parts *partSet) takeDelta(h *head) store.Delta {
	var delta store.Delta
	if parts.inlineDirty {
		delta.Put = append(make([]store.Part, 0, 1+parts.changes.Len()), store.Part{Name: partRun, Data: parts.encodeInline(h)})
		parts.savedInline, parts.inlineDirty = delta.Put[0].Data, false
	}
	for part, data := range parts.changes.All() {
		if data == nil {
			delta.Delete = append(delta.Delete, part)
		} else {
			delta.Put = append(delta.Put, store.Part{Name: part, Data: data})
		}
	}
	parts.changes.Clear()
	return delta
}

func (parts *partSet) encodeInline(h *head) []byte {
	o := jsonlite.NewObject()
	h.encode(o)
	o.Open("parts")
	var short nameCompressor
	for _, part := range parts.inline {
		o.AnyName(short.write(part.Name))
		o.Value(part.Data)
	}
	o.Close()
	return o.End()
}

// nameCompressor shortens the names of inline parts. Nested places have long names with common
// prefixes, so a name may give the length of the prefix that it shares with the previous place:
// "parked node:agent#1;agent:clerk" and then "parked ^31;tool:book#1" for "parked
// node:agent#1;agent:clerk;tool:book#1". Without it, the size of names would grow with the square
// of the depth.
type nameCompressor struct {
	last string // the place of the previous part
	used []string
}

// minSharedPrefix is the number of shared bytes from which a name is shortened.
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
	// if two places have the same short form, the second is written in full
	if slices.Contains(s.used, short) {
		return name
	}
	s.used = append(s.used, short)
	return short
}

// sharedSegments returns the length in bytes of the segments that both places begin with.
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

// read is the inverse of write. A name that write cannot have written is returned unchanged.
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
