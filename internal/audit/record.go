package audit

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// MaxRecord is the maximum length of a stored record, in bytes. Records without payloads are much
// shorter.
const MaxRecord = 64 << 10

// Nonce makes the hash of a record unpredictable, so that the hashes in checkpoints and proofs
// reveal nothing about records.
type Nonce [16]byte

// Record is one audit record. Append sets Account, Seq and Prev.
type Record struct {
	Account string
	// Seq numbers the records of an account, from 1 without gaps. Prev is the hash of the previous
	// record, or zero for the first.
	Seq  int64
	Prev Hash

	Time     Timestamp
	Nonce    Nonce
	Actor    Actor
	Location Location
	Body     Body
}

// NewRecord returns a record with a new nonce, ready to be appended.
func NewRecord(at time.Time, actor Actor, place Location, body Body) Record {
	r := Record{Time: TimestampOf(at), Actor: actor, Location: place, Body: body}
	rand.Read(r.Nonce[:])
	return r
}

// Kind returns the kind of the record.
func (r Record) Kind() Kind {
	if r.Body == nil {
		return ""
	}
	return r.Body.kind()
}

// encode returns the canonical encoding of the record. The store writes the prefix: see [NewLine].
//
//	{"v":1,"seq":7,"prev":"…","time":"…","account":"acme","nonce":"…","kind":"…","actor":{…},"place":{…},"body":{…}}
func (r Record) encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	object, err := r.encodeContent()
	if err != nil {
		return nil, err
	}
	raw, _, err := chain.Next(chain.Head{Seq: r.Seq - 1, Hash: r.Prev}, r.Time.Time, object)
	return raw, err
}

func (r Record) check() error {
	switch {
	case r.Nonce == Nonce{}:
		return fmt.Errorf("record has no nonce: use NewRecord")
	case r.Time.IsZero() || r.Time != TimestampOf(r.Time.Time):
		return fmt.Errorf("record has no time in microseconds: use NewRecord")
	}
	if _, err := r.Time.MarshalText(); err != nil {
		return err
	}
	return r.checkContent()
}

// checkContent finds content that must not be written, apart from the prefix.
func (r Record) checkContent() error {
	if r.Body == nil {
		return fmt.Errorf("record has no body")
	}
	for _, part := range []any{r.Account, r.Actor, r.Location, r.Body} {
		if err := checkValue(reflect.ValueOf(part)); err != nil {
			return err
		}
	}
	return nil
}

func appendJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}

// Parse parses stored bytes. It accepts only the encoding of Append. It returns ErrUnreadable, or
// ErrUnknownKind for a record of a newer version.
func Parse(raw []byte) (Record, error) {
	h, err := readHeader(raw)
	if err != nil {
		return Record{}, err
	}
	read, known := bodyDecoders[h.kind]
	if !known {
		return Record{}, fmt.Errorf("%w: %.40q", ErrUnknownKind, h.kind)
	}
	var rest struct {
		Actor Actor           `json:"actor"`
		Place Location        `json:"place"`
		Body  json.RawMessage `json:"body"`
	}
	// json is too lenient; the comparison below is strict
	if err := json.Unmarshal(h.content(), &rest); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	body, err := read(rest.Body)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %s: %w", ErrUnreadable, h.kind, err)
	}
	r := Record{Account: h.account, Seq: h.seq, Prev: h.prev, Time: h.time, Nonce: h.nonce, Actor: rest.Actor, Location: rest.Place, Body: body}
	// The record must encode to the same bytes, so that there is only one encoding. This check is
	// for readers: a chain is verified by the stored bytes alone.
	if again, err := r.encode(); err != nil || !bytes.Equal(again, raw) {
		return Record{}, fmt.Errorf("%w: not canonical (%w)", ErrUnreadable, cmp.Or(err, errors.New("another encoding")))
	}
	return r, nil
}

// header is the beginning of every record, whatever its kind. It is sufficient for verification, so
// that chains with kinds of a newer version can be verified.
type header struct {
	seq     int64
	prev    Hash
	account string
	time    Timestamp
	nonce   Nonce
	kind    Kind
	rest    []byte // actor, location and body, without the opening brace
}

// content returns the part after the header as a JSON object.
func (h header) content() []byte { return append([]byte("{"), h.rest...) }

// readHeader parses the header and checks that the record is one unambiguous JSON document.
func readHeader(raw []byte) (header, error) {
	h, err := scanHeader(raw)
	if err == nil {
		err = strictjson.Check(raw)
	}
	if err != nil {
		return header{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return h, nil
}

func scanHeader(raw []byte) (h header, err error) {
	if len(raw) > MaxRecord {
		return h, fmt.Errorf("%d bytes are too long", len(raw))
	}
	for i, c := range raw {
		if c < ' ' {
			return h, fmt.Errorf("control character at byte %d", i) // a record is one line
		}
	}
	s := scanner{rest: raw}
	s.expect(`{"v":1,"seq":`)
	h.seq = s.number()
	s.expect(`,"prev":"`)
	s.hex(h.prev[:])
	s.expect(`","time":"`)
	s.timestamp(&h.time)
	s.expect(`","account":`)
	h.account = s.text()
	s.expect(`,"nonce":"`)
	s.hex(h.nonce[:])
	s.expect(`","kind":"`)
	h.kind = Kind(s.name())
	s.expect(`",`)
	if s.failed {
		return h, fmt.Errorf("not canonical at byte %d", len(raw)-len(s.rest))
	}
	if !bytes.HasPrefix(s.rest, []byte(`"actor":`)) {
		return h, fmt.Errorf("no actor after the kind")
	}
	h.rest = s.rest
	return h, nil
}

// scanner scans a text from the left. It stops at the first unexpected input.
type scanner struct {
	rest   []byte
	failed bool
}

func (s *scanner) take(n int) []byte {
	if s.failed || n < 0 || n > len(s.rest) {
		s.failed = true
		return nil
	}
	got := s.rest[:n]
	s.rest = s.rest[n:]
	return got
}

func (s *scanner) expect(text string) {
	if s.failed || !bytes.HasPrefix(s.rest, []byte(text)) {
		s.failed = true
		return
	}
	s.rest = s.rest[len(text):]
}

// number scans a number of at least 1. Leading zeros are excluded by the JSON check.
func (s *scanner) number() int64 {
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	digits := s.take(n)
	value, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || value < 1 {
		s.failed = true
	}
	return value
}

func (s *scanner) hex(into []byte) {
	digits := s.take(hex.EncodedLen(len(into)))
	if _, err := hex.Decode(into, digits); err != nil || bytes.ContainsAny(digits, "ABCDEF") {
		s.failed = true
	}
}

func (s *scanner) timestamp(into *Timestamp) {
	if into.UnmarshalText(s.take(len(timestampLayout))) != nil {
		s.failed = true
	}
}

func (s *scanner) name() string {
	return string(s.take(bytes.IndexByte(s.rest, '"')))
}

// text scans a JSON string in the encoding of Append.
func (s *scanner) text() string {
	end := 1
	for end < len(s.rest) && s.rest[end] != '"' {
		if s.rest[end] == '\\' {
			end++
		}
		end++
	}
	quoted := s.take(end + 1)
	if plain(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if s.failed || json.Unmarshal(quoted, &text) != nil || !utf8.Valid(quoted) {
		s.failed = true
		return ""
	}
	var again bytes.Buffer
	if appendJSON(&again, text) != nil || !bytes.Equal(again.Bytes(), quoted) {
		s.failed = true
	}
	return text
}

// plain reports whether a quoted text has only one JSON encoding.
func plain(quoted []byte) bool {
	if len(quoted) < 2 || quoted[0] != '"' {
		return false
	}
	for _, c := range quoted[1 : len(quoted)-1] {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

// ParseRecords parses the records of a log. It skips unknown kinds.
func ParseRecords(raw iter.Seq2[[]byte, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for bytes, err := range raw {
			var rec Record
			if err == nil {
				rec, err = Parse(bytes)
			}
			if errors.Is(err, ErrUnknownKind) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
