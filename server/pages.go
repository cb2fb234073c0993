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
	pageBytes = 2 << 20
	// So many questions, and so many events, are read from the store before their size is looked at.
	readAtOnce, feedAtOnce = 32, 8
)

// questions reads a page of questions, and how many of them are in it: if there are more, the list has one more than that.
func (s *Server) questions(ctx context.Context, account string, filter store.AskedFilter, most int) (list []executor.QuestionView, size int, err error) {
	bytes := 0
	for len(list) <= most {
		filter.Limit = min(most+1-len(list), readAtOnce)
		part, err := s.config.Executor.Questions(ctx, account, filter)
		if err != nil {
			return nil, 0, err
		}
		for _, q := range part {
			list = append(list, q)
			if bytes >= pageBytes {
				return list, len(list) - 1, nil
			}
			bytes += len(q.Data) + len(q.Schema) + len(q.Answer)
		}
		if len(part) < filter.Limit {
			break
		}
		filter.After = askedPlace(part[len(part)-1])
	}
	return list, most, nil
}

func askedPlace(q executor.QuestionView) store.AskedPlace {
	return store.AskedPlace{Created: q.Created, ID: q.ID}
}

// answered reads a page of what was settled after a cursor, and the cursor of the next one.
func (s *Server) answered(ctx context.Context, account, cursor string, limit int) (list []executor.Answered, next string, err error) {
	bytes := 0
	for left := cmp.Or(limit, maxPage); left > 0 && bytes < pageBytes; left -= feedAtOnce {
		part, next, err := s.config.Executor.Answers(ctx, account, cursor, min(left, feedAtOnce))
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
