package server

import (
	"cmp"
	"context"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/visibility"
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

// answerPage reads a page of the answers that the caller may see, after a cursor, and returns the
// next cursor.
func (s *Server) answerPage(ctx context.Context, me authn.Principal, cursor string, limit int) (list []executor.SettledRequest, next string, err error) {
	bytes := 0
	for left := cmp.Or(limit, endpoint.MaxPage); left > 0 && bytes < maxPageBytes; left -= answerBatch {
		part, next, err := s.config.Executor.ListSettled(ctx, me.Account, cursor, min(left, answerBatch))
		if err != nil {
			return nil, "", err
		}
		for _, answered := range part {
			doc, visible, err := s.visibility.MaySeeID(ctx, me, answered.Interrupt)
			if err != nil {
				return nil, "", err
			}
			if !visible {
				continue
			}
			if visibility.Masks(me, doc) {
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
