package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

var (
	// ErrExists is returned for a conversation that was created before with other values.
	ErrExists = errors.New("dialog: the conversation exists")
	// ErrUnknownAssistant is returned for a conversation with an assistant that does not exist.
	ErrUnknownAssistant = errors.New("dialog: there is no such assistant")
)

// Opening is what a conversation begins with.
type Opening struct {
	// User is the person that the conversation is with.
	User string
	// Assistant is the assistant that answers; "" for the default one.
	Assistant string
	// By is the program that begins it for the user; "" for none.
	By string
	// Language defaults to that of the handler.
	Language Language

	at time.Time
}

// Create starts a conversation without a message. It changes nothing if the user has the
// conversation already. It returns ErrExists if it began with another assistant or language,
// ErrNotFound if it belongs to another user, ErrInvalidID, and ErrUnknownAssistant.
func (h *Handler) Create(ctx context.Context, account, id string, opening Opening) (Record, error) {
	switch {
	case !validID.MatchString(id):
		return Record{}, fmt.Errorf("%w: %q", ErrInvalidID, id)
	case opening.User == "":
		return Record{}, fmt.Errorf("%w: the conversation has no user", ErrInvalidReply)
	}
	var err error
	if opening.Assistant, err = h.assistant(opening.Assistant); err != nil {
		return Record{}, err
	}
	opening.Language, opening.at = cmp.Or(opening.Language, h.config.Language), h.now()
	s, err := h.update(ctx, account, id, func(s *stored, _ *tx) error {
		switch {
		case s.ID == "":
			s.begin(id, opening)
			return nil
		case s.User != opening.User:
			return ErrNotFound
		case s.Assistant != opening.Assistant, s.Opened != "" && s.Opened != opening.Language:
			return ErrExists
		}
		return errNoChange
	})
	return s.Record, err
}

// Assistants lists the assistants. The first one is the default.
func (h *Handler) Assistants() []Assistant { return slices.Clone(h.config.Assistants) }

// assistant returns the id of the assistant of a new conversation: the wanted one, or the default.
func (h *Handler) assistant(wanted string) (string, error) {
	list := h.config.Assistants
	switch {
	case len(list) == 0:
		return wanted, nil
	case wanted == "":
		return list[0].ID, nil
	case !slices.ContainsFunc(list, func(a Assistant) bool { return a.ID == wanted }):
		return "", fmt.Errorf("%w: %q", ErrUnknownAssistant, wanted)
	}
	return wanted, nil
}

func (s *stored) begin(id string, o Opening) {
	s.Conversation = Conversation{ID: id, User: o.User, Assistant: o.Assistant, By: o.By, Language: o.Language, Questions: []*Asking{}}
	s.Lines, s.Runs, s.Active, s.Begun, s.Opened = []Line{}, []RunLink{}, o.at, s.Revision, o.Language
}

// Summary is a conversation in the list of its user.
type Summary struct {
	ID        string `json:"id"`
	Assistant string `json:"assistant,omitempty"`
	// Title is the beginning of the first message.
	Title string `json:"title,omitempty"`
	// Open counts the questions that wait for the user.
	Open int `json:"open"`
	// At is the time of the last message of the user; zero if there is none.
	At time.Time `json:"at,omitzero"`
	// By is the program that has begun it for the user; "" if the user has.
	By string `json:"by,omitempty"`
	// User is the person that the conversation is with.
	User string `json:"-"`
}

const (
	// maxListed is how many conversations the list of a user has. Older ones still exist.
	maxListed = 200
	maxTitle  = 80 // characters
)

// List returns the conversations of a user, the last one used first: the newest 200.
func (h *Handler) List(ctx context.Context, account, user string) ([]Summary, error) {
	list, _, err := read[[]Summary](ctx, h, account, ListDocument, userID(user))
	if err != nil {
		return nil, err
	}
	for i := range *list {
		(*list)[i].User = user
	}
	slices.SortStableFunc(*list, func(a, b Summary) int { return b.At.Compare(a.At) })
	return *list, nil
}

// All returns the conversations of all users of an account, by id, after the one with the id after.
// It reads at most limit conversations; the last one has the id next, which is "" at the end.
func (h *Handler) All(ctx context.Context, account, after string, limit int) (list []Summary, next string, err error) {
	page, err := h.config.Store.Documents(ctx, account, ConversationDocument, store.DocumentFilter{After: after, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	for _, doc := range page {
		var s stored
		if err := h.decode(doc, &s); err != nil {
			return nil, "", err
		}
		if s.ID != "" { // otherwise it is erased
			list = append(list, summaryOf(&s))
		}
	}
	if len(page) == limit {
		next = page[len(page)-1].ID
	}
	return list, next, nil
}

// summaryOf returns the summary of a conversation. It changes less often than the conversation.
func summaryOf(s *stored) Summary {
	sum := Summary{ID: s.ID, Assistant: s.Assistant, By: s.By, Title: s.Title, Open: len(waiting(&s.Conversation)), User: s.User}
	if s.Title != "" { // otherwise it is the time of the creation
		sum.At = s.Active
	}
	return sum
}

// titleOf returns the beginning of a text, for a title.
func titleOf(text string) string { return beginning(text, maxTitle) }

// beginning returns the first characters of a text.
func beginning(text string, characters int) string {
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:characters]) + "…"
	}
	return text
}

// list writes a changed summary to the list of the user. A summary without an id removes the
// conversation.
func (tx *tx) list(ctx context.Context, before, after Summary) error {
	if before == after {
		return nil
	}
	list, err := open[[]Summary](ctx, tx, ListDocument, userID(cmp.Or(after.User, before.User)))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(*list, func(s Summary) bool { return s.ID == cmp.Or(after.ID, before.ID) })
	switch {
	case after.ID == "" && at >= 0:
		*list = slices.Delete(*list, at, at+1)
	case after.ID == "":
	case at >= 0:
		(*list)[at] = after
	default:
		*list = append(*list, after)
	}
	slices.SortStableFunc(*list, func(a, b Summary) int { return a.At.Compare(b.At) })
	*list = (*list)[max(0, len(*list)-maxListed):]
	return nil
}

// Peek returns the newest part of a conversation as it is stored. It returns ErrNotFound if the
// account has no such conversation.
func (h *Handler) Peek(ctx context.Context, account, id string) (Record, error) {
	s, err := h.load(ctx, account, id)
	return s.Record, err
}
