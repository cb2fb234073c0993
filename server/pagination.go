package server

import (
	"cmp"
	"context"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/store"
)

// Requests and answers may be large. A page with much data ends before the requested size, and the
// next page continues there. Otherwise a few readers could use all of the server's memory, and
// clients could not read a page to its end.
const (
	maxPageBytes = 2 << 20
	// How many requests, and how many answers, are read from the store before their size is
	// checked.
	requestBatch, answerBatch = 32, 8
)

// maxScanned is how many requests are read for one page. A page may end there without an item, and
// the next one continues. Tests reduce it.
var maxScanned = 1000

// requestPage reads a page of the requests that the caller may see, and returns where the next page
// begins; nil if there are no more. Hidden requests leave no gap: the page is filled from those
// that follow, as far as the limit of reads allows. The position does not name a hidden request.
func (s *Server) requestPage(ctx context.Context, me authn.Principal, filter store.InboxFilter, limit int) (list []executor.RequestView, next *store.InboxPosition, err error) {
	last := filter.After
	for bytes, scanned := 0, 0; ; {
		filter.Limit = min(limit+1-len(list), requestBatch)
		part, err := s.config.Executor.ListRequests(ctx, me.Account, filter)
		if err != nil {
			return nil, nil, err
		}
		for _, q := range part {
			visible, err := s.maySee(me, q.Request)
			if err != nil {
				return nil, nil, err
			}
			switch {
			case visible && (len(list) == limit || bytes >= maxPageBytes):
				return list, &last, nil
			case visible:
				list, last = append(list, q), requestPlace(q)
				bytes += len(q.Data) + len(q.AnswerSchema) + len(q.Answer)
			}
		}
		if len(part) < filter.Limit {
			return list, nil, nil
		}
		filter.After = requestPlace(part[len(part)-1])
		if scanned += len(part); scanned >= maxScanned {
			if !last.Created.Equal(filter.After.Created) {
				last = store.InboxPosition{Created: filter.After.Created}
			}
			return list, &last, nil
		}
	}
}

func requestPlace(q executor.RequestView) store.InboxPosition {
	return store.InboxPosition{Created: q.Created, ID: q.ID}
}

// answerPage reads a page of the answers that the caller may see, after a cursor, and returns the
// next cursor.
func (s *Server) answerPage(ctx context.Context, me authn.Principal, cursor string, limit int) (list []executor.SettledRequest, next string, err error) {
	bytes := 0
	for left := cmp.Or(limit, maxPage); left > 0 && bytes < maxPageBytes; left -= answerBatch {
		part, next, err := s.config.Executor.ListSettled(ctx, me.Account, cursor, min(left, answerBatch))
		if err != nil {
			return nil, "", err
		}
		for _, answered := range part {
			doc, visible, err := s.maySeeID(ctx, me, answered.Interrupt)
			if err != nil {
				return nil, "", err
			}
			if !visible {
				continue
			}
			if masks(me, doc) {
				answered.Answer = doc.MaskAnswer(answered.Answer)
			}
			list = append(list, answered)
			bytes += len(answered.Answer)
		}
		if next == cursor {
			break
		}
		cursor = next
	}
	return list, cursor, nil
}
