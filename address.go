package fermata

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SegmentType is the type of a [Segment]. Programs may use types other than the ones below.
type SegmentType string

// The segment types that the runtime and its packages write.
const (
	SegmentRunnable SegmentType = "runnable" // a graph
	SegmentNode     SegmentType = "node"     // a node of a graph
	SegmentItem     SegmentType = "item"     // one item of a fan-out
	SegmentDo       SegmentType = "do"       // work that is done once
	SegmentApprove  SegmentType = "approve"  // an action that needs approval
	SegmentEffect   SegmentType = "effect"   // an action that has begun
	SegmentHold     SegmentType = "hold"     // a hold before or after a node
	SegmentTool     SegmentType = "tool"     // one call of a tool
	SegmentAgent    SegmentType = "agent"    // an agent
)

// Segment is one step of an [Address]. SubID distinguishes several uses of one ID, for example two
// calls of one tool. It is empty otherwise.
type Segment struct {
	Type  SegmentType
	ID    string
	SubID string
}

// String returns "type:id" or "type:id#subid".
func (s Segment) String() string {
	var b strings.Builder
	b.Grow(len(s.Type) + len(s.ID) + len(s.SubID) + 2)
	s.appendTo(&b)
	return b.String()
}

func (s Segment) appendTo(b *strings.Builder) {
	escapeTo(b, string(s.Type))
	b.WriteByte(':')
	escapeTo(b, s.ID)
	if s.SubID != "" {
		b.WriteByte('#')
		escapeTo(b, s.SubID)
	}
}

// Address is the path of a place inside a run, from the outermost graph or agent inwards.
type Address []Segment

// String formats the address as "type:id;type:id#subid;…". [ParseAddress] is its inverse for any
// bytes in the ids.
func (a Address) String() string {
	var b strings.Builder
	for i, segment := range a {
		if i > 0 {
			b.WriteByte(';')
		}
		segment.appendTo(&b)
	}
	return b.String()
}

// Equal reports whether both addresses are the same.
func (a Address) Equal(b Address) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// HasPrefix reports whether a is at or below prefix.
func (a Address) HasPrefix(prefix Address) bool {
	return len(a) >= len(prefix) && a[:len(prefix)].Equal(prefix)
}

// MarshalText formats the address, so that addresses are strings in JSON.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// ParseAddress parses the format of [Address.String].
func ParseAddress(text string) (Address, error) {
	if text == "" {
		return nil, nil
	}
	address := make(Address, 0, strings.Count(text, ";")+1)
	for part := range strings.SplitSeq(text, ";") {
		segment, err := parseSegment(part)
		if err != nil {
			return nil, fmt.Errorf("fermata: address %q: segment %d: %w", text, len(address)+1, err)
		}
		address = append(address, segment)
	}
	return address, nil
}

func parseSegment(text string) (Segment, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Segment{}, fmt.Errorf("%q has no type", text)
	}
	id, sub, hasSub := strings.Cut(rest, "#")
	if hasSub && sub == "" {
		return Segment{}, fmt.Errorf("%q ends with an empty sub-id", text)
	}
	kind, badType := unescape(kind)
	id, badID := unescape(id)
	sub, badSub := unescape(sub)
	if err := cmp.Or(badType, badID, badSub); err != nil {
		return Segment{}, err
	}
	return Segment{Type: SegmentType(kind), ID: id, SubID: sub}, nil
}

const hexDigits = "0123456789ABCDEF"

// escapeTo writes as %XX every byte that has a meaning in an address, is not printable, or is not
// UTF-8.
func escapeTo(b *strings.Builder, text string) {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f || c == '%' || c == ':' || c == ';' || c == '#' {
				b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
			} else {
				b.WriteByte(c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		} else {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
}

// unescape accepts only the output of escapeTo, so that every address has exactly one spelling.
func unescape(text string) (string, error) {
	if isPlain(text) {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", fmt.Errorf("%q ends inside an escape", text)
		}
		high, low := strings.IndexByte(hexDigits, text[i+1]), strings.IndexByte(hexDigits, text[i+2])
		if high < 0 || low < 0 {
			return "", fmt.Errorf("%q has a bad escape %q", text, text[i:i+3])
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	return canonicalSpelling(text, b.String())
}

// isPlain reports whether text contains only single-byte characters that need no escaping.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '%' || c == ':' || c == ';' || c == '#' {
			return false
		}
	}
	return true
}

func canonicalSpelling(text, raw string) (string, error) {
	var b strings.Builder
	escapeTo(&b, raw)
	if b.String() != text {
		return "", fmt.Errorf("%q is not a canonical id: want %q", text, b.String())
	}
	return raw, nil
}
