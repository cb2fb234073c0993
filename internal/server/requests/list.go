package requests

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/search"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

type requestsInput struct {
	Q      string `query:"q" maxLength:"500" doc:"A search: words and operators such as tool:refund, kind:approval, is:mine or age:>1h. A minus sign excludes, quotes keep spaces and colons."`
	State  string `query:"state" enum:"pending,decided,withdrawn,all" doc:"Defaults to pending, unless the search names a state."`
	Kind   string `query:"kind" maxLength:"512"`
	Order  string `query:"order" enum:"oldest,newest" default:"oldest" doc:"Which requests come first. Decided requests are ordered by the time of their decision, the others by the time they were made."`
	Cursor string `query:"cursor" maxLength:"4096" doc:"The cursor of the next or the previous page."`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default. A page has fewer items if they are large, or if the search matches few of many requests."`

	Language string `header:"Accept-Language" maxLength:"200" doc:"The languages of the reader, for the words of the presentations."`
}

// requestCursor is a position between two requests. Back is a page that ends there.
type requestCursor struct {
	At   time.Time
	ID   string
	Back bool `json:",omitempty"`
}

func (c requestCursor) position() store.InboxPosition { return store.InboxPosition{At: c.At, ID: c.ID} }

// requestList reads pages of the requests that a caller may see and that match a search.
type requestList struct {
	*Handlers
	ctx    context.Context
	me     authn.Principal
	filter store.InboxFilter
	search search.Query
	// state and kind restrict the result beyond the filter; "" for all.
	state, kind string
	now         time.Time
	language    string
	limit       int
	newest      bool
	cursor      *requestCursor // nil: the first page
	// read reads the requests of a filter.
	read func(store.InboxFilter) ([]executor.RequestView, error)
}

// requestListOf returns the list that the caller asks for.
func (h *Handlers) requestListOf(ctx context.Context, in *requestsInput) (*requestList, error) {
	l := &requestList{Handlers: h, ctx: ctx, me: endpoint.Principal(ctx), now: time.Now(), limit: endpoint.PageSize(in.Limit), newest: in.Order == "newest", language: language.Preferred(in.Language)}
	var err error
	if l.search, err = search.Parse(in.Q); err != nil {
		return nil, problems.New("bad_request", "the search is not valid: %s", err)
	}
	if in.Cursor != "" {
		l.cursor = new(requestCursor)
		if err := endpoint.ReadCursor(in.Cursor, l.cursor); err != nil {
			return nil, err
		}
	}
	l.narrow(in)
	l.read, err = l.source()
	return l, err
}

// narrow sets the conditions that an index serves. The others are checked for each request.
func (l *requestList) narrow(in *requestsInput) {
	state, named := l.search.State()
	switch {
	case in.State == "all":
	case in.State != "":
		state = in.State
	case !named:
		state = search.Pending
	}
	l.state, l.kind = state, in.Kind
	if l.kind == "" {
		l.kind = l.search.Exact("kind")
	}
	if state != search.Withdrawn {
		l.filter.State = store.InterruptState(state)
	}
	if state == search.Pending {
		l.filter.Kind = l.kind
	}
	if state != search.Decided { // decided requests are in the order of their decisions
		after, before := l.search.Created(l.now)
		if !after.IsZero() {
			l.filter.After.At = after
		}
		if !before.IsZero() {
			l.filter.Before.At = before.Add(time.Microsecond) // the resolution of the stores
		}
	}
}

// source returns where requests are read: those of a run or the one with an id, if the search names
// it, otherwise those of the account.
func (l *requestList) source() (func(store.InboxFilter) ([]executor.RequestView, error), error) {
	var all []executor.RequestView
	id, run := l.search.Exact("id"), l.search.Exact("run")
	switch {
	case id != "":
		q, err := l.Executor.GetRequest(l.ctx, l.me.Account, id)
		if err == nil {
			all = []executor.RequestView{q}
		} else if !errors.Is(err, store.ErrNotFound) {
			return nil, problems.Of(err)
		}
	case run != "":
		view, err := l.Executor.GetRun(l.ctx, l.me.Account, run)
		if err != nil && !errors.Is(err, executor.ErrRunNotFound) {
			return nil, problems.Of(err)
		}
		all = view.Interrupts
	default:
		return func(filter store.InboxFilter) ([]executor.RequestView, error) {
			return l.Executor.ListRequests(l.ctx, l.me.Account, filter)
		}, nil
	}
	return func(filter store.InboxFilter) ([]executor.RequestView, error) { return selectViews(all, filter), nil }, nil
}

// selectViews applies a filter to requests, like a store.
func selectViews(all []executor.RequestView, f store.InboxFilter) []executor.RequestView {
	at := func(q executor.RequestView) store.InboxPosition { return f.Position(q.Interrupt) }
	none := store.InboxPosition{}
	all = slices.DeleteFunc(slices.Clone(all), func(q executor.RequestView) bool {
		return f.State != "" && q.State != f.State || f.Kind != "" && q.Kind != f.Kind ||
			f.After != none && at(q).Compare(f.After) <= 0 || f.Before != none && at(q).Compare(f.Before) >= 0
	})
	slices.SortFunc(all, func(a, b executor.RequestView) int { return at(a).Compare(at(b)) })
	if f.Newest {
		slices.Reverse(all)
	}
	return all[:min(len(all), f.Limit)]
}

// page reads the page at the cursor.
func (l *requestList) page() (*endpoint.Page[api.Request], error) {
	p, err := l.scan()
	if err != nil {
		return nil, problems.Of(err)
	}
	back := l.cursor != nil && l.cursor.Back
	if back && len(p.items) == 0 && p.end == nil { // there is nothing before: this is the first page
		l.cursor = nil
		return l.page()
	}
	out := &endpoint.Page[api.Request]{Body: api.Page[api.Request]{Items: p.items, Partial: p.partial}}
	forward, backward := p.end, p.first // where the next page begins and the previous one ends
	if l.cursor == nil {
		backward = nil
	} else if backward == nil {
		end := l.cursor.position()
		end.ID += "\x00" // the page before includes the last request of the cursor
		backward = &end
	}
	if back {
		slices.Reverse(p.items)
		forward, backward = p.first, p.end
		if forward == nil {
			at := l.cursor.position()
			forward = &at
		}
	}
	if out.Body.Next, err = l.cursorAt(forward, false); err == nil {
		out.Body.Previous, err = l.cursorAt(backward, true)
	}
	return out, err
}

func (l *requestList) cursorAt(at *store.InboxPosition, back bool) (string, error) {
	if at == nil {
		return "", nil
	}
	return endpoint.Cursor(requestCursor{At: at.At, ID: at.ID, Back: back})
}

// requestScan is the result of a scan.
type requestScan struct {
	items []api.Request
	// first is the position of the first item, and end the position where the scan ended; nil if
	// there are no more requests.
	first, end *store.InboxPosition
	// partial reports that the scan ended because it has read enough.
	partial bool
}

// scan reads the requests of a page, in the direction of the cursor. Hidden requests leave no gap:
// the page is filled from those that follow, as far as the limit of reads allows. No position names
// a hidden request.
func (l *requestList) scan() (p requestScan, err error) {
	filter := l.filter
	filter.Newest = l.newest != (l.cursor != nil && l.cursor.Back)
	bound := &filter.After
	if filter.Newest {
		bound = &filter.Before
	}
	if l.cursor != nil {
		*bound = l.cursor.position()
	}
	start, last := *bound, *bound
	p.items = []api.Request{}
	for bytes, scanned, read := 0, 0, 0; ; {
		if filter.Limit = min(l.limit+1-len(p.items), requestBatch); l.filters() {
			filter.Limit = requestBatch
		}
		part, err := l.read(filter)
		if err != nil {
			return p, err
		}
		for _, q := range part {
			read += len(q.Data) + len(q.AnswerSchema) + len(q.Answer)
			r, ok, err := l.shown(q)
			switch {
			case err != nil:
				return p, err
			case !ok:
				continue
			case len(p.items) == l.limit || bytes >= maxPageBytes:
				p.end = &last
				return p, nil
			}
			last = filter.Position(q.Interrupt)
			if p.items = append(p.items, r); p.first == nil {
				at := last
				p.first = &at
			}
			bytes += len(q.Data) + len(q.AnswerSchema) + len(q.Answer)
		}
		if len(part) < filter.Limit {
			return p, nil
		}
		*bound = filter.Position(part[len(part)-1].Interrupt)
		if scanned += len(part); scanned >= MaxScanned || read >= maxCountedBytes {
			end := endOfScan(start, last, *bound, filter.Newest)
			p.end, p.partial = &end, true
			return p, nil
		}
	}
}

// endOfScan returns the position where the next page begins: at the last item, or at the time of
// the last request that was read. The id of that request is used only if all requests of the page
// have the same time, because the list could not continue otherwise.
func endOfScan(start, last, read store.InboxPosition, newest bool) store.InboxPosition {
	switch {
	case last.At.Equal(read.At) && last != start:
		return last
	case start.At.Equal(read.At) && start.ID == "" || newest && start.At.Equal(read.At.Add(time.Microsecond)):
		return read
	case newest:
		return store.InboxPosition{At: read.At.Add(time.Microsecond)}
	}
	return store.InboxPosition{At: read.At}
}

// filters reports whether requests are checked one by one.
func (l *requestList) filters() bool {
	return !l.search.IsEmpty() || l.state != string(l.filter.State) || l.kind != l.filter.Kind
}

// isForEndUser reports whether a request is a question for the end user of its run, in a
// conversation. It is not part of the work of approvers, so it is listed and counted only for a
// search that names its kind, run or id.
func isForEndUser(q executor.RequestView) bool {
	return q.Request != nil && q.Request.Subject.EndUser != ""
}

// shown returns a request as the caller may see it, if it belongs to the list. A search looks only
// at what the caller may see.
func (l *requestList) shown(q executor.RequestView) (r api.Request, ok bool, err error) {
	if l.state != "" && string(q.State) != l.state || l.kind != "" && q.Kind != l.kind {
		return r, false, nil
	}
	if isForEndUser(q) && l.kind == "" && l.search.Exact("id") == "" && l.search.Exact("run") == "" {
		return r, false, nil
	}
	if ok, err = l.Visibility.MaySee(l.me, q.Request); !ok || err != nil {
		return r, false, err
	}
	r = l.shownRequest(l.ctx, q)
	if r.Activity != nil {
		r.Activity.History, r.Activity.Comments, r.Activity.Clarifications = nil, nil, nil
	}
	if !l.search.Match(searchable(r), l.now) {
		return r, false, nil
	}
	r = presented(q, r, l.language)
	if p := r.Presentation; p != nil {
		r.Presentation = &api.Presentation{Shape: p.Shape, Title: p.Title, Sentence: p.Sentence}
	}
	return r, true, nil
}

// searchable returns the values of a request that a search looks at.
func searchable(r api.Request) search.Request {
	s := search.Request{ID: r.ID, Kind: r.Kind, Graph: r.GraphID, Run: r.StateKey, State: r.State, Created: r.CreatedAt, Data: r.Data, Risk: "none"}
	if r.Deadline != nil {
		s.Deadline = *r.Deadline
	}
	if r.Decision != nil {
		s.DecidedBy = r.Decision.By
	}
	a := r.Activity
	if a == nil {
		s.Eligible = true
		return s
	}
	s.Tool, s.Requester, s.Rules, s.Eligible, s.InGroups = a.Action, a.Requester, a.Rules, a.IneligibleReason == "" && !a.Voted, len(a.MemberOf) > 0
	s.Risk = [...]string{"none", "low", "medium", "high"}[min(max(a.Risk, 0), 3)]
	for _, q := range a.Requirements {
		s.Groups = append(s.Groups, q.Groups...)
	}
	if a.Claim != nil {
		s.ClaimedBy = a.Claim.By
	}
	if a.SnoozedUntil != nil {
		s.SnoozedTill = *a.SnoozedUntil
	}
	return s
}

func (h *Handlers) listRequests(ctx context.Context, in *requestsInput) (*endpoint.Page[api.Request], error) {
	l, err := h.requestListOf(ctx, in)
	if err != nil {
		return nil, err
	}
	return l.page()
}
