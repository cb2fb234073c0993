package requests

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// The bounds of a count: how many decided requests are counted, how many bytes are read, and how
// many callers' counts are kept how long. Open requests are counted up to MaxScanned.
const (
	maxCountedDecided = 100
	maxCountedBytes   = 16 << 20
	maxKeptCounts     = 1000
	countsAge         = 10 * time.Second
)

// requestCounts keeps the counts of callers until a request of their account changes. Snoozes end
// without a change, so counts are not kept long.
type requestCounts struct {
	mu   sync.Mutex
	kept map[string]keptCounts
}

type keptCounts struct {
	change int64
	at     time.Time
	counts api.RequestCounts
}

func (c *requestCounts) get(key string, change int64, now time.Time) (api.RequestCounts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[key]
	return k.counts, ok && k.change == change && now.Sub(k.at) < countsAge
}

func (c *requestCounts) put(key string, kept keptCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxKeptCounts || c.kept == nil {
		c.kept = make(map[string]keptCounts)
	}
	c.kept[key] = kept
}

func (h *Handlers) countRequests(ctx context.Context, _ *struct{}) (*struct{ Body api.RequestCounts }, error) {
	me, now := endpoint.Principal(ctx), time.Now()
	change, err := h.Executor.LastChange(ctx, me.Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	key := strings.Join(append([]string{me.Account, me.ID}, authn.RoleNames(me.Roles)...), "\x00")
	counts, ok := h.counts.get(key, change, now)
	if !ok {
		if counts, err = h.count(ctx, me, now); err != nil {
			return nil, problems.Of(err)
		}
		h.counts.put(key, keptCounts{change, now, counts})
	}
	return &struct{ Body api.RequestCounts }{counts}, nil
}

// count counts the requests that a caller may see.
func (h *Handlers) count(ctx context.Context, me authn.Principal, now time.Time) (c api.RequestCounts, err error) {
	more, err := h.eachVisible(ctx, me, store.InboxFilter{State: store.InterruptPending}, MaxScanned, func(q executor.RequestView) {
		c.Open.Count++
		doc := q.Request
		if doc == nil {
			c.Mine.Count++
			return
		}
		_, ineligible := h.Executor.AllowedVerbs(*doc, me.ID)
		switch snoozed := doc.Snoozed.After(now); {
		case snoozed:
			c.Snoozed.Count++
		case ineligible == nil && doc.State == desk.StateOpen && !doc.HasVoted(me.ID):
			c.Mine.Count++
		}
		if len(h.memberOf(*doc, me.ID)) > 0 {
			c.Groups.Count++
		}
	})
	for _, count := range []*api.BoundedCount{&c.Open, &c.Mine, &c.Groups, &c.Snoozed} {
		count.More = more
	}
	if err == nil {
		c.Decided.More, err = h.eachVisible(ctx, me, store.InboxFilter{State: store.InterruptDecided, Newest: true}, maxCountedDecided, func(executor.RequestView) { c.Decided.Count++ })
	}
	return c, err
}

// eachVisible calls a function for the first requests of a filter that a caller may see. It reports
// whether there are more than limit, or too many bytes to read.
func (h *Handlers) eachVisible(ctx context.Context, me authn.Principal, filter store.InboxFilter, limit int, yield func(executor.RequestView)) (more bool, err error) {
	bytes := 0
	for scanned := 0; ; {
		filter.Limit = min(requestBatch, limit+1-scanned)
		part, err := h.Executor.ListRequests(ctx, me.Account, filter)
		if err != nil {
			return false, err
		}
		for _, q := range part {
			if scanned++; scanned > limit || bytes > maxCountedBytes {
				return true, nil
			}
			bytes += len(q.Data) + len(q.AnswerSchema) + len(q.Answer)
			if isForEndUser(q) {
				continue
			}
			if visible, err := h.Visibility.MaySee(me, q.Request); err != nil {
				return false, err
			} else if visible {
				yield(q)
			}
		}
		if len(part) < filter.Limit {
			return false, nil
		}
		bound := &filter.After
		if filter.Newest {
			bound = &filter.Before
		}
		*bound = filter.Position(part[len(part)-1].Interrupt)
	}
}

// memberOf returns the required groups that a person belongs to. If the directory cannot be asked
// there are none: it affects only where a request is listed.
func (h *Handlers) memberOf(doc desk.Request, person string) []string {
	groups, _ := h.Executor.GroupsOf(doc, person)
	return groups
}
