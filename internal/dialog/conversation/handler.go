package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/enduser"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	sweepAfter  = 2 * time.Second
	pollPersons = 5 * time.Second
	retryFailed = 30 * time.Second
	maxTries    = 50
)

// Config configures a [Handler]. Store and Runs are required.
type Config struct {
	Store   Documents
	Runs    Runs
	Machine Machine
	// Assistants are those that a conversation can begin with. The first one is the default. Nil is
	// one without an id.
	Assistants []Assistant
	// Model judges replies that exact rules do not understand; nil for none.
	Model Model
	// Language is that of conversations whose first message names none; "" is English.
	Language Language
	// Retention is how long a conversation is kept after the last message of its user. Questions
	// that are open then expire. 0 keeps conversations. Reports, entities and facts stay.
	Retention time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler holds conversations. It is the only component that speaks to the user. It keeps nothing
// in memory: any process with the same store can handle the next message. Its methods are safe for
// concurrent use.
//
// A message is accepted in one transaction: the new state of the conversation, facts, entities and
// remembered answers, and what has to be delivered to runs. The delivery follows, at least once,
// under an id with which it counts once.
type Handler struct {
	config   Config
	watchers watchers
}

// New returns a handler.
func New(config Config) (*Handler, error) {
	if config.Store == nil || config.Runs == nil {
		return nil, errors.New("dialog: Config.Store or Config.Runs is missing")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Language == "" {
		config.Language = English
	}
	return &Handler{config: config}, nil
}

func (h *Handler) now() time.Time { return h.config.Now().UTC() }

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Message handles a message of a user and returns the conversation afterwards. The first message
// creates it. A message that is repeated with its id changes nothing.
//
// It returns the errors of [Machine.Handle], ErrNotFound for the conversation of another user,
// ErrMessageReused for the id of another message, and ErrInvalidID. After any other
// error it is unknown whether the message was accepted: repeat it with the same id.
func (h *Handler) Message(ctx context.Context, account, id string, msg Message) (Record, error) {
	if _, err := h.Accept(ctx, account, id, msg); err != nil {
		return Record{}, err
	}
	return h.Advance(ctx, account, id)
}

// Accept stores a message of a user, like [Handler.Message], but does not wait for what follows
// from it: call [Handler.Advance] next.
func (h *Handler) Accept(ctx context.Context, account, id string, msg Message) (Record, error) {
	if !validID.MatchString(id) {
		return Record{}, fmt.Errorf("%w: %q", ErrInvalidID, id)
	}
	if msg.Actor == "" {
		return Record{}, fmt.Errorf("%w: the message has no author", ErrInvalidReply)
	}
	before, err := h.load(ctx, account, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Record{}, err
	}
	if before.Working { // a crash may have left something to deliver
		if _, err := h.Advance(ctx, account, id); err != nil {
			return Record{}, err
		}
		if before, err = h.load(ctx, account, id); err != nil {
			return Record{}, err
		}
	}
	msg.At = h.now()
	digest := digestOf(msg)
	judged, judgement := h.judge(ctx, before.Conversation, msg)
	accepted, err := h.update(ctx, account, id, func(s *stored, tx *tx) error {
		if s.ID == "" {
			assistant, err := h.assistant(msg.Assistant)
			if err != nil {
				return err
			}
			s.begin(id, Opening{User: msg.Actor, By: msg.By, Assistant: assistant, Language: h.config.Language, at: msg.At})
		}
		if s.User != msg.Actor {
			return ErrNotFound
		}
		if repeated, err := s.seen(msg); err != nil {
			return err
		} else if repeated {
			return errNoChange
		}
		known, err := tx.known(ctx, s, nil)
		if err != nil {
			return err
		}
		known.Runs = s.pastRuns()
		msg.Judgement = nil
		if again, ok := h.config.Machine.Consult(&s.Conversation, msg); ok && judgement != nil && again.ID == judged.ID && again.Status == judged.Status {
			msg.Judgement = judgement
		}
		s.Title, s.Active = orElse(s.Title, titleOf(raw(msg))), msg.At
		n := s.line(Line{From: ByUser, Text: raw(msg), Message: msg.ID, Modality: msg.Modality, Actor: msg.Actor, By: msg.By, At: msg.At})
		result, err := h.config.Machine.Handle(&s.Conversation, msg, known)
		if err != nil {
			return err
		}
		if msg.ID != "" {
			s.Seen = append(s.Seen, seenMessage{msg.ID, digest})
			s.Seen = s.Seen[max(0, len(s.Seen)-maxSeen):]
		}
		had := len(s.Outbox)
		err = h.apply(ctx, s, tx, result, n, msg.At)
		for i := range s.Outbox[had:] {
			s.Outbox[had+i].Via = msg.Via
		}
		return err
	})
	return accepted.Record, err
}

// judge asks the model about a reply, if exact rules do not understand it.
func (h *Handler) judge(ctx context.Context, c Conversation, msg Message) (Asking, *Judgement) {
	if h.config.Model == nil {
		return Asking{}, nil
	}
	question, ok := h.config.Machine.Consult(clone(&c), msg)
	if !ok {
		return Asking{}, nil
	}
	judgement, err := h.config.Model.Judge(ctx, question, msg.Text)
	if err != nil {
		return Asking{}, nil
	}
	return question, &judgement
}

// Get returns a whole conversation, after what was on its way has arrived. It returns ErrNotFound
// if the account has no such conversation.
func (h *Handler) Get(ctx context.Context, account, id string) (Record, error) {
	if _, err := h.Advance(ctx, account, id); err != nil {
		return Record{}, err
	}
	return h.Whole(ctx, account, id)
}

// Advance delivers accepted answers and starts, takes over questions and outputs of runs, ends
// questions whose deadline has passed, and asks the next questions. It returns the newest part of
// the conversation.
func (h *Handler) Advance(ctx context.Context, account, id string) (Record, error) {
	return h.advance(ctx, account, id, false)
}

// AdvanceNow is Advance without waiting for runs: Working is set if one executes.
func (h *Handler) AdvanceNow(ctx context.Context, account, id string) (Record, error) {
	return h.advance(ctx, account, id, true)
}

func (h *Handler) advance(ctx context.Context, account, id string, noWait bool) (Record, error) {
	for range maxTries {
		s, err := h.load(ctx, account, id)
		if err != nil {
			return Record{}, err
		}
		sent, states := make(map[string]error), make(map[string]RunState)
		for _, out := range s.Outbox {
			err := h.deliver(ctx, account, &s, out, noWait)
			switch {
			case errors.Is(err, ErrRejected):
				states[out.Run] = RunState{Ended: true, Failed: true}
			case err != nil && !errors.Is(err, ErrGone):
				return s.Record, fmt.Errorf("dialog: deliver to %s: %w", out.Run, err)
			}
			sent[out.ID] = err
		}
		for _, link := range s.Runs {
			if _, rejected := states[link.Run]; rejected || link.Settled {
				continue
			}
			if states[link.Run], err = h.config.Runs.State(ctx, account, link.Run); err != nil {
				return s.Record, fmt.Errorf("dialog: state of %s: %w", link.Run, err)
			}
		}
		next, err := h.update(ctx, account, id, func(now *stored, tx *tx) error {
			if now.Revision != s.Revision { // the states may be older than the conversation
				return errStaleStates
			}
			return h.absorb(ctx, now, tx, sent, states)
		})
		switch {
		case errors.Is(err, errStaleStates):
			continue
		case err != nil:
			return Record{}, err
		case next.ID == "": // its retention has ended
			return Record{}, fmt.Errorf("%w: %q", ErrNotFound, id)
		case len(next.Outbox) > 0: // a remembered answer, or the answer of a person
			continue
		}
		return next.Record, nil
	}
	return Record{}, fmt.Errorf("dialog: conversation %s keeps changing: %w", id, store.ErrStale)
}

func (h *Handler) deliver(ctx context.Context, account string, s *stored, out outgoing, noWait bool) error {
	if !out.Start {
		return h.config.Runs.Resume(ctx, account, Resume{Run: out.Target.Run, Interrupt: out.Target.Interrupt, ID: out.ID, User: s.User, Via: out.Via, Answer: *out.Answer, NoWait: noWait})
	}
	start := Start{Run: out.Run, Assistant: s.Assistant, User: s.User, Via: out.Via, Lines: upTo(&s.Record, s.link(out.Run).Line), NoWait: noWait}
	if out.Question != "" {
		start.Question = s.Find(out.Question)
	}
	return h.config.Runs.Start(ctx, account, start)
}

// absorb applies what was delivered and what the runs have reached.
func (h *Handler) absorb(ctx context.Context, s *stored, tx *tx, sent map[string]error, states map[string]RunState) error {
	now, m := h.now(), &h.config.Machine
	s.Outbox = slices.DeleteFunc(s.Outbox, func(out outgoing) bool {
		err, done := sent[out.ID]
		if done && err != nil {
			if a := s.Find(out.Question); a != nil {
				a.Undelivered = err.Error()
			}
		}
		return done
	})
	known, err := tx.known(ctx, s, states)
	if err != nil {
		return err
	}
	executing := false
	for i := range s.Runs {
		link := &s.Runs[i]
		state, ok := states[link.Run]
		if !ok {
			continue
		}
		executing = executing || state.Executing
		link.Waiting, link.Held = len(state.Open) > 0, state.Held && link.Question == ""
		if err := h.absorbOpen(ctx, s, tx, *link, state, known, now); err != nil {
			return err
		}
		if !state.Ended {
			continue
		}
		link.Settled, link.Waiting, link.Held = true, false, false
		switch {
		case link.Question != "" && state.Answer != nil:
			if err := h.apply(ctx, s, tx, m.AnswerByPerson(&s.Conversation, link.Question, *state.Answer, now), link.Line, now); err != nil {
				return err
			}
		case link.Question != "": // the request was withdrawn, or has expired
			m.HandBack(&s.Conversation, link.Question)
		case state.Failed:
			var result Result
			m.remark(&s.Conversation, "failed", &result)
			s.said(result.Say, now)
		case state.Output != "":
			s.line(Line{From: ByAgent, Text: state.Output, Run: link.Run, Modality: s.Modality, At: now})
		}
	}
	if err := h.apply(ctx, s, tx, m.Expire(&s.Conversation, now), 0, now); err != nil {
		return err
	}
	if deleted, err := h.retain(ctx, s, tx, now); deleted || err != nil {
		return err
	}
	s.Working = executing || len(s.Outbox) > 0
	if !s.Working {
		return h.apply(ctx, s, tx, m.Next(&s.Conversation, now), 0, now)
	}
	return nil
}

// absorbOpen adds the new questions of a run, and withdraws those that it does not ask any more.
func (h *Handler) absorbOpen(ctx context.Context, s *stored, tx *tx, link RunLink, state RunState, known Known, now time.Time) error {
	open := make(map[string]bool)
	for _, q := range state.Open {
		open[q.Interrupt] = true
	}
	for _, q := range state.Open {
		if slices.ContainsFunc(s.Questions, func(a *Asking) bool { return a.Target.Interrupt == q.Interrupt }) {
			continue
		}
		if len(s.Open()) >= maxOpen { // it is added when others are answered
			break
		}
		s.link(link.Run).Asked = true
		known.Again = link.Again
		result, err := h.config.Machine.Add(&s.Conversation, "", Target{Run: link.Run, Interrupt: q.Interrupt}, q.Question, known, now)
		if err != nil {
			return err // Ask has validated it
		}
		if err := h.apply(ctx, s, tx, result, link.Line, now); err != nil {
			return err
		}
	}
	if state.Executing {
		return nil
	}
	for _, a := range s.Questions {
		if a.Target.Run == link.Run && a.Status.Open() && !open[a.Target.Interrupt] {
			h.config.Machine.Withdraw(&s.Conversation, a.ID, now)
		}
	}
	return nil
}

// apply stores the effects of a step in its transaction.
func (h *Handler) apply(ctx context.Context, s *stored, tx *tx, result Result, line int, now time.Time) error {
	s.said(result.Say, now)
	for _, effect := range result.Effects {
		var err error
		switch e := effect.(type) {
		case Deliver:
			answer := e.Answer
			s.Outbox = append(s.Outbox, outgoing{ID: ident.Derive("reply", s.ID, e.Target.Run, e.Target.Interrupt), Run: e.Target.Run, Question: e.Question, Target: e.Target, Answer: &answer})
		case StartRun:
			s.startRun(line, "", e.Again)
		case AskPerson:
			s.startRun(s.Earlier+len(s.Lines), e.Question, "")
		case SaveEntity:
			err = tx.saveEntity(ctx, s, e.Entity)
		case SaveFacts:
			err = tx.saveFacts(ctx, s, e, now)
		case SaveMemory:
			err = tx.saveMemory(ctx, s, e.Remembered, now)
		}
		if err != nil {
			return err
		}
	}
	s.Working = s.Working || len(s.Outbox) > 0
	return nil
}

// startRun starts a run about a line. One that does another run again is about the same line as
// that.
func (s *stored) startRun(line int, question, again string) {
	if past := s.past(again); past != nil {
		line = past.Line
	}
	run := fmt.Sprintf(enduser.RunPrefix+"%s-%d", s.key(), s.PastRuns+len(s.Runs)+1)
	s.Runs = append(s.Runs, RunLink{Run: run, Line: line, Question: question, Again: again})
	s.Outbox = append(s.Outbox, outgoing{ID: run, Run: run, Start: true, Question: question})
}

// Sweep advances the conversations that are due: those that a process left behind when it failed,
// those with an expired question, and those whose retention has ended. A server calls it every few
// seconds. It does not wait for their runs. It returns how many it advanced, and the joined errors
// of the others, which it tries again after half a minute.
func (h *Handler) Sweep(ctx context.Context) (int, error) {
	due, err := h.config.Store.DueDocuments(ctx, ConversationDocument, 100)
	if err != nil {
		return 0, err
	}
	count := 0
	var failures []error
	for _, doc := range due {
		if _, err := h.advance(ctx, doc.Account, doc.ID, true); err != nil && !errors.Is(err, ErrNotFound) {
			failures = append(failures, err, h.postpone(ctx, doc.Account, doc.ID))
			continue
		}
		count++
	}
	return count, errors.Join(failures...)
}

// postpone makes a conversation that failed due later, so that it does not delay others.
func (h *Handler) postpone(ctx context.Context, account, id string) error {
	doc, err := h.config.Store.Document(ctx, account, ConversationDocument, id)
	if err != nil || len(doc.Body) == 0 || doc.DueAt.IsZero() || h.now().Before(doc.DueAt) {
		return err
	}
	body, err := h.config.Store.Body(doc)
	if err != nil {
		return err
	}
	err = h.config.Store.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{{
		Kind: ConversationDocument, ID: id, BaseRevision: doc.Revision, Body: body, Index: []byte("{}"), DueAt: h.now().Add(retryFailed),
	}}})
	if errors.Is(err, store.ErrStale) { // it has changed, and so has its time
		return nil
	}
	return err
}

var (
	errNoChange    = errors.New("dialog: no change")
	errStaleStates = errors.New("dialog: the conversation changed")
)

// load returns a conversation, or an empty one with ErrNotFound.
func (h *Handler) load(ctx context.Context, account, id string) (stored, error) {
	doc, err := h.config.Store.Document(ctx, account, ConversationDocument, id)
	if errors.Is(err, store.ErrNotFound) {
		return stored{}, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return stored{}, err
	}
	var s stored
	if err := h.decode(doc, &s); err != nil {
		return stored{}, err
	}
	if s.ID == "" { // erased
		s.Revision = doc.Revision
		return s, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	s.Revision, s.due = doc.Revision, doc.DueAt
	return s, nil
}

func (h *Handler) decode(doc store.Document, into any) error {
	body, err := h.config.Store.Body(doc)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("dialog: decode %s %s: %w", doc.Kind, doc.ID, err)
	}
	return nil
}

// update commits a change of a conversation, and repeats it if another process was faster.
func (h *Handler) update(ctx context.Context, account, id string, change func(s *stored, tx *tx) error) (stored, error) {
	for range maxTries {
		s, err := h.load(ctx, account, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return stored{}, err
		}
		tx := &tx{h: h, account: account}
		before, _ := json.Marshal(s) // strings, numbers and times
		listed, counted := summaryOf(&s), countOf(&s)
		err = change(&s, tx)
		if errors.Is(err, errNoChange) {
			return s, nil
		}
		if err != nil {
			return stored{}, err
		}
		body, err := json.Marshal(s)
		if err != nil {
			return stored{}, err
		}
		isDue := !s.due.IsZero() && !h.now().Before(s.due) // then the next time has to be written
		if string(before) == string(body) && len(tx.documents) == 0 && !isDue {
			return s, nil
		}
		if err := tx.list(ctx, listed, summaryOf(&s)); err != nil {
			return stored{}, err
		}
		if err := tx.count(ctx, id, counted, countOf(&s)); err != nil {
			return stored{}, err
		}
		if tx.archive(&s, len(body)) {
			if body, err = json.Marshal(s); err != nil {
				return stored{}, err
			}
		}
		if s.ID == "" {
			body = nil
		}
		writes, err := tx.writes()
		if err != nil {
			return stored{}, err
		}
		writes.Documents = append(writes.Documents, store.DocumentChange{
			Kind: ConversationDocument, ID: id, BaseRevision: s.Revision, Body: body, Index: []byte("{}"), DueAt: s.dueAt(h.now(), h.config.Retention),
		})
		err = h.config.Store.CommitWrites(ctx, account, writes)
		if errors.Is(err, store.ErrStale) {
			continue
		}
		if err != nil {
			return stored{}, err
		}
		s.Revision++
		h.watchers.changed(account, id)
		return s, nil
	}
	return stored{}, fmt.Errorf("dialog: conversation %s keeps changing: %w", id, store.ErrStale)
}

// clone returns a deep copy.
func clone(c *Conversation) *Conversation {
	data, err := json.Marshal(c)
	if err != nil {
		panic("dialog: " + err.Error()) // the types have no value that cannot be encoded
	}
	var copied Conversation
	if err := json.Unmarshal(data, &copied); err != nil {
		panic("dialog: " + err.Error())
	}
	return &copied
}
