package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// partState is the part of a checkpoint with the state; the other parts are the session's files.
const partState = "state"

// keptAnswers is the number of answered interrupts that a state remembers. An execution that is
// repeated after a crash reports them as applied again.
const keptAnswers = 8

// state is the saved state of a run between two processes.
type state struct {
	// Round counts the questions of the run.
	Round    int      `json:"round"`
	Pending  *pending `json:"pending,omitempty"`
	Answered []string `json:"answered,omitempty"`
	Ended    *ended   `json:"ended,omitempty"`
	Usage    usage    `json:"usage,omitzero"`
	// Files are the session's files. NextPart is the number of the next part.
	Files    []file `json:"files,omitempty"`
	NextPart int    `json:"nextPart,omitempty"`

	version int64
	parts   map[string][]byte
}

// pending is the deferred call that a person decides about.
type pending struct {
	Call call `json:"call"`
	// Voided counts the approvals of the call that became void; Reason is why the last one did.
	Voided int    `json:"voided,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Approved is the approval, once it was given. Attempt is the attempt to perform the call, from
	// 1; InDoubt says that its outcome is unknown, and a person is asked.
	Approved *approved `json:"approved,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`
	InDoubt  bool      `json:"inDoubt,omitempty"`
}

// call is a call of a tool by the model.
type call struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

// usage is the number of tokens of all processes.
type usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

// ended is the outcome of a run.
type ended struct {
	Text string `json:"text,omitempty"`
	// Code and Message are set if the run failed.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// file is a file of a session, split into the parts that were appended to it.
type file struct {
	// Name is the path relative to the session's directory, without the session id.
	Name  string   `json:"name"`
	Parts []string `json:"parts"`
}

func key(run provider.Run) store.Key { return store.Key{Account: run.Account, Run: run.ID} }

// load returns the state of a run; an empty one if nothing was saved.
func load(ctx context.Context, run provider.Run) (*state, error) {
	s := new(state)
	checkpoint, err := run.State.Load(ctx, key(run))
	if errors.Is(err, store.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(checkpoint.Parts[partState], s); err != nil {
		return nil, errors.New("claude: the state of the run does not belong to this provider")
	}
	s.version, s.parts = checkpoint.Version, checkpoint.Parts
	return s, nil
}

// begun reports whether a process of the run has ended.
func (s *state) begun() bool { return s.version > 0 }

// save writes the state, and the parts of the session's files that changed.
func (s *state) save(ctx context.Context, run provider.Run, delta store.Delta) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	delta.Put = append(delta.Put, store.Part{Name: partState, Data: data})
	version, err := run.State.Save(ctx, key(run), s.version, delta)
	s.version = version
	return err
}

// applied records that an interrupt was answered.
func (s *state) applied(id string) {
	s.Answered = append(s.Answered, id)
	s.Answered = s.Answered[max(0, len(s.Answered)-keptAnswers):]
}

// interruptID is the id of the open interrupt.
func (s *state) interruptID(run provider.Run) string {
	if s.Pending.InDoubt {
		return ident.Derive("int", run.Account, run.ID, Name, strconv.Itoa(s.Round), strconv.Itoa(s.Pending.Voided), "doubt", strconv.Itoa(s.Pending.Attempt))
	}
	return s.approvalID(run)
}

// approvalID is the id of the interrupt about the pending call itself.
func (s *state) approvalID(run provider.Run) string {
	return ident.Derive("int", run.Account, run.ID, Name, strconv.Itoa(s.Round), strconv.Itoa(s.Pending.Voided))
}

// The names of a session's files: the session id is replaced, because it is the provider ref.
const (
	mainFile = "session.jsonl"
	sideDir  = "session/"
)

// restore writes the session's files into a directory.
func (s *state) restore(dir, session string) error {
	for _, f := range s.Files {
		name := session + ".jsonl"
		if side, ok := strings.CutPrefix(f.Name, sideDir); ok {
			name = filepath.Join(session, filepath.FromSlash(side))
		}
		if !filepath.IsLocal(name) {
			return errors.New("claude: the state of the run has a file outside of its session")
		}
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(target, s.content(f), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// content joins the parts of a file.
func (s *state) content(f file) []byte {
	var all []byte
	for _, part := range f.Parts {
		all = append(all, s.parts[part]...)
	}
	return all
}

// collect reads the session's files from a directory and returns what changed. A session file only
// grows, so usually its end is one new part.
func (s *state) collect(dir, session string) (store.Delta, error) {
	var delta store.Delta
	var files []file
	known := make(map[string]file)
	for _, f := range s.Files {
		known[f.Name] = f
	}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, ok := storedName(dir, at, session)
		if !ok || !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		f := known[name]
		delete(known, name)
		rest, grown := bytes.CutPrefix(data, s.content(f))
		if !grown {
			delta.Delete = append(delta.Delete, f.Parts...)
			f.Parts, rest = nil, data
		}
		f.Name = name
		if len(rest) > 0 {
			part := fmt.Sprintf("file%d", s.NextPart)
			s.NextPart++
			f.Parts = append(f.Parts, part)
			delta.Put = append(delta.Put, store.Part{Name: part, Data: rest})
		}
		files = append(files, f)
		return nil
	})
	for _, f := range known {
		delta.Delete = append(delta.Delete, f.Parts...)
	}
	s.Files = files
	if err == nil && len(files) == 0 {
		err = errors.New("claude: the CLI wrote no session file")
	}
	return delta, err
}

// storedName returns the name of a session's file without the session id; false for other files.
func storedName(dir, at, session string) (string, bool) {
	relative, err := filepath.Rel(dir, at)
	if err != nil {
		return "", false
	}
	if relative == session+".jsonl" {
		return mainFile, true
	}
	side, ok := strings.CutPrefix(filepath.ToSlash(relative), session+"/")
	return sideDir + side, ok
}

// drop removes the session's files: the run has ended.
func (s *state) drop() store.Delta {
	var delta store.Delta
	for _, f := range s.Files {
		delta.Delete = append(delta.Delete, f.Parts...)
	}
	s.Files = nil
	return delta
}

// result returns the outcome of an ended run.
func (e *ended) result(used usage) (provider.Outcome, error) {
	if e.Code != "" {
		return provider.Failed{Code: e.Code, Message: e.Message, Final: true}, nil
	}
	output, err := json.Marshal(struct {
		Result string `json:"result"`
	}{e.Text})
	return provider.Completed{
		Content: e.Text, Output: output, FinishReason: "stop", DiscardState: true,
		Usage: &fermata.Usage{InputTokens: used.Input, OutputTokens: used.Output},
	}, err
}
