package server

import (
	"cmp"
	"context"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// What people are asked, and what they answer, may be large. A page that has much of it ends before it has as many as were asked for, and the next one goes
// on there: else a few who read pages would need all of the server's memory, and no client could read one to its end.
const (
	maxPageBytes = 2 << 20
	// So many questions, and so many events, are read from the store before their size is looked at.
	requestBatch, answerBatch = 32, 8
)

// questions reads a page of questions, and how many of them are in it: if there are more, the list has one more than that.
func (s *Server) requestPage(ctx context.Context, account string, filter store.InboxFilter, most int) (list []executor.RequestView, size int, err error) {
	bytes := 0
	for len(list) <= most {
		filter.Limit = min(most+1-len(list), requestBatch)
		part, err := s.config.Executor.ListRequests(ctx, account, filter)
		if err != nil {
			return nil, 0, err
		}
		for _, q := range part {
			list = append(list, q)
			if bytes >= maxPageBytes {
				return list, len(list) - 1, nil
			}
			bytes += len(q.Data) + len(q.AnswerSchema) + len(q.Answer)
		}
		if len(part) < filter.Limit {
			break
		}
		filter.After = requestPlace(part[len(part)-1])
	}
	return list, most, nil
}

func requestPlace(q executor.RequestView) store.InboxPosition {
	return store.InboxPosition{Created: q.Created, ID: q.ID}
}

// answered reads a page of what was settled after a cursor, and the cursor of the next one.
func (s *Server) answerPage(ctx context.Context, account, cursor string, limit int) (list []executor.SettledRequest, next string, err error) {
	bytes := 0
	for left := cmp.Or(limit, maxPage); left > 0 && bytes < maxPageBytes; left -= answerBatch {
		part, next, err := s.config.Executor.ListSettled(ctx, account, cursor, min(left, answerBatch))
		if err != nil {
			return nil, "", err
		}
		for _, answered := range part {
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
