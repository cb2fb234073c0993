// Package stream has the parts of event streams that do not depend on what is streamed: the
// encoding of server-sent events, and the check that a client is still authorized.
package stream

import (
	"encoding/json"
	"net/http"
	"time"
)

// Writer writes server-sent events. Writing to a client that does not read fails after a timeout.
type Writer struct {
	w            http.ResponseWriter
	control      *http.ResponseController
	writeTimeout time.Duration
}

// MediaType is the media type of event streams.
const MediaType = "text/event-stream"

// Open starts the response. A client that does not read for writeTimeout is disconnected.
func Open(w http.ResponseWriter, writeTimeout time.Duration) *Writer {
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("X-Accel-Buffering", "no") // prevents buffering by nginx
	w.WriteHeader(http.StatusOK)
	return &Writer{w: w, control: http.NewResponseController(w), writeTimeout: writeTimeout}
}

// Comment sends a comment, which clients ignore.
func (o *Writer) Comment(text string) error { return o.write([]byte(": " + text + "\n\n")) }

// Event sends an event with JSON data. An event without an id cannot be resumed after.
func (o *Writer) Event(id, kind string, data any) error {
	body, err := json.Marshal(data) // on one line
	if err != nil {
		return err
	}
	text := make([]byte, 0, len(body)+len(id)+len(kind)+32)
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	text = append(append(append(text, "event: "...), kind...), "\ndata: "...)
	return o.write(append(append(text, body...), "\n\n"...))
}

func (o *Writer) write(text []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(o.writeTimeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	if err := o.control.Flush(); err != nil {
		return err
	}
	// with a deadline, HTTP/2 would end even an idle stream
	return o.control.SetWriteDeadline(time.Time{})
}
