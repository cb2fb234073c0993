package langgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The server is not trusted: what it sends is bounded in size, in memory once decoded, and in time.
const (
	maxBody  = 16 << 20 // bytes of a response that is not a stream
	maxEvent = 16 << 20 // bytes of an event of a stream, with all its lines
	maxID    = 512      // bytes of an id of the server in a path
	// maxList is the maximum number of elements of a list or members of an object that is decoded
	// element by element: a small text may have millions.
	maxList = 1000
	// maxNested is the size in bytes of the state of a subgraph in which nodes are looked up.
	maxNested = 1 << 20
	// maxQuestions is the maximum number of questions that a run asks at the same time.
	maxQuestions = 256
	// maxPages is the maximum number of pages of a list.
	maxPages = 100

	// callTimeout is the time for a response that is not a stream, eventTimeout that for an event
	// from its first byte on. A stream lasts as long as its run.
	callTimeout  = 2 * time.Minute
	eventTimeout = time.Minute
)

var (
	errTooLarge  = errors.New("the response is too large")
	errTooMany   = fmt.Errorf("a list of the response has more than %d elements", maxList)
	errSlow      = errors.New("an event did not arrive in time")
	errPages     = fmt.Errorf("the list has more than %d pages", maxPages)
	errInvalidID = errors.New("the server sent an invalid id")
)

// list is a list of limited length in a response.
type list[T any] []T

// UnmarshalJSON decodes a list. It counts the elements first.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if elements(data) > maxList {
		return errTooMany
	}
	return json.Unmarshal(data, (*[]T)(l))
}

// dict is an object of limited size in a response.
type dict[T any] map[string]T

// UnmarshalJSON decodes an object. It counts the members first.
func (d *dict[T]) UnmarshalJSON(data []byte) error {
	if elements(data) > maxList {
		return errTooMany
	}
	return json.Unmarshal(data, (*map[string]T)(d))
}

// elements returns the number of elements of a list or members of an object: an upper bound, which
// is one too high for an empty one.
func elements(data []byte) int {
	count, _ := scan(data)
	return count
}

// lastElement returns the last element of a list; nothing valid if there is none.
func lastElement(data []byte) []byte {
	_, at := scan(data)
	return bytes.TrimSuffix(bytes.TrimSpace(data[at:]), []byte("]"))
}

// scan returns the number of elements of valid JSON, and where the last one begins.
func scan(data []byte) (count, last int) {
	depth, text := 0, false
	count = 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == '[':
			if depth++; depth == 1 {
				last = i + 1
			}
		case c == '}', c == ']':
			depth--
		case c == ',' && depth == 1:
			count, last = count+1, i+1
		}
	}
	return count, last
}

// checkPath returns an error for a path that an id of the server has changed.
func checkPath(path string) error {
	path, _, _ = strings.Cut(path, "?")
	if slices.ContainsFunc(strings.Split(path[1:], "/"), func(s string) bool { return s == "" || s == "." || s == ".." || len(s) > maxID }) {
		return errInvalidID
	}
	return nil
}

// timedBody is the body of a stream whose events have a limited time.
type timedBody struct {
	io.ReadCloser
	timer *time.Timer
	// waiting reports that an event has begun.
	waiting bool
}

func timeEvents(body io.ReadCloser) *timedBody {
	b := &timedBody{ReadCloser: body, timer: time.AfterFunc(time.Hour, func() { _ = body.Close() })}
	b.timer.Stop()
	return b
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.waiting {
		b.begin()
	}
	return n, err
}

// begin starts the time of an event, unless it is running.
func (b *timedBody) begin() {
	b.waiting = true
	b.timer.Reset(eventTimeout)
}

// end ends the time of an event. more reports that bytes of the next one have been read.
func (b *timedBody) end(more bool) {
	b.waiting = false
	if b.timer.Stop(); more {
		b.begin()
	}
}

// explained returns the reason why reading has failed.
func (b *timedBody) explained(err error) error {
	if b.waiting && !b.timer.Stop() {
		return errSlow
	}
	return err
}

// closeLater closes the body of an error response that does not end.
func closeLater(response *http.Response) *time.Timer {
	return time.AfterFunc(callTimeout, func() { _ = response.Body.Close() })
}
