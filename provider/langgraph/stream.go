package langgraph

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// event is a server-sent event.
type event struct {
	name string // without the namespace of a subgraph
	data []byte
}

// readEvents calls each for every complete event until the stream ends. An event that was cut off
// is dropped.
func readEvents(body io.ReadCloser, each func(event) error) error {
	timed := timeEvents(body)
	defer timed.timer.Stop()
	lines := bufio.NewReaderSize(timed, 64<<10)
	var e event
	var line []byte
	size := 0 // of the event so far, with all its lines
	for {
		part, err := lines.ReadSlice('\n')
		line, size = append(line, part...), size+len(part)
		switch {
		case size > maxEvent:
			return errTooLarge
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return timed.explained(err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			e.add(line)
			line = line[:0]
			continue
		}
		if e.name != "" {
			if err := each(e); err != nil {
				return err
			}
		}
		e, line, size = event{}, nil, 0
		timed.end(lines.Buffered() > 0)
	}
}

// add adds a line.
func (e *event) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name, _, _ = strings.Cut(string(value), "|")
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	}
}

// transcript is what the events of one run say.
type transcript struct {
	run        string
	complete   bool // it has the events from the first one on
	interrupts []rawInterrupt
	paused     bool // the run paused, possibly without an interrupt, at a breakpoint
	values     json.RawMessage
	failure    *runFailure
	tooMany    bool // more interrupts than a run may have
}

// runFailure is the error of a run.
type runFailure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// add adds an event, and returns the names of the nodes that have finished and the text of a token.
func (t *transcript) add(e event) (finished []string, token string) {
	switch e.name {
	case "metadata":
		var start struct {
			Run string `json:"run_id"`
		}
		if json.Unmarshal(e.data, &start) == nil && start.Run != "" {
			t.complete = true
		}
	case "error":
		t.failure = new(runFailure)
		if json.Unmarshal(e.data, t.failure) != nil {
			t.failure.Message = string(e.data)
		}
	case "updates":
		var update dict[json.RawMessage]
		if json.Unmarshal(e.data, &update) != nil {
			return nil, ""
		}
		for name, change := range update {
			switch {
			case name == "__interrupt__":
				t.addInterrupts(change)
			case !strings.HasPrefix(name, "__"):
				finished = append(finished, name)
			}
		}
	case "values":
		var values dict[json.RawMessage]
		if json.Unmarshal(e.data, &values) == nil {
			if _, paused := values["__interrupt__"]; paused && len(values) == 1 {
				return nil, "" // the same as in updates
			}
			if _, both := values["__interrupt__"]; both {
				delete(values, "__interrupt__")
				t.values, _ = json.Marshal(values)
				return nil, ""
			}
		}
		t.values = bytes.Clone(e.data)
	case "messages":
		return nil, tokenOf(e.data)
	}
	return finished, token
}

func (t *transcript) addInterrupts(data json.RawMessage) {
	var raised list[rawInterrupt]
	if err := json.Unmarshal(data, &raised); err != nil {
		t.tooMany = t.tooMany || errors.Is(err, errTooMany)
		return
	}
	t.paused = true
	for _, each := range raised {
		replaced := false
		for i := range t.interrupts {
			if t.interrupts[i].ID == each.ID {
				t.interrupts[i], replaced = each, true
			}
		}
		if t.tooMany = t.tooMany || !replaced && len(t.interrupts) >= maxQuestions; !replaced && !t.tooMany {
			t.interrupts = append(t.interrupts, each)
		}
	}
}

// tokenOf returns the text of a message chunk of a model.
func tokenOf(data []byte) string {
	var parts list[json.RawMessage]
	var chunk struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(data, &parts) != nil || len(parts) == 0 || json.Unmarshal(parts[0], &chunk) != nil || !strings.HasPrefix(chunk.Type, "AIMessageChunk") && chunk.Type != "ai" {
		return ""
	}
	var text string
	_ = json.Unmarshal(chunk.Content, &text)
	return text
}

// errLost reports that the stream ended before the run.
var errLost = errors.New("the connection was closed before the run ended")

// follow reads the stream of a response until the run ends.
func (c *client) follow(ctx context.Context, thread string, response *http.Response, t *transcript, report func(finished []string, token string)) error {
	defer func() { _ = response.Body.Close() }()
	err := readEvents(response.Body, func(e event) error {
		finished, token := t.add(e)
		if len(finished) > 0 || token != "" {
			report(finished, token)
		}
		return nil
	})
	if err != nil {
		return connectionError("following the run", err)
	}
	if t.failure != nil {
		return nil
	}
	run, err := c.run(ctx, thread, t.run)
	if err != nil {
		return err
	}
	if run.active() {
		return &connError{"following the run", errLost}
	}
	if run.Status == "error" || run.Status == "timeout" || run.Status == "interrupted" {
		t.failure = &runFailure{Error: run.Status}
	}
	return nil
}

// start starts a run and follows it.
func (c *client) start(ctx context.Context, thread string, body map[string]any, report func([]string, string)) (transcript, error) {
	response, err := c.request(ctx, "starting the run", http.MethodPost, "/threads/"+url.PathEscape(thread)+"/runs/stream", body, nil)
	if err != nil {
		return transcript{}, err
	}
	t := transcript{run: path.Base(response.Header.Get("Content-Location"))}
	return t, c.follow(ctx, thread, response, &t, report)
}

// join follows a run that was started earlier, from its first event if the server still has it.
func (c *client) join(ctx context.Context, thread, run string, report func([]string, string)) (transcript, error) {
	t := transcript{run: run}
	response, err := c.request(ctx, "joining the run", http.MethodGet, "/threads/"+url.PathEscape(thread)+"/runs/"+url.PathEscape(run)+"/stream", nil, http.Header{"Last-Event-Id": {"-1"}})
	if err != nil {
		return t, err
	}
	return t, c.follow(ctx, thread, response, &t, report)
}
