package conversation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// outgoing is a start or an answer that was accepted and is not yet delivered. It is stored in the
// transaction that accepts the message, and delivered at least once, under an id with which it
// counts once.
type outgoing struct {
	ID       string  `json:"id"`
	Run      string  `json:"run"`
	Start    bool    `json:"start,omitempty"`
	Question string  `json:"question,omitempty"`
	Target   Target  `json:"target,omitzero"`
	Answer   *Answer `json:"answer,omitempty"`
	Via      string  `json:"via,omitempty"`
}

// stored is the body of a conversation's document.
type stored struct {
	Record
	Outbox []outgoing `json:"outbox,omitempty"`
	// Seen are the newest messages, so that a repeated one counts once.
	Seen []seenMessage `json:"seen_messages,omitempty"`
	// Opened is the language that the conversation was created with.
	Opened Language `json:"opened,omitempty"`
	// Parts is the number of earlier parts, which have PastRuns runs.
	Parts    int `json:"parts,omitempty"`
	PastRuns int `json:"past_runs,omitempty"`
	// Begun is the revision of the deleted conversation that had the id before; 0 for none.
	Begun int64 `json:"begun,omitempty"`
	// Title is the beginning of the first message, Active the time of the last one.
	Title  string    `json:"title,omitempty"`
	Active time.Time `json:"active,omitzero"`

	due time.Time // the DueAt of the document
}

// maxSeen is how many message ids are kept.
const maxSeen = 200

type seenMessage struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
}

// seen reports whether a message was accepted before.
func (s *stored) seen(msg Message) (bool, error) {
	at := slices.IndexFunc(s.Seen, func(m seenMessage) bool { return m.ID == msg.ID })
	if msg.ID == "" || at < 0 {
		return false, nil
	}
	if s.Seen[at].Digest != digestOf(msg) {
		return true, fmt.Errorf("%w: %q", ErrMessageReused, msg.ID)
	}
	return true, nil
}

// digestOf returns the hash of what a message says.
func digestOf(msg Message) string {
	msg.At = time.Time{}
	data, _ := json.Marshal(msg) // strings and numbers
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// key identifies the conversation also if its id is used again after its deletion. An id has no
// "~".
func (s *stored) key() string {
	if s.Begun == 0 {
		return s.ID
	}
	return fmt.Sprintf("%s~%d", s.ID, s.Begun)
}

func (s *stored) line(l Line) int {
	l.N = s.Earlier + len(s.Lines) + 1
	s.Lines = append(s.Lines, l)
	return l.N
}

func (s *stored) said(prompts []Prompt, now time.Time) {
	for _, p := range prompts {
		from := ByHandler
		if p.Template == "say" {
			from = ByAgent
		}
		line := Line{From: from, Text: p.Text, Modality: p.Modality, At: now}
		if p.Template != "say" {
			line.Prompt = &p
		}
		s.line(line)
	}
}

func (s *stored) link(run string) *RunLink {
	at := slices.IndexFunc(s.Runs, func(l RunLink) bool { return l.Run == run })
	return &s.Runs[at]
}

// past returns a run of an agent that is still in the document with its line, or nil.
func (s *stored) past(run string) *RunLink {
	at := slices.IndexFunc(s.Runs, func(l RunLink) bool { return l.Run == run && l.Question == "" && l.Line > s.Earlier })
	if at < 0 {
		return nil
	}
	return &s.Runs[at]
}

// maxSaid is how much of the output of a run is repeated, in characters.
const maxSaid = 300

// pastRuns returns the runs of agents, for a correction.
func (s *stored) pastRuns() map[string]PastRun {
	runs := make(map[string]PastRun)
	for _, link := range s.Runs {
		if s.past(link.Run) != nil {
			runs[link.Run] = PastRun{Request: titleOf(s.Lines[link.Line-s.Earlier-1].Text), Ended: link.Settled}
		}
	}
	for _, line := range s.Lines {
		if past, ok := runs[line.Run]; ok && line.From == ByAgent {
			past.Said = beginning(line.Text, maxSaid)
			runs[line.Run] = past
		}
	}
	return runs
}

// upTo returns the lines of the newest part up to a number.
func upTo(r *Record, n int) []Line { return r.Lines[:max(0, n-r.Earlier)] }

// dueAt is when the conversation needs attention without a message: soon, if something is on its
// way, or at the next deadline of a question.
func (s *stored) dueAt(now time.Time, retention time.Duration) time.Time {
	if s.ID == "" {
		return time.Time{} // deleted
	}
	if s.Working {
		return now.Add(sweepAfter)
	}
	var due time.Time
	for _, l := range s.Runs {
		if !l.Settled && !l.Waiting { // another person may answer at any time
			due = now.Add(pollPersons)
		}
	}
	for _, a := range s.Questions {
		if a.Status.Open() && !a.ExpiresAt.IsZero() && (due.IsZero() || a.ExpiresAt.Before(due)) {
			due = a.ExpiresAt
		}
	}
	if retention > 0 {
		end := s.Active.Add(retention)
		if !now.Before(end) {
			end = now.Add(retryDelete) // a run has to end first
		}
		if due.IsZero() || end.Before(due) {
			due = end
		}
	}
	return due
}
