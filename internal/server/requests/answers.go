package requests

import (
	"cmp"
	"context"
	"errors"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

type answersInput struct {
	Cursor string `query:"cursor" maxLength:"4096"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000"`
}

func (h *Handlers) listAnswers(ctx context.Context, in *answersInput) (*struct{ Body api.AnswersPage }, error) {
	list, next, err := h.answerPage(ctx, endpoint.Principal(ctx), in.Cursor, in.Limit)
	if errors.Is(err, store.ErrInvalid) {
		return nil, problems.New("bad_request", "invalid cursor")
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	page := api.AnswersPage{Items: make([]api.AnsweredRequest, 0, len(list)), Next: next}
	for _, answered := range list {
		page.Items = append(page.Items, answeredOf(answered))
	}
	return &struct{ Body api.AnswersPage }{page}, nil
}

// answerPage reads a page of the answers that the caller may see, after a cursor, and returns the
// next cursor.
func (h *Handlers) answerPage(ctx context.Context, me authn.Principal, cursor string, limit int) (list []executor.SettledRequest, next string, err error) {
	bytes := 0
	for left := cmp.Or(limit, endpoint.MaxPage); left > 0 && bytes < maxPageBytes; left -= answerBatch {
		part, next, err := h.Executor.ListSettled(ctx, me.Account, cursor, min(left, answerBatch))
		if err != nil {
			return nil, "", err
		}
		for _, answered := range part {
			doc, visible, err := h.Visibility.MaySeeID(ctx, me, answered.Interrupt)
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

func answeredOf(settled executor.SettledRequest) api.AnsweredRequest {
	item := api.AnsweredRequest{
		RunID: settled.RunID, StateKey: settled.StateKey, GraphID: settled.GraphID, Interrupt: settled.Interrupt, Kind: settled.Kind,
		Expired: settled.Expired, Withdrawn: settled.Withdrawn, Unreadable: settled.Unreadable, Answer: settled.Answer,
		ApprovedDigest: settled.ApprovedDigest, By: settled.By, At: settled.At,
	}
	if r := settled.Refusal; r != nil {
		item.Refusal = &api.Refusal{Verb: string(r.Verb), Reason: r.Reason, By: r.By, At: r.At}
	}
	return item
}
